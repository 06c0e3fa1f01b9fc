"""What every reader of runs' files must do: rows of numbers, each run's its own, the same from the same files."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support import small

from compositional.files import write_json
from compositional.runs import Run

READERS = [name for name in small.names("tables") if name != "examples"]  # of tasks, not of runs
RUNS = [Run("digits_concat", "cnn", *method, seed) for method in (("none", 0.0), ("entropy", 0.1)) for seed in (0, 1)]


def write(name: str, number: int, folder: Path) -> Path:
    """A run's file for a reader."""
    asked = small.entry("tables", name)["file"]
    path = folder / asked
    folder.mkdir(parents=True)
    if path.suffix == ".safetensors":
        save_file({"penultimate": np.random.default_rng(number).normal(size=(12, 4)).astype(np.float32)}, path)
    else:
        write_json(path, {"steps": 4, "wall_seconds": 0.5 + number})
    return path


@pytest.mark.parametrize("name", READERS)
def test_a_reader_makes_rows_of_every_run(name, tmp_path):
    collect = import_module(f"compositional.tables.{name}").collect
    sources = {run: write(name, number, tmp_path / run.path) for number, run in enumerate(RUNS)}
    rows = list(collect(sources))
    assert rows == list(collect(sources))
    assert {run for run, *_ in rows} == set(RUNS)
    assert len({row[:3] for row in rows}) == len(rows)
    for _, split, metric, value in rows:
        assert split
        assert metric
        assert math.isfinite(value)
