"""The main figure: accuracy on recombinations and in distribution against lambda, a column a task."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures import style

SOURCE = "metrics.csv"
PARAMETERS = {
    "ceilings": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "task -> task without the redundant component (setting B), whose plain run is drawn as the ceiling",
    },
    "anchors": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "default": {},
        "description": "task -> {label: published accuracy}, drawn as reference lines",
    },
}
TITLES = {"test": "recombinations never seen", "in_distribution": "in distribution"}


def _accuracies(table: pd.DataFrame, task: str, split: str) -> pd.DataFrame:
    """Accuracy of every run of a task on "test" or "in_distribution", NaN where it diverged."""
    rows = table[(table.task == task) & (table.metric == "accuracy")]
    if split == "in_distribution":
        split = "validation" if "validation" in set(rows.split) else "train"
    return rows[rows.split == split]


def _line(axes: Axes, rows: pd.DataFrame, name: str, label: str, offset: float) -> None:
    """One regularizer: every seed a dot, mean and interval a line; diverged runs as crosses at the bottom."""
    shade = style.color(name)
    # Dots stand a little beside their lambda so that lines do not hide each other's seeds.
    shifted = rows["lambda"] * (1 + offset) + (rows["lambda"] == 0) * offset * axes.linear_width
    axes.scatter(shifted, rows.value, s=9, color=shade, alpha=0.45, linewidths=0)
    diverged = rows[rows.value.isna()]
    axes.scatter(diverged["lambda"], np.zeros(len(diverged)), marker="x", s=30, color=shade, clip_on=False, zorder=5)
    groups = rows.dropna(subset="value").groupby("lambda").value
    means, half = groups.mean(), groups.apply(lambda values: style.interval(values.to_numpy()))
    low, high = np.minimum(half, means), np.minimum(half, 1 - means)
    axes.errorbar(
        means.index,
        means,
        yerr=[low, high],
        color=shade,
        label=label,
        capsize=2,
        linewidth=1.4,
        marker="o",
        markersize=3.5,
    )


def _panel(axes: Axes, table: pd.DataFrame, task: str, split: str, options: dict[str, Any]) -> None:
    rows = _accuracies(table, task, split)
    positive = sorted(set(rows["lambda"]) - {0.0})
    width = positive[0] / 2 if positive else 1.0
    axes.set_xscale("symlog", linthresh=positive[0] if positive else 1.0, linscale=0.6)
    axes.linear_width = width
    groups = rows[rows.regularizer != "none"].groupby(["model", "regularizer"])
    several = rows.model.nunique() > 1
    for index, ((model, name), own) in enumerate(groups):
        plain = rows[(rows.model == model) & (rows.regularizer == "none")]
        offset = 0.06 * (index - (groups.ngroups - 1) / 2)
        _line(axes, pd.concat([plain, own]), name, f"{name} ({model})" if several else name, offset)
    if split == "test":
        if (ceiling := options["ceilings"].get(task)) is not None:
            value = _accuracies(table, ceiling, "test").value.mean()
            axes.axhline(value, color="0.35", linestyle="--", linewidth=1)
            axes.annotate(
                "ceiling: nothing redundant in training",
                (0.01, value),
                xycoords=("axes fraction", "data"),
                va="bottom",
                fontsize=7,
                color="0.35",
            )
        for label, value in options["anchors"].get(task, {}).items():
            axes.axhline(value, color="0.6", linestyle=":", linewidth=1)
            axes.annotate(
                label,
                (1.0, value),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                fontsize=7,
                color="0.45",
            )
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlim(left=-width)
    axes.set_xticks([0, *positive], ["0", *(f"{value:g}" for value in positive)], rotation=45 if len(positive) > 6 else 0)
    axes.minorticks_off()
    axes.grid(axis="y", color="0.92")


def _caption(table: pd.DataFrame, tasks: list[str], options: dict[str, Any]) -> str:
    """Claim and numbers, all from the table."""
    lines = [
        "Accuracy against the strength lambda of the compositional regularizer. Top: combinations never seen in training; "
        "bottom: in distribution. Every seed is a dot, lines are means with 95 % intervals (Student's t), lambda = 0 is the "
        "plain model and shared by all lines. Nothing was selected on the test set: the training budget is fixed.",
        "",
    ]
    for task in tasks:
        rows = _accuracies(table, task, "test")
        for model, own in rows.groupby("model"):
            plain = own[own.regularizer == "none"].value
            lines.append(f"* {task}, {model}: {plain.mean():.3f} at lambda = 0 ({plain.count()} seeds)")
            for name, regularized in own[own.regularizer != "none"].groupby("regularizer"):
                means = regularized.groupby("lambda").value.mean()
                if means.notna().any():
                    best, largest = means.idxmax(), means.index.max()
                    lines.append(
                        f"  - {name}: {means[best]:.3f} at its best lambda, {best:g}; {means[largest]:.3f} at the largest, {largest:g}"
                    )
                if lost := int(regularized.value.isna().sum()):
                    lines.append(f"  - {name}: {lost} runs diverged (crosses), not averaged")
        if (ceiling := options["ceilings"].get(task)) is not None:
            lines.append(f"  - ceiling ({ceiling}): {_accuracies(table, ceiling, 'test').value.mean():.3f}")
    if "sequence" in options.get("swaps", "sequence"):
        lines += [
            "",
            "For sequences, recombination exchanges words that an inferred lexicon finds alike. Such a swap can produce test inputs: it is augmentation in disguise.",
        ]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options as in PARAMETERS."""
    tasks = [task for task in sorted(set(table.task)) if task not in options["ceilings"].values()]
    figure, grid = plt.subplots(2, len(tasks), figsize=(4.2 * len(tasks), 5.6), sharey=True, squeeze=False, layout="constrained")
    for column, task in enumerate(tasks):
        for row, split in enumerate(TITLES):
            _panel(grid[row, column], table, task, split, options)
        grid[0, column].set_title(task)
        grid[1, column].set_xlabel("lambda")
        grid[0, column].legend(fontsize=7, loc="lower left" if task != "scan_jump" else "center right")
    for row, title in enumerate(TITLES.values()):
        grid[row, 0].set_ylabel(f"accuracy, {title}")
    return figure, _caption(table, tasks, options)
