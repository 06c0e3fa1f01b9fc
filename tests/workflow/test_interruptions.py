"""Builds are killed at random moments, and the next call resumes and ends with the same bytes.

KILLS=50 python -m pytest tests/workflow/test_interruptions.py     number of kills (default 2); SEED=1: other moments
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.project import Project

from compositional.files import sha256

pytestmark = pytest.mark.workflow
FIGURE = "results/figures/ablation.pdf"
KILLS, SEED = int(os.environ.get("KILLS", "2")), int(os.environ.get("SEED", "0"))
GRID = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1]}, "seeds": [0, 1]}
SMALL = {
    "pack_size": {"cpu": {"default": 4}},
    "tasks": {"digits_concat": {"training": {"steps": 60, "record_every": 4}}},
    "studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID]}}}},
}


def results(folder: Path) -> dict[str, str]:
    """Every file that must have the same bytes: all except those with times (records, logs) and those in the store.

    If a process is killed while it writes a file, the file keeps its hidden, temporary name and is not a result.
    """
    return {
        path.relative_to(folder).as_posix(): sha256(path)
        for stage in ("splits", "runs", "tables", "figures")
        for path in sorted((folder / "results" / stage).rglob("*"))
        if path.is_file() and path.suffix != ".json" and not path.name.startswith(".")
    }


def kill_after(project: Project, seconds: float, overlay: str) -> bool:
    """Start a build and kill all of its processes after this time. Returns whether it was still running."""
    shutil.rmtree(project.folder / "results")
    shutil.rmtree(project.folder / ".snakemake")
    command = [*project.command(FIGURE, "--rerun-incomplete", overlay=overlay)]
    process = subprocess.Popen(
        command, cwd=project.folder, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def test_killed_builds_end_in_the_same_bytes(tmp_path):
    project = Project(tmp_path)
    project.keep_studies("compositional_regularization")
    overlay = project.overlay(SMALL)
    began = time.monotonic()
    project.snakemake(FIGURE, overlay=overlay)
    whole = time.monotonic() - began
    expected = results(project.folder)
    assert len(expected) > 15
    source = random.Random(SEED)
    for kill in range(KILLS):
        moment = source.uniform(0, whole)
        while not kill_after(project, moment, overlay):
            moment /= 2  # the build had already ended, because the machine is less busy now
        project.snakemake("--unlock", overlay=overlay)
        project.snakemake(FIGURE, *["--rerun-incomplete"][: kill % 2], overlay=overlay)  # it has no effect here
        assert results(project.folder) == expected, f"kill {kill} of seed {SEED}, after {moment:.2f} s"
        leftovers = [path for path in (project.folder / "results/runs").rglob(".*") if path.name != ".snakemake_timestamp"]
        print(f"kill {kill}: after {moment:.2f} of {whole:.2f} s, leftovers {len(leftovers)}", flush=True)
