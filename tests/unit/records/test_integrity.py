"""Records, and the files whose integrity they guarantee."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path

import pytest
from support.commit import forget

from compositional import files
from compositional.archive import bundle
from compositional.records import integrity, provenance


def test_damage_is_found_although_a_clock_was_set_back(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    record = tmp_path / f"a{provenance.SUFFIX}"
    provenance.write(record, {"inputs": {}}, {}, [tmp_path / "a.txt"])
    later = time.time_ns() + 10**12
    os.utime(record, ns=(later, later))
    (tmp_path / "a.txt").write_text("b")
    assert integrity.damaged(record, provenance.vouched(record)) == [tmp_path / "a.txt"]


def test_damage_is_found_by_record(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    record = tmp_path / f"data{provenance.SUFFIX}"
    provenance.write(record, {"inputs": {}}, {}, [tmp_path / "data"])

    def damaged(**options):
        return integrity.damaged(record, provenance.vouched(record), **options)

    assert damaged() == []
    integrity.verify(tmp_path / "data")
    later = record.stat().st_mtime_ns + 10**9
    os.utime(tmp_path / "data/a.txt", ns=(later, later))
    assert damaged() == []  # touched, not changed
    (tmp_path / "data/a.txt").write_text("b")
    os.utime(tmp_path / "data/a.txt", ns=(0, 0))
    assert damaged() == []
    assert damaged(everything=True) == [tmp_path / "data/a.txt"]
    with pytest.raises(integrity.DamagedFileError, match="Call the same command again"):
        integrity.verify(tmp_path / "data")
    assert damaged() == [tmp_path / "data/a.txt"]  # verify marked it
    (tmp_path / "data/a.txt").unlink()
    assert damaged() == [tmp_path / "data/a.txt"]
    for text in ("{", "[]", '{"files": null}', record.read_text().replace("data/a.txt", "data/b.txt")):
        record.write_text(text)
        assert provenance.vouched(record) is None, text
        with pytest.raises(integrity.DamagedFileError, match="is damaged, so nothing vouches for"):
            integrity.verify(tmp_path / "data")


def test_a_record_contains_a_digest_of_itself_and_its_recipe(tmp_path):
    path, recipe = tmp_path / "a.provenance.json", {"options": {"rate": 0.1}, "of": {}}
    (tmp_path / "a.csv").write_text("a")
    provenance.write(path, {"inputs": {}, "self": "of an older one"}, recipe, [tmp_path / "a.csv"])
    record = provenance.vouched(path)
    assert record["recipe"] == recipe
    assert record["recipe_digest"] == files.digest(recipe)
    assert record["files"] == {"a.csv": files.sha256(tmp_path / "a.csv")}
    files.write_json(path, json.loads(path.read_text()) | {"inputs": {"b": "c"}})
    assert provenance.vouched(path) is None
    assert provenance.vouched(tmp_path / "none.json") is None


def test_a_record_that_this_user_may_not_read_is_not_taken_for_a_damaged_one(tmp_path, monkeypatch):
    """As if it were, a call would announce that everything is made again."""

    def refusing(path: Path, **_: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refusing)
    with pytest.raises(PermissionError, match=r"run\.json"):
        provenance.vouched(tmp_path / "run.json")


def test_damage_is_reported_although_the_file_belongs_to_another_user(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a")
    provenance.write(tmp_path / f"a{provenance.SUFFIX}", {"inputs": {}}, {}, [tmp_path / "a.csv"])
    (tmp_path / "a.csv").write_text("b")

    def refusing(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(os, "utime", refusing)
    with pytest.raises(integrity.DamagedFileError, match="was altered or damaged after it was made"):
        integrity.verify(tmp_path / "a.csv")


def test_what_lasts_of_a_record_is_all_but_when_how_fast_and_at_which_commit():
    kept = {
        "code": "c",
        "data": "d",
        "device": "cpu",
        "device_name": "n",
        "versions": {},
        "inputs": {},
        "files": {},
        "recipe": {},
    }
    one, two = (kept | dict.fromkeys(("source", "wall_seconds", "finished", "pack", "self"), making) for making in (1, 2))
    assert provenance.lasting(one) == provenance.lasting(two) == kept


def test_a_summary_has_every_value_once_and_names_the_runs_that_diverged():
    run = {"status": "done", "family": {"model": "b"}, "code": "c", "data": "d", "device": "cpu", "versions": {}}
    records = [
        run | {"run": "three", "seed": 2, "status": "diverged", "raw_sha256": {"images": "1"}},
        run | {"run": "one", "seed": 0, "family": {"model": "a"}, "raw_sha256": {"labels": "2"}, "device_name": "n"},
        run | {"run": "two", "seed": 0, "status": "diverged"},
    ]
    assert provenance.summary(records) == {
        "runs": 3,
        "diverged": ["three", "two"],
        "seeds": [0, 2],
        "families": [{"model": "a"}, {"model": "b"}],
        "code": ["c"],
        "data": ["d"],
        "raw_sha256": {"images": "1", "labels": "2"},
        "device": ["cpu"],
        "device_name": ["n"],
        "versions": [{}],
    }


def test_the_environment_is_what_is_installed_of_a_lock_file(tmp_path, monkeypatch):
    def version(name: str) -> str:
        if name == "absent":
            raise metadata.PackageNotFoundError(name)
        return "2.11.0+cpu"

    monkeypatch.setattr(metadata, "version", version)
    provenance.installed.cache_clear()
    (tmp_path / "lock.txt").write_text("torch==2.10.0\nabsent==1.0\n")
    try:
        found = provenance.environment(tmp_path / "lock.txt")
    finally:
        provenance.installed.cache_clear()
    assert found == {"python": platform.python_version(), "packages": {"torch": "2.11.0", "absent": None}}


def test_digests_are_of_all_files_in_folders_but_hidden_ones(tmp_path):
    for name in ("data/a.txt", "data/deep/b.txt", "data/.c.txt", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = provenance.digests(tmp_path, [tmp_path / "data", tmp_path / "d.txt"])
    assert found == {name: files.sha256(tmp_path / name) for name in ("data/a.txt", "data/deep/b.txt", "d.txt")}


def test_a_figure_that_was_replaced_by_an_older_file_is_found(tmp_path):
    """A file that is moved keeps the time of its change, but not that of its place."""
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "a.pdf").write_text("a")
    (tmp_path / "older.pdf").write_text("b")
    os.utime(tmp_path / "older.pdf", ns=(0, 0))
    record = figures / f"a{provenance.SUFFIX}"
    provenance.write(record, {"inputs": {}}, {}, [figures / "a.pdf"])
    os.utime(record)  # some file systems have times of several milliseconds
    time.sleep(0.02)
    (tmp_path / "older.pdf").rename(figures / "a.pdf")
    assert integrity.damaged(record, provenance.vouched(record)) == [figures / "a.pdf"]


def test_a_failed_job_leaves_no_record(tmp_path):
    with pytest.raises(OSError, match="full"), provenance.recording(tmp_path / "r.json", [], {"code": {"fingerprint": "c"}}):
        raise OSError("disk full")
    assert list(tmp_path.iterdir()) == []


def test_the_commit_of_a_surrounding_repository_is_not_recorded(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "inner").mkdir()
    monkeypatch.setattr(provenance, "ROOT", tmp_path / "inner")
    forget()
    assert provenance.source() == {}
    (tmp_path / "inner/archived").mkdir()
    (tmp_path / "inner/a.txt").write_text("a")
    about = {"commit": "c", "date": "d", "dirty": False, "files": {"a.txt": files.sha256(tmp_path / "inner/a.txt")}}
    files.write_json(tmp_path / "inner/archived/source.json", about)
    forget()
    assert provenance.source() == {"commit": "c", "date": "d", "dirty": False}
    (tmp_path / "inner/a.txt").write_text("b")
    forget()
    assert provenance.source() == {"commit": "c", "date": "d", "dirty": True}
    forget()


def test_the_recorded_commit_is_that_of_the_sources_wherever_results_are(tmp_path, monkeypatch):
    assert (provenance.ROOT / "Snakefile").is_file()
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "a.txt").write_text("a")
    commit = ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "t"]
    for words in (["init", "-q"], ["add", "-A"], commit):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    forget()
    assert len(provenance.source()["commit"]) == 40
    assert bundle.sources()["files"] == {"a.txt": files.sha256(tmp_path / "a.txt")}
    forget()
