"""Stage aggregate: collect many runs in one tidy table."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any, TextIO

from compositional import files, plugins
from compositional.records import integrity, provenance, undeclared
from compositional.records.places import STAGES, record_of, sources_of
from compositional.runs import Run
from compositional.stages.shared.job import check
from compositional.tables import Table, reader_of
from compositional.tables.shared.reading import RUN


class MixedError(ValueError):
    """Runs of one table differ in something that must be equal."""


def perform(content: dict[str, Any], log: TextIO) -> None:
    """Make the table of a recipe file, and its record."""
    recipe, results = content["recipe"], Path("results")
    table = results / "tables" / f"{recipe['figure']}.csv"
    sources = [results / path for path in sources_of(recipe)]
    read = {path: provenance.read(results / path) for path in recipe["of"]}
    records = [record for path, record in read.items() if path.endswith("/run.json")]
    for name in STAGES.values():
        _check_devices([record for path, record in read.items() if path.endswith(f"/{name}")])
    with provenance.recording(results / record_of("tables", recipe["figure"]), [table], recipe) as record:
        aggregate(sources, table)
        check(content, results)  # another call may have replaced runs since the job began
        record["made_from"] = provenance.summary(records)
        record["inputs"] = provenance.digests(results, sources)


def _check_devices(records: list[dict[str, Any]]) -> None:
    """Refuse a mixture of devices. The recipes guarantee that the runs agree in everything else.

    Raises:
        MixedError: runs were trained or measured on different devices; the message names some of them.
    """
    runs: dict[str, list[str]] = defaultdict(list)
    for record in records:
        runs[record["device"]].append(record["run"])
    if len(runs) > 1:
        named = [f"on {device} {', '.join(of[:3])}{' ...' if len(of) > 3 else ''}" for device, of in sorted(runs.items())]
        raise MixedError(
            f"runs were trained or measured on different devices: {'; '.join(named)}. A table must not mix them. Set "
            f"device: {min(runs)} (or another of these) in the configuration: runs of other devices are then made again"
        )


def aggregate(sources: list[Path], destination: Path) -> None:
    """Collect the results of runs: task, model, regularizer, lambda, seed, (step,) split, metric, value.

    Args:
        sources: one or several files from each run's folder, or folders of tasks. If `compositional.tables` has a reader for a
            file, the reader makes the rows. Otherwise the files are CSV files with the same columns, and their rows are copied.

    Raises:
        FileNotFoundError: runs of the grid are missing; the message names all of them.
        ValueError: files have different columns.
    """
    if missing := [str(path) for path in sources if not path.exists()]:
        raise FileNotFoundError(f"missing: {', '.join(missing)}. Call the same command again to make them")
    read: dict[str, dict[Any, Path]] = defaultdict(dict)
    for path in sources:
        integrity.verify(path)
        name, of = ("split", path.name) if path.is_dir() else (path.name, Run.of_folder(path.parent))
        read[name][of] = path
    columns: dict[str, tuple[str, ...]] = {}
    rows: list[tuple] = []
    for name, paths in read.items():
        if reader := reader_of(name):
            table = plugins.load(Table, reader)
            collect = f"{plugins.module_path(reader)}: collect"
            why = f"{collect} may read only the files that it gets, so that the table is made again if a file changes"
            with undeclared.refused([*paths.values()], why, everywhere=True), undeclared.no_random_numbers(collect):
                columns[name], found = table.COLUMNS, [*table.collect(paths)]
        else:
            columns[name], found = _as_they_are(paths)
        rows += [(*_key(of), *line) for of, *line in found]
    if len(set(columns.values())) > 1:
        named = "; ".join(f"of {name}: {', '.join(own)}" for name, own in columns.items())
        raise ValueError(f"the columns differ: {named}. A figure's SOURCE must not mix such files")
    first = next(iter(read))
    files.write_csv(destination, (*(RUN[:1] if first == "split" else RUN), *columns[first]), rows)


def _as_they_are(paths: dict[Run, Path]) -> tuple[tuple[str, ...], list[tuple]]:
    """Columns and rows of CSV files; the run comes first in each row."""
    columns: tuple[str, ...] = ()
    rows: list[tuple] = []
    for run, path in paths.items():
        with path.open(newline="", encoding="utf-8") as stream:
            own, *lines = csv.reader(stream)
        columns = columns or tuple(own)
        if tuple(own) != columns:
            raise ValueError(f"{path} has the columns {', '.join(own)}, other files {', '.join(columns)}")
        rows += [(run, *line) for line in lines]
    return columns, rows


def _key(of: Run | str) -> tuple:
    return (of,) if isinstance(of, str) else (of.task, of.model, of.regularizer, of.strength, of.seed)
