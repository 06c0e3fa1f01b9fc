"""Stage plot: draw one figure as PDF and PNG, and write its caption, from its table alone."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure as Drawing

from compositional import files, plugins
from compositional.figures import Figure
from compositional.figures.shared import page
from compositional.records import integrity, provenance, undeclared
from compositional.records.order import in_order
from compositional.records.places import record_of
from compositional.tables.shared.reading import read_table

_FROM_ITS_TABLE = "a figure is drawn from its table alone, so that it is made again if that changes"


def perform(content: dict[str, Any], log: TextIO) -> None:
    """Make the figure of a recipe file, and its record."""
    recipe, results = content["recipe"], Path("results")
    name, table = recipe["figure"], results / "tables" / f"{recipe['figure']}.csv"
    endings = {"pdf": ".pdf", "png": ".png", "caption": ".rst"}
    outputs = {kind: results / "figures" / f"{name}{ending}" for kind, ending in endings.items()}
    with provenance.recording(results / record_of("figures", name), list(outputs.values()), recipe) as record:
        plot(recipe["module"], table, in_order(recipe["options"], recipe["order"]), **outputs)
        record["figure"] = {key: recipe[key] for key in ("module", "options")}
        record["made_from"] = provenance.read(results / record_of("tables", name))["made_from"]
        record["inputs"] = provenance.digests(results, [table])


def plot(module: str, table: Path, options: dict[str, Any], *, pdf: Path, png: Path, caption: Path) -> None:
    """Save what compositional.figures.<module>.draw(table, options) returns: (figure, caption). Equal tables give equal bytes."""
    integrity.verify(table)
    with drawn(module, read_table(table), options) as (figure, text), page.fitting(figure, options.get("style", {})):
        # Time stamps and the library's name would give equal figures different bytes.
        for path, metadata in (
            (pdf, {"CreationDate": None, "Producer": None, "Creator": None}),
            (png, {"Software": None}),
        ):
            with files.replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], metadata=metadata)
    with files.replacing(caption) as temporary:
        temporary.write_text(text.strip() + "\n", encoding="utf-8")


@contextmanager
def drawn(module: str, table: pd.DataFrame, options: dict[str, Any]) -> Iterator[tuple[Drawing, str]]:
    """The figure and its caption, inside the settings that it must be saved with."""
    with plt.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # ignore the user's matplotlibrc and styles
        plt.rcParams.update(page.rc(options.get("style", {})))
        implementation = plugins.load(Figure, f"figures.{module}")
        draw = f"{plugins.module_path(f'figures.{module}')}: draw"
        with undeclared.refused([], _FROM_ITS_TABLE, everywhere=True), undeclared.no_random_numbers(draw):
            made = implementation.draw(table, options)
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Drawing) and isinstance(made[1], str)):
            kinds = f"({', '.join(type(part).__name__ for part in made)})" if isinstance(made, tuple) else type(made).__name__
            raise TypeError(f"{draw} must return (Figure, str), it returns {kinds}")
        figure, text = made
        if not figure.axes:
            raise ValueError(f"{draw} returns a figure without axes. Does the table have the rows that it looks for?")
        if not text.strip():
            raise ValueError(f"{draw} returns an empty caption. State what the figure shows, with its main numbers")
        page.fit(figure, options.get("style", {}))
        yield figure, _readable(text)
        plt.close(figure)


def _readable(caption: str) -> str:
    """A caption without nan, which is a mean of no value because runs diverged, and with a blank line before a list inside of an
    item: reStructuredText reads a list without one as a part of the item's sentence."""
    return re.sub(r"(?m)^(\S.*\n)(?=  - )", r"\1\n", re.sub(r"[+-]?\bnan\b", "unknown", caption))


def rendering() -> tuple[float, float | None]:
    """How to save a `drawn` figure: pixels per inch, and the margin in inches around the cropped page (None: not cropped)."""
    cropped = plt.rcParams["savefig.bbox"] == "tight"
    return plt.rcParams["savefig.dpi"], plt.rcParams["savefig.pad_inches"] if cropped else None
