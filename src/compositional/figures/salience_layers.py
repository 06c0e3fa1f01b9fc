"""Salience of single components and of their conjunctions in the layers of randomly weighted networks of infinite width."""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import comb

from compositional.figures.shared import kernel_theory, page, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "models": {
        "type": "object",
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "lines: the model of each, and its label; one panel per number of components in the conjunction",
    },
    "columns": {
        "type": "object",
        "additionalProperties": {"type": "object", "names": "models", "additionalProperties": {"type": "string"}},
        "default": {},
        "description": "instead of `models`: columns, the title of each and its `models`; one row per set of components",
    },
    "stated_layers": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0},
        "default": [1, 5, 20],
        "description": "layers whose numbers the caption states",
    },
}


def _grid(panels: list, titles: list[str]) -> tuple[Figure, dict[tuple[str, Any], Axes]]:
    """The figure, and its axes by column title and panel: panels are side by side, or below each other if columns have titles."""
    if titles == [""]:
        figure, grid = plt.subplots(1, len(panels), figsize=(2.5 * len(panels) + 1.4, 2.7), squeeze=False, layout="constrained")
        return figure, {("", panel): axes for panel, axes in zip(panels, grid[0], strict=True)}
    size = (1.7 * len(titles) + 1.6, 1.6 * len(panels) + 0.7)
    figure, grid = plt.subplots(
        len(panels), len(titles), figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, axes in zip(panels, grid[:, 0], strict=True):
        axes.set_ylabel("salience of\n" + re.sub(r"(?<=[a-z])(?=\d)", " ", panel).replace("+", " +\n"))
    for title, axes in zip(titles, grid[0], strict=True):
        axes.set_title(title)
    grid[0, 0].set_ylim(0, 1)
    return figure, {(title, panel): grid[row, column] for row, panel in enumerate(panels) for column, title in enumerate(titles)}


def _caption(rows: pd.DataFrame, columns: dict[str, dict[str, str]], panels: list, key: str, layers: list[int]) -> str:
    """Numbers and verdicts. columns: the models by the title of their column. key: what the panels are, "order" or "name"."""
    by_order, components = key == "order", int(rows.order.max())
    lines = [
        f"Normalized salience against depth in randomly weighted networks of infinite width, {components} components, one-hot "
        "input. "
        + (
            "Dotted: a representation of conjunctions of this order alone. "
            if by_order
            else "Rows are sets of components, columns are activations, lines are the first component's share q of the input. "
        )
        + "Claim: depth raises the salience of the full conjunction and lowers that of single components"
        + ("; those in between peak at some depth." if components > 2 else "."),
        "",
    ]
    single, *between, full = (
        rows[rows.order == order].groupby(["layer", "model"]).value.mean().unstack() for order in range(1, components + 1)
    )
    named = {
        model: label if by_order else f"{title}, {label}" for title, models in columns.items() for model, label in models.items()
    }
    claims = ["full conjunction rises with every layer from the first on", "single components fall with every layer"]
    claims += ["those in between peak before the last layer"] if between else []
    verdicts: dict[str, tuple[bool, ...]] = {}
    for model, label in named.items():
        for layer in layers:
            own = rows[(rows.model == model) & (rows.layer == layer)].groupby(key, sort=False).value.mean()
            shown = ", ".join(f"{'Sal(' + str(panel) + ')' if by_order else panel} {own[panel]:.3f}" for panel in panels)
            lines.append(f"* {label}, layer {layer}: {shown}")
        peaks = all(0 < curve[model].to_numpy().argmax() < len(curve) - 1 for curve in between)
        verdicts[label] = full[model].iloc[1:].is_monotonic_increasing, single[model].is_monotonic_decreasing, peaks
    if not by_order:
        verdicts = {"every network": tuple(map(all, zip(*verdicts.values(), strict=True)))}
    for label, verdict in verdicts.items():
        judged = zip(claims, verdict, strict=False)
        lines.append(f"* {label}: " + "; ".join(f"{claim}: {style.verdict(holds, of=rows.value)}" for claim, holds in judged))
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    rows, by_order = kernel_theory.saliences(table), not options["columns"]
    asked = {"": options["models"]} if by_order else options["columns"]
    columns = {title: found for title, models in asked.items() if (found := style.present(models, table.model))}
    key = "order" if by_order else "name"
    panels = list(dict.fromkeys(rows.sort_values(["order", "name"])[key]))
    components = int(rows.order.max())
    figure, places = _grid(panels, list(columns))
    for (title, panel), axes in places.items():
        models = columns[title]
        shades = style.apart(len(models)) if by_order else style.shades(len(models))
        for (model, label), shade in zip(models.items(), shades, strict=False):
            curve = rows[(rows.model == model) & (rows[key] == panel)].groupby("layer").value.mean()
            axes.plot(curve.index, curve, color=shade, label=label, linewidth=1.4)
        if by_order:
            axes.axhline(1 / comb(components, panel), color="0.5", linestyle=":", linewidth=1, label="this order alone")
            axes.set_title(f"conjunctions of {panel}" if panel > 1 else "single components")
            axes.set(ylabel="salience", ylim=(0, None))
        axes.set_xlabel("layer" if by_order or panel == panels[-1] else "")
        axes.set_xlim(0, rows.layer.max())
        axes.grid(axis="y", color="0.92")
    page.legend(figure, places.values(), options)
    return figure, _caption(rows, columns, panels, key, options["stated_layers"])
