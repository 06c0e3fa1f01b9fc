"""Stage aggregate: many runs in one tidy table."""

from __future__ import annotations

import csv
from importlib import import_module
from pathlib import Path

from compositional import files
from compositional.records import integrity
from compositional.runs import Run
from compositional.tables import examples

KEY = ("task", "model", "regularizer", "lambda", "seed")


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
