"""What every task must do with small data (support/small.yaml): its stage makes and audits it, and its kind reads it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from support import small

from compositional.files import sha256

TASKS = small.names("tasks")


def about(folder: Path) -> dict:
    return json.loads((folder / "task.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("task", TASKS)
def test_a_task_made_again_has_the_same_bytes_unless_an_option_differs(task, tmp_path):
    again = small.make_split(task, tmp_path / "again")
    made = [
        {path.relative_to(folder): sha256(path) for path in folder.rglob("*") if path.is_file()}
        for folder in (small.split(task), again)
    ]
    assert made[0] == made[1]
    if other := small.entry("tasks", task).get("other"):
        changed = small.make_split(task, tmp_path / "other", **other)
        assert about(changed)["content_sha256"] != about(again)["content_sha256"]


@pytest.mark.parametrize("task", TASKS)
def test_the_kind_of_a_task_reads_its_members(task):
    told = about(small.split(task))
    splits = import_module(f"compositional.kinds.{told['kind']}").load(small.split(task), "cpu")
    assert told["in_distribution"] in splits
    assert all(len(split) > 0 for split in splits.values())
    assert {name: len(split) for name, split in splits.items()}.items() <= told["items"].items()
