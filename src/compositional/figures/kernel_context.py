"""Phase diagram of context dependence: which representations let a kernel machine generalize, and why."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from compositional.figures.shared import kernel_theory, page, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "levels": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 3},
        "default": {},
        "description": "the tasks CD-1, CD-2 and CD-3, each with its number",
    },
    "grid": {
        "type": "string",
        "pattern": ".",
        "names": "models",
        "default": "",
        "description": "the model with the grid of kernels",
    },
    "values": {
        "type": "string",
        "pattern": ".",
        "names": "models",
        "default": "",
        "description": "the model with single representations",
    },
    "representations": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "kernels of the model `values` (similarities as in the metrics), each with its label",
    },
    "bars": {
        "type": "array",
        "items": {
            "type": "array",
            "prefixItems": [{"type": "string", "names": "options.representations.*"}, {"type": "integer"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "default": [],
        "description": "pairs of a representation's label and a level, for which conjunction values are shown",
    },
    "networks": {
        "type": "object",
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "models with layers of infinite networks, drawn as paths, each with its label",
    },
}
REGIONS = ("none", "CD-1", "CD-2 and CD-1", "all three", "other")
_COLORS = ("#bdbdbd", "#E69F00", "#56B4E9", "#009E73", "#CC79A7")


def region(right: np.ndarray) -> np.ndarray:
    """Places in REGIONS, given whether CD-1, CD-2 and CD-3 generalize: (n, 3) of bool -> (n,)."""
    in_order = right.cumprod(1).sum(1)  # how many generalize, before the first that does not
    return np.where(in_order == right.sum(1), in_order, REGIONS.index("other"))


def _diagram(axes: Axes, table: pd.DataFrame, options: dict[str, Any]) -> list[str]:
    """Draw the phase diagram; returns its text for the caption."""
    own = table[(table.model == options["grid"]) & table.metric.str.startswith("accuracy at ")]
    own = own.assign(level=own.task.map(options["levels"]))
    accuracy = own[own.split == "test"].pivot(index="metric", columns="level", values="value")
    fitted = own[own.split == "train"].pivot(index="metric", columns="level", values="value").loc[accuracy.index] == 1
    kernels = accuracy.index.str.removeprefix("accuracy at ")
    single, both = np.array([kernel.split() for kernel in kernels], dtype=float).T
    double = both - 2 * single
    kinds = region(((accuracy == 1) & fitted)[[1, 2, 3]].to_numpy())
    axes.scatter(single, double, c=kinds, cmap=ListedColormap(_COLORS), vmin=-0.5, vmax=4.5, s=9, marker="s", linewidths=0)
    for kind, (name, shade) in enumerate(zip(REGIONS, _COLORS, strict=True)):
        if (kinds == kind).any():
            axes.scatter([], [], color=shade, marker="s", label=f"generalizes on {name}")
    without = kinds[np.abs(double) < 1e-6]
    beyond = int(((accuracy > 0) & (accuracy < 1) & fitted).to_numpy().sum())
    return [
        f"* {len(kinds)} representations: "
        + ", ".join(f"{int((kinds == kind).sum())} {name}" for kind, name in enumerate(REGIONS)),
        f"* without pairs (salience 0): {int((without == 0).sum())} of {len(without)} generalize on none",
        f"* machines that do not fit their training set (a singular kernel): {int((~fitted).to_numpy().sum())} of {fitted.size}",
        f"* accuracies strictly between 0 and 1 (by symmetry there should be none): {beyond} of {accuracy.size}",
    ]


def _paths(axes: Axes, table: pd.DataFrame, networks: dict[str, str]) -> None:
    """Draw the layers of infinite networks in the phase diagram."""
    for (model, label), line in zip(networks.items(), ("-", "--", "-.", ":", (0, (1, 3))), strict=False):
        rows = kernel_theory.saliences(table[table.model == model])
        path = rows[rows.layer.between(1, 10)].groupby(["layer", "order"]).value.mean().unstack()
        name = f"{label}, layers 1 to 10"
        axes.plot(path[1], path[2], linestyle=line, color="k", linewidth=1, marker="o", markersize=1.5, label=name)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    levels = {number: task for task, number in options["levels"].items()}
    figure, (left, *right) = plt.subplots(1, 3, figsize=(13.2, 4.8), layout="constrained", width_ratios=(1.15, 1, 1))
    lines = [
        "Support vector machines on context dependence. Left: on which of CD-1, CD-2 and CD-3 a representation generalizes "
        "(accuracy on new combinations is exactly 1), by its saliences of single components and of pairs; paths are the layers "
        "of randomly weighted networks of infinite width. Middle and right: mean absolute value of each type of conjunction in "
        "the machine's outputs, and in the classes that it predicts (-1 or 1), as in the paper.",
        "",
        *_diagram(left, table, options),
    ]
    _paths(left, table[table.task == levels[3]], options["networks"])
    own = table[table.model == options["values"]]
    for kernel, label in options["representations"].items():
        single, both = (float(part) for part in kernel.split())
        at = single, both - 2 * single
        left.scatter(*at, color="k", marker="*", s=60, zorder=4, label="representations of the bars")
        left.annotate(
            label, at, xytext=(0, -15), ha="center", textcoords="offset points", fontsize="small", bbox=style.BEHIND, zorder=4
        )
        reached = own[(own.split == "test") & (own.metric == f"accuracy at {kernel}")].set_index("task").value
        lines.append(
            f"* {label} ({at[0]:.4f}, {at[1]:.4f}): accuracy "
            + ", ".join(f"CD-{number} {reached[task]:.2f}" for number, task in sorted(levels.items()))
        )
    left.set(xlabel="salience of single components", ylabel="salience of pairs", xlim=(0, 0.335), ylim=(-0.005, None))
    names = {label: kernel for kernel, label in options["representations"].items()}
    outputs, classes = {}, {}
    for label, level in options["bars"]:
        rows = own[(own.task == levels[level]) & own.metric.str.endswith(f" at {names[label]}")]
        rows = rows.assign(metric=rows.metric.str.partition(" at ")[0])
        outputs[f"{label}, CD-{level}"] = kernel_theory.magnitudes(rows[rows.split == "all"])
        classes[f"{label}, CD-{level}"] = kernel_theory.magnitudes(kernel_theory.values_of_classes(rows))
    for axes, (title, groups) in zip(right, (("outputs", outputs), ("predicted classes", classes)), strict=True):
        kernel_theory.bars(axes, groups, style.shades(len(groups)))
        axes.set_title(title)
        lines += [
            f"* values in {title}, {label}: " + ", ".join(f"{kind} {value:.2f}" for kind, value in values.mean().items())
            for label, values in groups.items()
        ]
    page.legend(figure, (left, *right), options)
    return figure, "\n".join(lines)
