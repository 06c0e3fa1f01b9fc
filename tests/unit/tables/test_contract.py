"""What every reader must do: return rows with its columns for every run or task, always the same for the same files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from support import small

from compositional import plugins, tables
from compositional.files import write_json
from compositional.records import integrity
from compositional.runs import Run
from compositional.stages.aggregate import aggregate
from compositional.tables import Table
from compositional.tables.shared.reading import RUN


def sources(table: Table, task: str, folder: Path) -> dict:
    """The sources of a reader: those of two tasks, or of four runs."""
    if table.SOURCE == "split":
        return {name: small.split(name) for name in (task, "digits_concat")}
    runs = [Run(task, "cnn", *method, seed) for method in (("none", 0.0), ("entropy", 0.1)) for seed in (0, 1)]
    for number, run in enumerate(runs):
        path = folder / run.path / table.SOURCE
        path.parent.mkdir(parents=True)
        if path.suffix == ".safetensors":
            save_file({"penultimate": np.random.default_rng(number).normal(size=(12, 4)).astype(np.float32)}, path)
        else:
            write_json(path, {"steps": 4, "wall_seconds": 0.5 + number})
    return {run: folder / run.path / table.SOURCE for run in runs}


@pytest.mark.parametrize("name", small.names("tables"))
def test_a_reader_returns_rows_for_each_of_its_sources(name, tmp_path, monkeypatch):
    table = plugins.load(Table, f"tables.{name}")
    found = sources(table, small.entry("tables", name)["task"], tmp_path)
    rows = list(table.collect(found))
    assert rows == list(table.collect(found))
    assert {of for of, *_ in rows} == set(found)
    assert len({row[: len(table.COLUMNS)] for row in rows}) == len(rows)
    assert {len(row) for row in rows} == {1 + len(table.COLUMNS)}
    for row in rows:
        assert all(math.isfinite(value) if isinstance(value, float) else value is not None for value in row[1:])
    monkeypatch.setattr(integrity, "verify", lambda path: None)  # these files have no records
    aggregate(list(found.values()), tmp_path / "table.csv")
    made = pd.read_csv(tmp_path / "table.csv")
    assert tuple(made.columns) == ((RUN[:1] if table.SOURCE == "split" else RUN) + table.COLUMNS)
    assert len(made) == len(rows)


def test_a_reader_that_reads_another_file_is_refused(tmp_path, monkeypatch):
    """Nothing would notice that it changes."""
    (tmp_path / "names.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    reads = Table("run.json", lambda sources: ((run, "train", "named", Path("names.json").read_text()) for run in sources))
    monkeypatch.setattr(plugins, "load", lambda contract, module: reads)
    monkeypatch.setattr(integrity, "verify", lambda path: None)
    (path, *_) = sources(reads, "digits_concat", tmp_path).values()
    with pytest.raises(PermissionError, match=rf"tables/run\.py: collect may read only the files .*: not {tmp_path}/names\.json"):
        aggregate([path], tmp_path / "table.csv")


def test_no_two_readers_have_the_same_source():
    read = [plugins.declarations(f"tables.{name}")["SOURCE"] for name in plugins.available("tables")]
    assert len(set(read)) == len(read)


def test_two_readers_of_the_same_file_are_refused(monkeypatch):
    declared = plugins.declarations
    own = {"tables.costs": {"SOURCE": "run.json"}}
    monkeypatch.setattr(tables, "available", lambda folder: ("costs", "run"))
    monkeypatch.setattr(tables, "declarations", lambda module: own.get(module) or declared(module))
    with pytest.raises(ValueError, match=r"tables\.costs and tables\.run both read run\.json"):
        tables.reader_of("run.json")
