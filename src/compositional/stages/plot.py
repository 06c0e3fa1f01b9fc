"""Stage plot: one figure as PDF and PNG, and its caption, from its table alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from compositional import files, plugins
from compositional.figures import Figure
from compositional.figures.shared import style
from compositional.records import integrity, provenance
from compositional.records.order import in_order
from compositional.records.places import record_of
from compositional.tables.shared.reading import read_table


def perform(content: dict[str, Any], log: TextIO) -> None:
    """Make a figure and its record as a recipe file tells."""
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
    """Draw with compositional.figures.<module>.draw(table, options) -> (figure, caption). The same table gives the same bytes."""
    integrity.verify(table)
    with plt.rc_context():
        matplotlib.rcdefaults()  # whatever a matplotlibrc of the user, or a style, says
        plt.rcParams.update(style.RC)
        figure, text = plugins.load(Figure, f"figures.{module}").draw(read_table(table), options)
        # Time stamps and the library's name would make the bytes of equal figures differ.
        for path, metadata in (
            (pdf, {"CreationDate": None, "Producer": None, "Creator": None}),
            (png, {"Software": None}),
        ):
            with files.replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], metadata=metadata)
        plt.close(figure)
    with files.replacing(caption) as temporary:
        temporary.write_text(text.strip() + "\n", encoding="utf-8")
