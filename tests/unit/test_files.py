"""Files and folders are complete or absent, and nothing remains of what they replace."""

from __future__ import annotations

import pytest

from compositional import files


def test_a_folder_that_is_replaced_keeps_nothing_of_what_it_was(tmp_path):
    path = tmp_path / "folder"
    for name in ("old", "new"):
        with files.replacing_folder(path) as temporary:
            (temporary / name).write_text(name)
    assert [inside.name for inside in path.iterdir()] == ["new"]
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_to_a_folder_is_replaced_and_the_folder_kept(tmp_path):
    path, elsewhere = tmp_path / "results" / "folder", tmp_path / "elsewhere"
    for folder in (path.parent, elsewhere):
        folder.mkdir()
    (elsewhere / "old").touch()
    path.symlink_to(elsewhere)
    with files.replacing_folder(path) as temporary:
        (temporary / "new").touch()
    assert [*path.parent.iterdir()] == [path]
    assert [inside.name for inside in path.iterdir()] == ["new"]
    assert [inside.name for inside in elsewhere.iterdir()] == ["old"]


def test_a_folder_is_whole_even_if_the_one_before_cannot_be_removed(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    for name in ("old", "new"):
        with files.replacing_folder(path) as temporary:
            (temporary / name).write_text(name)
            monkeypatch.setattr(files.shutil, "rmtree", lambda path, ignore_errors: None)
    assert [inside.name for inside in path.iterdir()] == ["new"]


@pytest.mark.parametrize("replacing", [files.replacing, files.replacing_folder])
def test_a_failed_replacement_keeps_the_old_content(tmp_path, replacing):
    path = tmp_path / "result"

    def write(text: str) -> None:
        with replacing(path) as temporary:
            (temporary / "a" if temporary.is_dir() else temporary).write_text(text)
            if text == "ha":
                raise OSError("disk full")

    write("whole")
    with pytest.raises(OSError, match="full"):
        write("ha")
    assert (path / "a" if path.is_dir() else path).read_text() == "whole"
    assert [*tmp_path.iterdir()] == [path]
