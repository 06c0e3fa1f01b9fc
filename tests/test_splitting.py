"""Tasks: contents, distributions, audits and bytes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from compositional import files, lexicon, pairs, splitting
from compositional.datasets import digits, scan
from compositional.declarations import defaults
from compositional.tasks import scan_jump

# sha256 of the sorted lines of the published files (github brendenlake/SCAN, c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f).
PUBLISHED = {
    "all": (20910, "345bff3c25864652f326ba1960aa515d156b63f45067ea57268f71d7362a2440"),
    "train": (14670, "1e5ab3357dc958267480a6012d3970953f35bb098a115b1754a1ad36d371b7cb"),
    "test": (7706, "48956239771e67ded4d090164919ab79d21756218a3e94f9abc2cbe346c0cd1c"),
}


def digest(pairs_of_text) -> tuple[int, str]:
    lines = sorted(f"IN: {command} OUT: {actions}" for command, actions in pairs_of_text)
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_generated_scan_equals_the_published_files_as_multisets():
    assert digest(scan.commands()) == PUBLISHED["all"]
    members, _ = scan_jump.build(None, defaults("tasks.scan_jump"))
    for name, member in members.items():
        assert digest(zip(member["input"], member["output"], strict=True)) == PUBLISHED[name]


def test_deduplicated_scan_jump_shows_the_primitive_once():
    members, _ = scan_jump.build(None, defaults("tasks.scan_jump") | {"deduplicate": True})
    assert Counter(members["train"]["input"])["jump"] == 1
    assert len(members["train"]) == 13204


@pytest.mark.parametrize("setting", ["A", "B"])
def test_pairs_have_the_distribution_of_their_setting(setting):
    members, about = pairs.build(digits.load(None), {"setting": setting, "train_pairs": 4000, "test_pairs": 3000})
    offsets = {name: Counter(((np.array(m["right_label"]) - np.array(m["label"])) % 10).tolist()) for name, m in members.items()}
    seen = {0, 1} if setting == "A" else set(range(10))
    assert set(offsets["train"]) == set(offsets["validation"]) == seen
    assert set(offsets["test"]) == set(range(2, 10))
    for name, counts in offsets.items():
        expected = len(members[name]) / len(counts)
        assert max(abs(count - expected) for count in counts.values()) < 5 * np.sqrt(expected)
    source = digits.load(None)
    row = members["test"][17]
    left, right = (source["test"][0][row[key]] for key in ("left_index", "right_index"))
    assert np.array_equal(np.array(row["image"]), np.concatenate([left, right], 1))
    assert source["test"][1][row["left_index"]] == row["label"]
    assert about["component_width"] == 8


def test_audit_counts_and_refuses_overlap():
    members = DatasetDict(train=Dataset.from_dict({"input": ["a", "b"]}), test=Dataset.from_dict({"input": ["b", "c", "b"]}))
    with pytest.raises(splitting.OverlapError, match="2 of 3 items of test"):
        splitting.audit(members, [{"columns": ["input"], "members": ["test"]}])
    clean = splitting.audit(members, [{"columns": ["input"], "members": []}])
    assert clean == []


def test_how_examples_are_shown_is_part_of_their_digest(tmp_path):
    """The members of a task may be the same: a canvas, a distance, words that occur nowhere are applied when they are read."""

    def content(module, **parameters):
        folder = tmp_path / "split"
        splitting.make_split("task", f"tasks.{module}", defaults(f"tasks.{module}") | parameters, tmp_path, folder)
        about = json.loads((folder / "task.json").read_text())
        return about["content_sha256"]

    small = {"train_pairs": 20, "test_pairs": 20, "canvas_height": 32, "canvas_width": 64}
    assert content("is_same_digit", **small) == content("is_same_digit", **small)
    assert content("is_same_digit", **small) != content("is_same_digit", **small, distance=4)
    assert content("scan_jump") != content("scan_jump", virtual_words=6)


def test_a_leaking_split_leaves_nothing_behind(tmp_path, monkeypatch):
    leaking = DatasetDict(
        train=Dataset.from_dict({"input": ["a"], "output": ["A"]}), test=Dataset.from_dict({"input": ["a"], "output": ["A"]})
    )
    rule = {"in_distribution": "train", "disjoint": [{"columns": ["input"], "members": ["test"]}]}
    monkeypatch.setattr(scan_jump, "build", lambda raw, parameters: (leaking, dict(rule)))
    with pytest.raises(splitting.OverlapError):
        splitting.make_split("leak", "tasks.scan_jump", {}, tmp_path / "raw", tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def test_virtual_words_join_both_vocabularies_and_no_sentence(tmp_path):
    options = defaults("tasks.scan_jump") | {"virtual_words": 6, "deduplicate": True}
    splitting.make_split("scan", "tasks.scan_jump", options, tmp_path / "none", tmp_path / "scan")
    about = json.loads((tmp_path / "scan" / "task.json").read_text())
    words = set(lexicon.virtual_words(6))
    assert words < set(about["source_words"])
    assert words < set(about["target_words"])
    assert len(about["source_words"]) == 3 + 13 + 6  # with <pad>, <start> and <end>
    sentences = DatasetDict.load_from_disk(str(tmp_path / "scan"))["train"]["input"]
    assert not words & {word for sentence in sentences for word in sentence.split()}


def test_a_split_made_twice_has_the_same_bytes(tmp_path):
    options = {"setting": "A", "train_pairs": 50, "test_pairs": 20}
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "of another task").touch()
    for name in ("one", "two"):
        splitting.make_split("digits", "tasks.digits_concat", options, tmp_path / "raw", tmp_path / name)
    made = [
        {path.relative_to(folder): files.sha256(path) for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "one", tmp_path / "two")
    ]
    assert made[0] == made[1]
    about = json.loads((tmp_path / "one" / "task.json").read_text())
    assert about["items"] == {"train": 50, "validation": 20, "test": 20}
    assert about["raw_sha256"] == {}
    assert {count["in_training"] for count in about["audit"]} == {0}
    assert DatasetDict.load_from_disk(str(tmp_path / "one"))["train"].num_rows == 50
