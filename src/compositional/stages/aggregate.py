"""Stage aggregate: many runs in one tidy table."""

from __future__ import annotations

import csv
from pathlib import Path

from compositional import files
from compositional.grid import Run

KEY = ("task", "model", "regularizer", "lambda", "seed")


def aggregate(sources: list[Path], destination: Path) -> None:
    """Collect the metrics (or curves) of runs: task, model, regularizer, lambda, seed, (step,) split, metric, value.

    Args:
        sources: a file in each run's folder, all with the same columns.

    Raises:
        FileNotFoundError: a run of the grid is missing; all missing runs are named.
    """
    if missing := [str(path) for path in sources if not path.is_file()]:
        raise FileNotFoundError("the grid is incomplete, missing: " + ", ".join(missing))
    rows: list[list] = []
    for path in sources:
        run = Run.of_folder(path.parent)
        with path.open(newline="") as stream:
            columns, *lines = csv.reader(stream)
        rows += [[run.task, run.model, run.regularizer, run.strength, run.seed, *line] for line in lines]
    files.write_csv(destination, (*KEY, *columns), rows)
