"""Finished runs are shared, travel and are checked: between clones of the project, with its real workflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.project import FIGURE, RUN, Project, numbers_of

from compositional.records.store import Store
from compositional.runs import Run

pytestmark = pytest.mark.workflow
GRID = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1]}, "seeds": [0, 1]}
OVERLAY = {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID]}}}}}
MADE = [*numbers_of(RUN), FIGURE, "results/tables/ablation.csv"]


def runs(project: Project, *words: str, status: int = 0, configured: bool = True, **variables: str) -> str:
    """What workflow/runs.py says."""
    overlays = ["--configfile", "tests/support/tiny.yaml", "overlay.yaml"] if configured else []
    command = [sys.executable, "workflow/runs.py", *words, *overlays]
    done = subprocess.run(
        command, cwd=project.folder, env=os.environ | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def entries(store: Path) -> list[Path]:
    return sorted(store.glob("entries/*/*.safetensors"))


def clone(folder: Path) -> Project:
    folder.mkdir()
    project = Project(folder)
    project.overlay(OVERLAY)
    return project


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("group") / "store"


@pytest.fixture(scope="module")
def built(tmp_path_factory, shared) -> Project:
    """A clone that keeps its runs in a shared store, by its configuration."""
    project = clone(tmp_path_factory.mktemp("built") / "clone")
    project.overlay(OVERLAY | {"store": str(shared)})
    project.snakemake(FIGURE, overlay="overlay.yaml")
    return project


@pytest.fixture(scope="module")
def packed(built, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "runs.zip"
    assert "4 runs are in" in runs(built, "pack", path.as_uri(), "--figures", "ablation")
    return path


def moments(project: Project) -> list[str]:
    """When each run was trained: equal in two clones if one of them has not trained it."""
    return [json.loads(path.read_text())["finished"] for path in sorted((project.folder / "results/runs").rglob("run.json"))]


def test_another_clone_takes_runs_from_the_shared_store_by_a_variable(built, shared, tmp_path, monkeypatch):
    assert len(entries(shared)) == 4
    assert not entries(built.folder / "results/store")
    other = clone(tmp_path / "other")
    monkeypatch.setenv("COMPOSITIONAL_STORE", str(shared))
    other.snakemake(FIGURE, overlay="overlay.yaml")
    assert moments(other) == moments(built)
    assert other.read(*MADE) == built.read(*MADE)


def test_another_configuration_has_results_of_its_own_and_shares_runs(built, shared):
    """As README builds at paper scale."""
    before, existing = built.read(*MADE), entries(shared)
    fewer = {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID | {"seeds": [0]}]}}}}}
    (built.folder / "fewer.yaml").write_text(yaml.safe_dump(fewer | {"store": str(shared)}))
    built.snakemake("--directory", "fewer", FIGURE, overlay="fewer.yaml")
    assert built.read(*MADE) == before
    assert (built.folder / "fewer" / FIGURE).read_bytes() != before[MADE.index(FIGURE)]
    assert entries(shared) == existing
    records = [json.loads((folder / RUN / "run.json").read_text()) for folder in (built.folder, built.folder / "fewer")]
    assert records[0]["finished"] == records[1]["finished"]
    assert "Nothing to be done" in built.snakemake(FIGURE, overlay="overlay.yaml")


def test_a_figure_is_built_from_a_file_of_runs_without_training(built, packed, tmp_path):
    """By its address, as of a remote."""
    other = clone(tmp_path / "other")
    assert "every digest is right: 4 runs added" in runs(other, "unpack", packed.as_uri())
    other.snakemake(FIGURE, overlay="overlay.yaml")
    assert moments(other) == moments(built)
    assert other.read(*MADE) == built.read(*MADE)


def test_a_sample_is_trained_again_to_the_byte_and_a_forged_run_is_found(packed, tmp_path):
    other = clone(tmp_path / "other")
    runs(other, "unpack", str(packed))
    store = Store(other.folder / "results/store")
    forged = entries(store.folder)[0]
    about, tensors = store.load(forged.stem)
    tensors["weights"][0] += 1e-3
    store.add(forged.stem, about, tensors)
    said = runs(other, "check", "--figures", "ablation", "--sample", "4", status=1)
    assert said.count(": identical\n") == 3
    identity = about["identity"]
    run = Run(*(identity["family"][key] for key in ("task", "model", "regularizer")), identity["lambda"], identity["seed"])
    assert f"{run.path}: DIFFERS\n" in said
    assert "Traceback" not in said


def test_runs_that_are_missing_are_named(packed, tmp_path):
    other = clone(tmp_path / "other")
    said = runs(other, "pack", str(tmp_path / "out.zip"), "--figures", "ablation", status=2)
    assert "4 of 4 runs are not in the store, such as digits_concat/cnn/entropy/lambda=0.1/seed=0. Build the figures" in said
    packed.with_name("bad.zip").write_bytes(packed.read_bytes()[:-100])
    assert "bad.zip can't be unpacked" in runs(other, "unpack", str(packed.with_name("bad.zip")), status=2)
    assert not (tmp_path / "out.zip").exists()


def test_prune_says_what_no_configured_run_uses_and_removes_it_only_if_told(built, shared):
    before = entries(shared)
    assert "0 runs are used by no configured run" in runs(built, "prune", "--store", str(shared), "--yes")
    assert entries(shared) == before
    # Without the overlay, nothing asks for runs of so few steps.
    said = runs(built, "prune", "--store", str(shared), configured=False)
    assert "4 runs are used by no configured run" in said
    assert said.count("digits_concat/cnn/") == 4
    assert "Nothing was removed" in said
    assert entries(shared) == before
    assert "4 runs removed" in runs(built, "prune", "--store", str(shared), "--yes", configured=False)
    assert entries(shared) == []
