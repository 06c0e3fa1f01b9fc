"""Salience of single components and of their conjunctions in the layers of randomly weighted networks of infinite width."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import comb

from compositional.figures import style
from compositional.figures.conjunction_values import shades_of

SOURCE = "metrics.csv"
PARAMETERS = {
    "models": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "a line each: the model, and its label",
    },
    "by": {
        "enum": ["order", "components"],
        "default": "order",
        "description": "a panel a number of components in the conjunction, or a panel a set of components",
    },
    "stated_layers": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0},
        "default": [1, 5, 20],
        "description": "layers of which the caption states the numbers",
    },
}


def saliences(table: pd.DataFrame) -> pd.DataFrame:
    """Columns model, name (a set of components), order, layer, value."""
    rows = table[(table.split == "kernel") & table.metric.str.contains(" at layer ")]
    name = rows.metric.str.removeprefix("salience of ").str.partition(" at layer ")
    found = rows.assign(name=name[0], layer=name[2].astype(int), order=name[0].str.count(r"\+") + 1)
    return found[found.name != "none"][["model", "name", "order", "layer", "value"]]


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    rows, models = saliences(table), style.present(options["models"], table.model)
    key = "order" if options["by"] == "order" else "name"
    panels = list(dict.fromkeys(rows.sort_values(["order", "name"])[key]))
    components = int(rows.order.max())
    figure, grid = plt.subplots(1, len(panels), figsize=(2.5 * len(panels) + 1.4, 2.7), squeeze=False, layout="constrained")
    shades = plt.get_cmap("tab10").colors if options["by"] == "order" else shades_of(len(models))
    for axes, panel in zip(grid[0], panels, strict=True):
        for (model, label), shade in zip(models.items(), shades, strict=False):
            curve = rows[(rows.model == model) & (rows[key] == panel)].groupby("layer").value.mean()
            axes.plot(curve.index, curve, color=shade, label=label, linewidth=1.4)
        if key == "order":
            axes.axhline(1 / comb(components, panel), color="0.5", linestyle=":", linewidth=1)
            axes.set_title(f"conjunctions of {panel}" if panel > 1 else "single components")
        else:
            axes.set_title(panel)
        axes.set(xlabel="layer", xlim=(0, rows.layer.max()), ylim=(0, None))
        axes.grid(axis="y", color="0.92")
    grid[0, 0].set_ylabel("salience")
    grid[0, -1].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    lines = [
        f"Normalized salience against depth in randomly weighted networks of infinite width, {components} components, one-hot "
        "input. "
        + (
            "Dotted: a representation of conjunctions of this order alone. "
            if key == "order"
            else f"The label is the first component's share q of the input; the models are {', '.join(models)}. "
        )
        + "Claim: depth raises the salience of the full conjunction and lowers that of single components.",
        "",
    ]
    full = rows[rows.order == components].pivot_table(index="layer", columns="model", values="value")
    single = rows[rows.order == 1].pivot_table(index="layer", columns="model", values="value")
    for model, label in models.items():
        for layer in options["stated_layers"]:
            own = rows[(rows.model == model) & (rows.layer == layer)].groupby(key, sort=False).value.mean()
            shown = ", ".join(f"{'Sal(' + str(panel) + ')' if key == 'order' else panel} {own[panel]:.3f}" for panel in panels)
            lines.append(f"* {label}, layer {layer}: {shown}")
        rises, falls = full[model].iloc[1:].is_monotonic_increasing, single[model].is_monotonic_decreasing
        lines.append(
            f"* {label}: full conjunction rises with every layer from the first on: {style.verdict(rises)}; "
            f"single components fall with every layer: {style.verdict(falls)}"
        )
    return figure, "\n".join(lines)
