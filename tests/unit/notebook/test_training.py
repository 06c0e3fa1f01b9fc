"""Splits that are made for a notebook."""

from __future__ import annotations

import shutil

from support.project import ROOT

from compositional.configuration.configuration import configuration
from compositional.notebook.training import split
from compositional.planning.recipes import Recipes
from compositional.records.places import record_of


def test_a_damaged_split_is_made_again(tmp_path):
    known = configuration(ROOT / "tests" / "support" / "tiny.yaml")
    folder = split(known, "digits_concat", tmp_path)
    (path,) = (folder / "train").glob("*.arrow")
    whole, time = path.read_bytes(), path.stat().st_mtime_ns
    assert split(known, "digits_concat", tmp_path) == folder
    assert path.stat().st_mtime_ns == time
    path.write_bytes(whole[:-100] + bytes(100))
    assert split(known, "digits_concat", tmp_path) == folder
    assert path.read_bytes() == whole
    shutil.rmtree(folder)
    assert split(known, "digits_concat", tmp_path) == folder
    assert path.read_bytes() == whole


def test_a_split_of_the_workflow_whose_folder_was_deleted_is_made_for_the_notebook(tmp_path, monkeypatch):
    """Its record is still there."""
    known = configuration(ROOT / "tests" / "support" / "tiny.yaml")
    record = tmp_path / record_of("splits", "digits_concat")
    record.parent.mkdir()
    record.write_text("{}")
    monkeypatch.setattr(Recipes, "outdated", lambda self, record: None)
    assert (split(known, "digits_concat", tmp_path) / "task.json").is_file()
