"""Kernel machines on symbolic addition: how far values of items shrink, compared with the closed form (memorization leak)."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import item_values, page, style
from compositional.measures import kernels
from compositional.tasks.shared import designs

SOURCE = "metrics.csv"
PARAMETERS = {
    "sets": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "training sets that are shown separately: the task of each, and its title",
    },
    "counts": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "integer", "minimum": 1},
        "default": {},
        "description": "tasks with 1, 2, ... trained items per component, for the slopes",
    },
    "machine": {
        "type": "string",
        "names": "models",
        "default": "",
        "description": "the model of the separate sets (support vector regression)",
    },
    "exact_machine": {
        "type": "string",
        "names": "models",
        "default": "",
        "description": "the model of the slopes (ridge regression)",
    },
}


def slope(rows: pd.DataFrame, kernel: str) -> float:
    """Least-squares slope of predictions against targets over the new combinations."""
    own = rows[(rows.split == "test") & rows.metric.str.startswith("output of ") & rows.metric.str.endswith(f" at {kernel}")]
    items = own.metric.str.extract(r"output of (\d+) (\d+) at").astype(int).to_numpy()
    return float(np.polyfit(designs.VALUES[items].sum(1), own.value, 1)[0])


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    sets = options["sets"]
    figure, grid = plt.subplots(1, 1 + len(sets), figsize=(2.7 * (1 + len(sets)) + 1, 3.6), layout="constrained")
    lines = [
        "Left: slope of predictions on new combinations against the salience s of a single component, by the number p of trained "
        "items per component; lines are the closed form p s / (1 + (p - 2) s), dots are ridge regression. Right: an item's "
        "learned value against its true one, support vector regression (epsilon 0.1), one color per kernel; dashed: true "
        "values. Items seen with all others are left out.",
        "",
    ]
    line = np.linspace(0, 0.5, 101)
    for (task, count), shade in zip(options["counts"].items(), style.apart(len(options["counts"])), strict=True):
        rows = table[(table.task == task) & (table.model == options["exact_machine"])]
        names = sorted({metric.partition(" at ")[2] for metric in rows.metric if " at " in metric}, key=float)
        measured = [slope(rows, name) for name in names]
        grid[0].plot(line, kernels.addition_slope(line, count), color=shade, label=f"p = {count}, closed form", linewidth=1.2)
        grid[0].scatter(
            [float(name) for name in names], measured, color=shade, s=14, zorder=3, label=f"p = {count}, ridge regression"
        )
        exact = [float(kernels.addition_slope(float(name), count)) for name in names]
        apart = max(abs(value - other) for value, other in zip(measured, exact, strict=True))
        shown = ", ".join(f"{value:.3f} at {name}" for name, value in zip(names, measured, strict=True))
        lines.append(f"* p = {count}: slope {shown}; largest distance from the closed form {apart:.1e}")
    grid[0].set(xlabel="salience of a component", ylabel="slope of predictions", title="slope", xlim=(0, 0.51), ylim=(0, 1.03))
    for axes, (task, title) in zip(grid[1:], sets.items(), strict=True):
        rows = table[(table.task == task) & (table.model == options["machine"])]
        values = item_values.by_kernel(rows)
        error = rows[(rows.split == "test") & rows.metric.str.startswith("squared_error at ")].set_index("metric").value
        item_values.draw(axes, {f"s = {kernel}": values[kernel] for kernel in values}, style.shades(len(values.columns)))
        axes.set(title=title, ylim=(-4.3, 4.3))
        shown = ", ".join(
            f"{error[f'squared_error at {kernel}']:.3f} (slope {slope(rows, kernel):.3f}) at s = {kernel}" for kernel in values
        )
        lines.append(f"* {title}: mean squared error on new combinations {shown}")
    page.legend(figure, grid, options)
    return figure, "\n".join(lines)
