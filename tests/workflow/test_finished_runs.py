"""Finished runs are shared between results folders, packed into files and checked, with the real workflow."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import fsspec
import pytest
import yaml
from support.project import FIGURE, ROOT, Project, numbers_of

from compositional.archive import finished_runs
from compositional.records.store import Store
from compositional.terminal import commands

pytestmark = pytest.mark.workflow
GRID = {"task": "digits_concat", "model": "cnn", "regularizers": {}, "seeds": [0, 1]}
RUNS = [f"digits_concat/cnn/none/lambda=0/seed={seed}" for seed in (0, 1)]
RUN = f"results/runs/{RUNS[0]}"
MADE = [*numbers_of(RUN), "results/tables/ablation.csv", FIGURE]


def ablation(**grid) -> dict:
    return {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID | grid]}}}}}


def finished(folder: Path) -> list[str]:
    """When each run was trained: equal in two folders if only one of them has trained it."""
    return [json.loads(path.read_text())["finished"] for path in sorted((folder / "results/runs").rglob("run.json"))]


def entries(store: Path) -> list[Path]:
    return sorted(store.glob("entries/*/*.json"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("group") / "store"


@pytest.fixture(scope="module")
def built(tmp_path_factory, shared) -> Project:
    """A repository whose configuration names a shared store for its runs."""
    project = Project(tmp_path_factory.mktemp("built"))
    project.overlay(ablation() | {"store": str(shared)})
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "t"]):
        subprocess.run(["git", *words], cwd=project.folder, check=True)
    project.snakemake("results/archive.zip", overlay="overlay.yaml")
    return project


@pytest.fixture
def runs(tmp_path, monkeypatch, capsys):
    """runs(words) calls workflow/runs.py in an empty folder with its own store, and returns the output."""
    monkeypatch.chdir(tmp_path)
    Path("overlay.yaml").write_text(yaml.safe_dump(ablation()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = runpy.run_path(str(ROOT / "workflow" / "runs.py"))

    def call(*words: str, status: int = 0, overlays: bool = True) -> str:
        own = ["--configfile", str(ROOT / "tests/support/tiny.yaml"), "overlay.yaml"] if overlays else []
        monkeypatch.setattr(sys, "argv", ["runs.py", *words, *own])
        try:
            ended, why = script["main"](), ""
        except SystemExit as stop:
            ended, why = 1, str(stop)
        said = "".join(capsys.readouterr()) + why
        assert ended == status, said
        return said

    call.prune = script["prune"]
    return call


@pytest.fixture(scope="module")
def packed(built, shared, tmp_path_factory) -> Path:
    """A file with the runs."""
    path = tmp_path_factory.mktemp("packed") / "runs.zip"
    finished_runs.pack(path, entries(shared), ["ablation"])
    return path


def test_another_configuration_has_results_of_its_own_and_shares_runs(built, shared, monkeypatch, tmp_path):
    """The other configuration has its own folder, as for builds at paper scale, and an environment variable names the store.
    Nothing is submitted to the cluster, where sbatch would fail: the plan already knows that the runs exist."""
    existing, before = entries(shared), built.read(*MADE)
    assert len(existing) == 2
    assert not entries(built.folder / "results/store")
    for name, code in (("sinfo", 0), ("sbatch", 1)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("COMPOSITIONAL_STORE", str(shared))
    (built.folder / "fewer.yaml").write_text(yaml.safe_dump(ablation(seeds=[0])))
    cluster = ["--executor", "slurm", "--jobs", "1"]
    built.snakemake(*cluster, "--directory", "fewer", f"{RUN}/run.json", overlay="fewer.yaml")
    assert finished(built.folder / "fewer") == finished(built.folder)[:1]
    assert entries(shared) == existing
    assert built.read(*MADE) == before


def test_an_archive_is_reproduced_with_runs_from_a_file(built, packed, tmp_path):
    """The times of training show that only the sample was trained."""
    command = [
        sys.executable,
        ROOT / "workflow/reproduce.py",
        built.folder / "results/archive.zip",
        "--folder",
        tmp_path / "there",
    ]
    options = ["--runs", packed.as_uri(), "--sample", "1", "--environment", "current", "--cores", "2", "--yes"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every digest is right: 2 runs added" in done.stdout
    assert "1 of 2 runs were trained again and have the same bytes" in done.stdout
    assert "] Training 1 run of digits_concat/cnn/none" in done.stderr
    assert "SNAKEMAKE" not in done.stdout + done.stderr
    assert finished(tmp_path / "there") == finished(built.folder)


def test_a_forged_run_is_found(packed, runs, tmp_path):
    """The bytes of the other run in the sample agree."""
    assert "every digest is right: 2 runs added" in runs("unpack", packed.as_uri())
    assert "0 runs added to results/store, 2 already existed" in runs("unpack", str(packed))
    store, path = Store(tmp_path / "results/store"), entries(tmp_path / "results/store")[0]
    name = f"{path.parent.name}/{path.stem}"
    about, tensors = store.load(name)
    next(iter(tensors.values())).view(-1)[0] += 1e-3
    store.add(name, about, tensors)
    said = runs("check", "--figures", "ablation", "--sample", "5", status=1)
    forged = about["identity"]["seed"]
    assert f"{RUNS[forged]}: DIFFERS\n" in said
    assert f"{RUNS[1 - forged]}: identical\n" in said
    assert "1 of 2 retrained runs differ from the store" in said
    again = next(tmp_path.glob("retrained-*"))
    assert f"They are in {again}/results/runs" in said
    assert (again / "results/runs" / RUNS[forged] / "weights.safetensors").is_file()


def test_the_file_can_be_sent_to_and_fetched_from_remotes(packed, shared, runs, monkeypatch, tmp_path):
    """The remotes are on this machine: fsspec's memory, a file by its address, and a web server, which is read-only."""
    own = tmp_path / "runs.zip"
    with monkeypatch.context() as patched:
        patched.setenv("COMPOSITIONAL_STORE", str(shared))
        assert f"2 runs are in {own.as_uri()}" in runs("pack", own.as_uri(), "--figures", "ablation")
    runs("unpack", str(packed))
    assert "2 runs are in memory://group/runs.zip" in runs("pack", "memory://group/runs.zip", "--figures", "ablation")
    assert fsspec.filesystem("memory").cat("group/runs.zip") == own.read_bytes() == packed.read_bytes()
    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=packed.parent))
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{web.server_port}"
    try:
        assert f"{address}/none.zip: reading failed: HTTPError: 404" in runs("unpack", f"{address}/none.zip", status=2)
        said = runs("pack", f"{address}/mine.zip", "--figures", "ablation", status=2)
        assert f"{address}/mine.zip: writing failed" in said
        for place in ("memory://group/runs.zip", f"{address}/runs.zip"):
            shutil.rmtree("results/store")
            assert "every digest is right: 2 runs added" in runs("unpack", place)
    finally:
        web.shutdown()
    assert "nosuch://runs.zip: reading failed: ValueError: Protocol not known: nosuch" in runs(
        "unpack", "nosuch://runs.zip", status=2
    )


def test_runs_that_no_build_here_uses_are_counted(packed, runs):
    """Without the overlays, the runs have other settings, as runs of an earlier PyTorch have other versions."""
    assert "used by no figure" not in runs("unpack", str(packed))
    said = runs("unpack", str(packed), overlays=False)
    assert "2 of these 2 runs are used by no figure here, because they were made with other options, code or versions" in said


def test_missing_or_damaged_runs_are_named(packed, runs, tmp_path):
    said = runs("pack", "out.zip", "--figures", "ablation", status=2)
    assert f"2 of 2 runs are not in the store, such as {RUNS[0]}. Build the figures first" in said
    assert "none of these runs is in the store" in runs("check", "--figures", "ablation", status=2)
    Path("bad.zip").write_bytes(packed.read_bytes()[:-100])
    assert "bad.zip can't be unpacked" in runs("unpack", "bad.zip", status=2)
    assert not Path("out.zip").exists()
    assert not entries(tmp_path / "results/store")


def test_prune_lists_unused_entries_and_removes_them_only_on_request(packed, runs, monkeypatch):
    runs("unpack", str(packed))
    before = entries(Path("results/store"))
    assert "nowhere: there is no such folder" in runs("prune", "--store", "nowhere", status=2)
    assert "0 entries and 0 other files are used by no configured run" in runs("prune", "--yes")
    assert entries(Path("results/store")) == before
    # Without the overlay, the configuration has no runs with so few steps.
    for answer in ("no", KeyboardInterrupt, "yes"):
        assert entries(Path("results/store")) == before
        monkeypatch.setattr("builtins.input", Mock(side_effect=[answer]))
        said = runs("prune", overlays=False)
        assert "2 entries and 0 other files are used by no configured run" in said
        assert said.count("digits_concat/cnn/none") == 2
        assert ("2 removed" if answer == "yes" else "Nothing was removed") in said
    assert entries(Path("results/store")) == []


def test_prune_removes_what_killed_processes_left_but_nothing_that_a_build_may_need(packed, runs):
    """A checkpoint of another configuration, and hidden files of all results that are more than a day old."""
    runs("unpack", str(packed))
    store, (entry, *_) = Path("results/store"), entries(Path("results/store"))
    resumed, other = (store / "checkpoints" / f"{plan}-cpu-0.safetensors" for plan in (entry.parent.name, "0" * 64))
    new, unpacking, theirs = (store / name for name in (".unpacking-new", ".unpacking-old", ".snapshot"))
    weights = entry.with_name(f".weights-1.safetensors.{'2' * 16}")
    split = Path(f"results/splits/.mine.{'3' * 16}")
    for path in (resumed, other, new / "a.json", unpacking / "a.json", weights, theirs, split / "train.arrow"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1" * 50_000)
    for path in (unpacking, weights, theirs, split):
        os.utime(path, (time.time() - 90_000,) * 2)
    said = runs("prune", "--yes")
    assert "0 entries and 4 other files are used by no configured run (0.2 MB), 2 runs are kept" in said
    assert f"{other}: an unfinished run\n" in said
    assert f"{weights}: left by a process that was killed\n" in said
    assert all(path.exists() for path in (resumed, new, theirs))
    assert not any(path.exists() for path in (other, unpacking, weights, split))


def test_prune_keeps_what_this_user_may_not_read(packed, runs, monkeypatch):
    """In a shared store it is a run of another user, although it looks like a damaged one."""
    runs("unpack", str(packed))
    one, other = entries(Path("results/store"))
    for path in (one, other):
        path.write_bytes(b"cannot be read")
    monkeypatch.setattr(os, "access", lambda path, mode: path != one)
    assert "0 runs are kept, and what you may not read" in runs("prune", "--yes")
    assert sorted(path for path in Path("results/store/entries").rglob("*") if path.is_file()) == sorted(one.parent.iterdir())
    assert one.exists()


def test_prune_goes_on_if_a_build_removes_its_temporary_files_meanwhile(packed, runs, monkeypatch):
    runs("unpack", str(packed))
    gone = Path(f"results/store/entries/.a.json.{'4' * 16}")
    gone.touch()
    lstat, scandir = Path.lstat, os.scandir

    def vanished(path: Path) -> os.stat_result:
        return lstat(path if path != gone else Path("vanished"))

    def scanned(path: str | Path):
        return scandir(path if Path(path) != Path("results/splits/.b") else "vanished")

    Path("results/splits/.b").mkdir(parents=True)
    monkeypatch.setattr(Path, "lstat", vanished)
    monkeypatch.setattr(os, "scandir", scanned)
    assert "0 entries and 0 other files are used by no configured run" in runs("prune", "--yes")


def test_prune_removes_the_rest_if_it_may_not_remove_a_file(packed, runs, monkeypatch):
    """In a shared store, some folders belong to others. The folder was left by a killed process."""
    runs("unpack", str(packed))
    one, other = entries(Path("results/store"))
    left = Path(f"results/.split.{'3' * 16}")
    (left / "deep").mkdir(parents=True)
    os.utime(left, (time.time() - 90_000,) * 2)
    unlink, rmdir = Path.unlink, os.rmdir

    def refuse(path: Path, **options: bool) -> None:
        if path.parent == one.parent:
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, **options)

    def refuse_folder(path: str, **options: int) -> None:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        rmdir(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(os, "rmdir", refuse_folder)
    said = runs("prune", "--yes", overlays=False, status=2)
    assert "3 files or folders could not be removed, all others were. The first one: [Errno 13] Permission denied" in said
    assert one.exists()
    assert not other.exists()
    assert left.exists()


def test_ctrl_c_while_runs_are_trained_again_leaves_no_folder(packed, runs, monkeypatch, tmp_path):
    runs("unpack", str(packed))
    monkeypatch.setattr(commands, "run", Mock(side_effect=KeyboardInterrupt))
    assert "Stopped." in runs("check", "--figures", "ablation", status=130)
    assert not list(tmp_path.glob("retrained-*"))


@pytest.mark.parametrize("meanwhile", ["entries are read", "the question waits"])
def test_prune_keeps_a_run_that_another_build_finishes_meanwhile(packed, runs, monkeypatch, meanwhile):
    runs("unpack", str(packed))
    before = sorted(path for path in Path("results/store/entries").rglob("*") if path.is_file())
    entry = entries(Path("results/store"))[0]
    # A build writes a run's tensors first.
    late = [path for path in before if path.parent == entry.parent and (path == entry or meanwhile == "entries are read")]
    held = {path: path.read_bytes() for path in late}
    for path in late:
        path.unlink()

    def finish(*_) -> str:
        for path in late:
            path.write_bytes(held[path])
        return "yes"

    prune = runs.prune.__globals__
    known = prune["identity_of"]
    if meanwhile == "entries are read":
        monkeypatch.setitem(prune, "identity_of", lambda path: known(path) if finish() else None)
        runs("prune", "--yes")
    else:
        monkeypatch.setattr("builtins.input", finish)
        assert "1 removed" in runs("prune")
    assert sorted(path for path in Path("results/store/entries").rglob("*") if path.is_file()) == before
