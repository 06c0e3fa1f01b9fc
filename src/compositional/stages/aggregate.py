"""Stage aggregate: many runs in one tidy table."""

from __future__ import annotations

import csv
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from compositional import files
from compositional.records import integrity, provenance
from compositional.records.places import record_of, sources_of
from compositional.runs import Run
from compositional.tables import examples

KEY = ("task", "model", "regularizer", "lambda", "seed")


class MixedError(ValueError):
    """Runs of one table differ in what must be equal."""


def perform(content: dict[str, Any], log: TextIO) -> None:
    """Make a table and its record as a recipe file tells."""
    recipe, results = content["recipe"], Path("results")
    table = results / "tables" / f"{recipe['figure']}.csv"
    sources = [results / path for path in sources_of(recipe)]
    records = [provenance.read(results / path) for path in recipe["of"] if path.endswith("/run.json")]
    _check_devices(records)
    with provenance.recording(results / record_of("tables", recipe["figure"]), [table], recipe) as record:
        aggregate(sources, table)
        record["made_from"] = provenance.summary(records)
        record["inputs"] = provenance.digests(results, sources)


def _check_devices(records: list[dict[str, Any]]) -> None:
    """Refuse runs of different devices; in all else their recipes agree.

    Raises:
        MixedError: naming them.
    """
    runs: dict[str, list[str]] = defaultdict(list)
    for record in records:
        runs[record["device"]].append(record["run"])
    if len(runs) > 1:
        named = [f"on {device} {', '.join(of[:3])}{' ...' if len(of) > 3 else ''}" for device, of in sorted(runs.items())]
        raise MixedError(
            f"runs were trained on different devices: {'; '.join(named)}. No table is made of both. Set device: {min(runs)} (or "
            "another of these) in the configuration: what was trained elsewhere is then trained again"
        )


def aggregate(sources: list[Path], destination: Path) -> None:
    """Collect what runs left: task, model, regularizer, lambda, seed, (step,) split, metric, value.

    Args:
        sources: one or several files in each run's folder. CSV files, all with the same columns, are taken as they are; of any
            other file, such as run.json, `compositional.tables.run.collect` makes rows. Or folders of tasks, whose
            examples are collected.

    Raises:
        FileNotFoundError: a run of the grid is missing; all missing runs are named.
        ValueError: CSV files have different columns, or others than the rows that are made of other files.
    """
    if missing := [str(path) for path in sources if not path.exists()]:
        raise FileNotFoundError("the grid is incomplete, missing: " + ", ".join(missing))
    if all(path.is_dir() for path in sources):
        for path in sources:
            integrity.verify(path)
        files.write_csv(destination, examples.HEADER, [row for path in sources for row in examples.rows(path)])
        return
    rows: list[list] = []
    columns: list[str] | None = None
    others: dict[str, dict[Run, Path]] = {}
    for path in sources:
        integrity.verify(path)
        run = Run.of_folder(path.parent)
        if path.suffix != ".csv":
            others.setdefault(path.stem, {})[run] = path
            continue
        with path.open(newline="") as stream:
            own, *lines = csv.reader(stream)
        columns = columns or own
        if own != columns:
            raise ValueError(f"{path} has the columns {', '.join(own)}, other files {', '.join(columns)}")
        rows += [[*_key(run), *line] for line in lines]
    collected = ["split", "metric", "value"]
    if others and columns not in (None, collected):
        raise ValueError(
            f"{', '.join(sorted(others))} make rows of {', '.join(collected)}, the CSV files beside them have "
            f"{', '.join(columns)}: a figure's SOURCE must not mix them"
        )
    for name, paths in others.items():
        collect = import_module(f"compositional.tables.{name}").collect
        rows += [[*_key(run), *line] for run, *line in collect(paths)]
    files.write_csv(destination, (*KEY, *(columns or collected)), rows)


def _key(run: Run) -> tuple:
    return run.task, run.model, run.regularizer, run.strength, run.seed
