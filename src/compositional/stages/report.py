"""One self-contained page about a build: figures, tables, captions, the status of every run, times, environment."""

from __future__ import annotations

import base64
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml
from docutils.core import publish_parts

from compositional import files
from compositional.figures.shared import style
from compositional.planning import archived
from compositional.planning.archived import LOCK, TEMPLATE
from compositional.records import provenance
from compositional.records.places import record_of
from compositional.runs import Run, figure_runs, format_lambda, run_folder
from compositional.stages.shared import hover
from compositional.tables.shared.reading import read_table

ROWS = 300  # of a figure's summary
COLUMNS = 12
EMBEDDED_BYTES = 2_000_000  # larger tables are named instead of embedded


def _html(text: str) -> str:
    """A caption's reStructuredText as HTML; it cannot include files or raw HTML."""
    settings = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 5, "halt_level": 5}
    return publish_parts(text, writer="html5", settings_overrides=settings)["body"]


def _data(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def duration(seconds: float) -> str:
    """A duration in words: "0.4 s", "35 s", "7 min 50 s", "2 h 3 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def summarize(table: pd.DataFrame) -> tuple[list[str], list[list[str]], str]:
    """Means of a tidy table over seeds, ± half the 95 % interval, at the last step: column names, rows, and what was left out.

    Raises:
        KeyError: the table has no column metric or value.
    """
    notes = []
    if "step" in table:
        runs = [name for name in table if name not in ("step", "split", "metric", "value")]
        # Each run's own last step: a diverged run ends earlier than the others.
        table = table[table.step == table.groupby(runs, dropna=False).step.transform("max")].drop(columns="step")
        notes.append("at the last step")
    lines = [name for name in table if name not in ("seed", "split", "metric", "value")]
    cells = table.groupby([*lines, "split", "metric"], dropna=False, sort=True).value
    text = cells.agg(
        lambda values: (
            f"{values.mean():.3f}"
            + (f" ± {style.interval(values.dropna().to_numpy()):.3f}" if values.count() > 1 else "")
            + (f" ({lost} diverged)" if (lost := len(values) - values.count()) else "")
            if values.count()
            else "diverged"
        )
    )
    wide = text.unstack(["split", "metric"])
    wide = wide[sorted(wide.columns, key=lambda pair: (pair[1] != "accuracy", pair[0] != "test", pair))]
    if wide.shape[1] > COLUMNS or wide.shape[0] > ROWS:
        notes.append(
            f"the first {min(wide.shape[0], ROWS)} of {wide.shape[0]} rows "
            f"and {min(wide.shape[1], COLUMNS)} of {wide.shape[1]} columns"
        )
        wide = wide.iloc[:ROWS, :COLUMNS]
    keys = wide.index.to_frame(index=False).astype(object)
    rows = [
        [format_lambda(key) if isinstance(key, float) else str(key) for key in before] + [str(cell) for cell in values]
        for before, values in zip(keys.to_numpy().tolist(), wide.fillna("").to_numpy().tolist(), strict=True)
    ]
    return [*lines, *(f"{split} {metric}" for split, metric in wide.columns)], rows, "; ".join(notes)


def _points(record: dict[str, Any], table: Path, options: str) -> dict[str, Any]:
    """Width and height of a figure, and its points with the text that is shown when the pointer is on them."""
    try:
        (width, height), found = hover.points(record["recipe"], table)
    except Exception as error:  # raised by any figure module, maybe newer than the picture, which is shown without its points
        print(f"{table}: hovering over its points shows nothing: {type(error).__name__}: {error}", file=sys.stderr)
        return {"width": 1, "height": 1, "points": []}
    shown: dict[tuple[str, str], list[str]] = defaultdict(list)
    for point in found:
        command = f"snakemake results/runs/{point.run.path}/metrics.csv {options}".strip()
        shown[f"{point.x:.0f}", f"{point.y:.0f}"].append(f"{point.run.path}: {point.value}\n{command}")
    return {"width": round(width), "height": round(height), "points": [(x, y, "\n".join(said)) for (x, y), said in shown.items()]}


def _figure(results: Path, name: str, figure: dict[str, Any], options: str, digest: str | None) -> dict[str, Any]:
    """What the page shows for one figure; digest: of the recipe that the figure should have been made by."""
    image, table = results / "figures" / f"{name}.png", results / "tables" / f"{name}.csv"
    shown: dict[str, Any] = dict.fromkeys(("image", "csv", "rows", "note"))
    shown |= {"name": name, "study": figure["study"], "command": f"snakemake {results}/figures/{name}.pdf {options}".strip()}
    if not (image.is_file() and table.is_file() and image.with_suffix(".rst").is_file()):
        return shown
    record = provenance.read(results / record_of("figures", name))
    shown |= _points(record, table, options)
    shown |= {
        "other": record.get("recipe_digest") != digest,
        "image": _data(image, "image/png"),
        "caption": _html(image.with_suffix(".rst").read_text(encoding="utf-8")),
        "table": str(table),
    }
    shown["sha256"] = {path.name: files.sha256(path) for path in (image.with_suffix(".pdf"), image, table) if path.is_file()}
    if table.stat().st_size <= EMBEDDED_BYTES:
        shown["csv"] = _data(table, "text/csv")
    try:
        shown["columns"], shown["rows"], shown["note"] = summarize(read_table(table))
    except (KeyError, TypeError) as error:  # the table has another form; the page links to the file itself
        shown["note"] = f"no summary: {type(error).__name__} {error}"
    return shown


def _families(results: Path, runs: Iterable[Run]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[Run, float]]:
    """Status of every run, by task, model and regularizer; the records of existing runs; and the seconds that each run took."""
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs):
        groups[run.family].append(run)
    found, records, cost = [], [], {}
    for family, members in groups.items():
        cells: dict[str, list[dict[str, str]]] = defaultdict(list)
        counts: Counter[str] = Counter()
        seconds = 0.0
        for run in members:
            folder = run_folder(results, run)
            record = provenance.read(folder / "run.json")
            status = record.get("status", "missing")
            spent = sum(provenance.read(folder / name).get("wall_seconds", 0) for name in provenance.RUN_RECORDS)
            records += [record] if record else []
            counts[status] += 1
            seconds += spent
            cost[run] = spent
            hint = f"{run.path}: {status}" + (f", {duration(spent)}" if record else "")
            if status == "diverged":
                hint += f", at step {record['diverged_at_step']}"
            cells[format_lambda(run.strength)].append({"seed": str(run.seed), "status": status, "hint": hint})
        found.append(
            {"name": "/".join(family), "counts": counts, "runs": len(members), "time": duration(seconds), "cells": cells}
        )
    return found, records, cost


def render(results: Path, recipe: dict[str, Any]) -> str:
    """The page as HTML, with a last line that shows whether it is whole.

    Args:
        results: the results folder.
        recipe: `figures` (all configured ones, built or not), the `digests` of the recipes of those that are or will be built,
            the effective `config`, and the command-line `options` of this build, which are added to the commands on the page.
    """
    figures, options = recipe["figures"], recipe["options"]
    needed = {name: set(figure_runs(figure)) for name, figure in figures.items()}
    runs = set().union(*needed.values())
    families, records, cost = _families(results, runs)
    shown = [_figure(results, name, figure, options, recipe["digests"].get(name)) for name, figure in figures.items()]
    for figure in shown:
        own = needed[figure["name"]]
        figure |= {"cost": duration(sum(cost[run] for run in own)), "runs": len(own)}
    shown.sort(key=lambda figure: not figure["image"])
    counts: Counter[str] = sum((family["counts"] for family in families), Counter())
    made = provenance.summary(records)
    splits = [provenance.read(path) for path in sorted((results / "splits").glob(f"*{provenance.SUFFIX}"))]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    installed = provenance.environment(Path(LOCK))
    page = environment.from_string(Path(TEMPLATE).read_text(encoding="utf-8")).render(
        made_of=archived.shown(results, recipe),
        figures=shown,
        built=sum(bool(figure["image"]) for figure in shown),
        families=families,
        counts={status: counts[status] for status in ("done", "diverged", "missing")},
        runs=len(runs),
        training=duration(sum(record.get("wall_seconds", 0) for record in records)),
        made=made,
        commits=sorted({(record["source"].get("commit", "unknown"), record["source"].get("dirty", False)) for record in records}),
        splits=splits,
        source=provenance.source(),
        processor=provenance.processor(),
        python=installed["python"],
        packages=installed["packages"],
        config=yaml.safe_dump(recipe["config"], sort_keys=False, width=120),
        options=options,
    )
    return f"{page}\n{archived.signed(page)}\n"
