"""Two items, two components: margins of kernel machines on invariance and partial exposure, and failure on equivalence."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import page, style
from compositional.measures import kernels

SOURCE = "metrics.csv"
PARAMETERS = {
    "invariance": {"type": "string", "names": "tasks", "default": "invariance", "description": "the task of this problem"},
    "partial_exposure": {
        "type": "string",
        "names": "tasks",
        "default": "partial_exposure",
        "description": "the task of this problem",
    },
    "equivalence": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "tasks of transitive equivalence, each with its title",
    },
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6), layout="constrained")
    lines = [
        "Left: output times label against the salience of a component, for ridge regression (dots, the minimum over new "
        "combinations) and the closed forms k / (1 - k) and 2 k^2 / (1 - 2 k^2) (lines). Right: accuracy of support vector "
        "machines on new pairs of transitive equivalence (dots) and in training (squares). Points coincide, so their size "
        "decreases from task to task. By symmetry, a kernel machine's output on new pairs is zero; an output that the solver "
        "cannot distinguish from zero counts as half right.",
        "",
    ]
    line = np.linspace(0, 0.5, 101)
    forms = {"invariance": kernels.invariance_margin, "partial_exposure": kernels.partial_exposure_margin}
    for (problem, form), shade in zip(forms.items(), style.apart(2), strict=True):
        rows = table[(table.task == options[problem]) & (table.split == "test") & table.metric.str.startswith("output of ")]
        parts = rows.metric.str.extract(r"output of (?P<first>\d) \d at (?P<kernel>\S+)").astype(float)
        margin = (rows.value * (2 * parts["first"] - 1)).groupby(parts.kernel).agg(["min", "max"])
        left.plot(line, form(line), color=shade, label=f"{problem.replace('_', ' ')}, closed form")
        left.scatter(
            margin.index, margin["min"], color=shade, s=12, zorder=3, label=f"{problem.replace('_', ' ')}, ridge regression"
        )
        apart = max(np.abs(margin[edge] - form(margin.index.to_numpy())).max() for edge in margin)
        lines.append(f"* {problem}: {len(margin)} kernels, largest distance from the closed form {apart:.1e}")
    left.set(xlabel="salience of a component", ylabel="output x label", xlim=(0, 0.51), ylim=(0, 1.03))
    sizes = np.linspace(8, 3, len(options["equivalence"]))
    for (task, title), shade, size in zip(options["equivalence"].items(), style.shades(len(sizes)), sizes, strict=True):
        rows = table[(table.task == task) & table.metric.str.startswith("accuracy at ")]
        at = rows.metric.str.removeprefix("accuracy at ").astype(float)
        curves = {split: own.set_index(at[own.index]).value.sort_index() for split, own in rows.groupby("split")}
        right.plot(curves["test"].index, curves["test"], "o", color=shade, markersize=size, label=f"{title}, new pairs")
        right.plot(curves["train"].index, curves["train"], "s", color=shade, markersize=size, label=f"{title}, training")
        new = table[(table.task == task) & (table.split == "test") & table.metric.str.startswith("largest output at ")]
        lines.append(
            f"* transitive equivalence, {title}: training {curves['train'].min():.3f} or more, new pairs from "
            f"{curves['test'].min():.3f} to {curves['test'].max():.3f}; largest output on new pairs {new.value.max():.1e}"
        )
    right.axhline(0.5, color="0.6", linestyle=":", linewidth=1, label="chance")
    right.set(xlabel="salience of a component", ylabel="accuracy", xlim=(0, 0.51), ylim=(-0.03, 1.05))
    page.legend(figure, (left, right), options)
    return figure, "\n".join(lines)
