"""Image networks on compositional tasks: performance, additivity and values against the distance of the components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import item_values, kernel_theory, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "problem": {
        "enum": ["addition", "context_dependence", "transitive_equivalence"],
        "default": "addition",
        "description": "the problem, which determines the quantities that are shown",
    },
    "columns": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "string", "names": "tasks"}},
        "default": {},
        "description": "columns: the title of each, and its tasks by distance in pixels",
    },
    "model": {"type": "string", "names": "models", "default": "", "description": "the network"},
    "about": {"type": "string", "default": "", "description": "data and scale, for the caption"},
}
_SPLITS = {"train": ("0.35", "training set"), "validation": ("#0072B2", "in distribution"), "test": ("#D55E00", "compositional")}
_BOTTOM = {
    "addition": " Bottom: an item's learned value against its true one.",
    "context_dependence": " Bottom: mean absolute value of each type of conjunction.",
}


def _line(axes: Axes, rows: pd.DataFrame, shade: str, label: str, largest: float = 1.0) -> pd.Series:
    """Draw seeds as dots, and mean and 95 % interval by distance, cut off at 0 and `largest`; returns the means."""
    groups = rows.groupby("distance").value
    means, half = groups.mean(), groups.apply(lambda values: style.drawn_interval(values.dropna().to_numpy()))
    axes.scatter(rows.distance, rows.value, s=8, color=shade, alpha=0.5, linewidths=0)
    axes.errorbar(
        means.index,
        means,
        yerr=style.inside(means, half, largest),
        color=shade,
        marker="o",
        markersize=3,
        linewidth=1.3,
        capsize=2,
        elinewidth=0.7,
        label=label,
    )
    return means


def _stated(means: Iterable[float], digits: int = 3) -> str:
    """One number per distance, for the caption; NaN means that all runs diverged."""
    return ", ".join("all diverged" if np.isnan(value) else f"{value:.{digits}f}" for value in means)


def _accuracies(axes: Axes, own: pd.DataFrame, metric: str) -> list[str]:
    """Draw accuracy or loss on every member of the tasks; returns its text for the caption."""
    rows = own[own.metric == metric]
    largest = 1.0 if metric == "accuracy" else np.inf
    said = [
        f"{name} {_stated(_line(axes, rows[rows.split == split], shade, name, largest))}"
        for split, (shade, name) in _SPLITS.items()
    ]
    axes.set_xlabel("distance (pixels)")
    if metric == "accuracy":
        axes.axhline(0.5, color="0.6", linestyle=":", linewidth=1, label="chance")
        axes.set_ylim(-0.03, 1.04)
    return said


def _additivity(axes: Axes, own: pd.DataFrame) -> list[str]:
    """Draw additivity, and the salience of components before training; returns the text about both for the caption."""
    additivity = _line(axes, own[(own.split == "all") & (own.metric == "additivity")], "k", "additivity index")
    single = own.metric.str.fullmatch(r"salience of [^+]* in convolution") & ~own.metric.str.contains("of none")
    before = own[(own.split == "initialization") & single].groupby(["distance", "seed"]).value.mean()
    salience = before.groupby("distance").mean()
    axes.plot(salience.index, salience, "s--", color="#009E73", markersize=3, linewidth=1, label="salience before training")
    axes.set(xlabel="distance (pixels)", ylim=(-0.03, 1.04))
    return [f"additivity {_stated(additivity)}", f"salience of a component before training {_stated(salience)}"]


def _values(axes: Axes, by_distance: dict[str, pd.DataFrame], problem: str) -> list[str]:
    """Draw the values of items or conjunctions; returns their text for the caption."""
    shades = style.shades(len(by_distance))
    if problem == "addition":
        learned = {distance: item_values.of_networks(rows) for distance, rows in by_distance.items()}
        item_values.draw(axes, learned, shades, size=2.5)
        return [f"slope of item values {_stated(map(item_values.slope, learned.values()))}"]
    groups = {distance: kernel_theory.magnitudes(rows[rows.split == "all"]) for distance, rows in by_distance.items()}
    kernel_theory.bars(axes, groups, shades)
    means = [values.mean() for values in groups.values()]
    return [f"{kind} {_stated((values[kind] for values in means), 2)}" for kind in kernel_theory.TYPES]


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    columns, problem = options["columns"], options["problem"]
    metric = "loss" if problem == "addition" else "accuracy"
    shown = 3 if problem in _BOTTOM else 2
    figure, grid = plt.subplots(
        shown, len(columns), figsize=(2.9 * len(columns) + 1, 2.4 * shown), squeeze=False, sharey="row", layout="constrained"
    )
    lines = [
        f"{options['about']} Top: {'squared error' if metric == 'loss' else 'accuracy'} on training examples, on new images "
        "in trained combinations (in distribution) and in new combinations (compositional), against the distance of the "
        "component images; dots are seeds, lines means with 95 % intervals (Student's t, three seeds or more, cut off at the "
        f"limits of possible values). {'Middle' if shown == 3 else 'Bottom'}: additivity index of mean outputs, and salience of "
        f"single components in the last convolution before training (squares, dashed).{_BOTTOM.get(problem, '')}",
        "",
    ]
    table = table[table.model == options["model"]]
    for panels, (title, tasks) in zip(grid.T, columns.items(), strict=True):
        tasks = {distance: task for distance, task in tasks.items() if task in set(table.task)}
        own = table[table.task.isin(tasks.values())]
        own = own.assign(distance=own.task.map({task: int(distance) for distance, task in tasks.items()}))
        said = _accuracies(panels[0], own, metric) + _additivity(panels[1], own)
        if problem in _BOTTOM:
            by_distance = {f"{distance} px": own[own.task == task] for distance, task in tasks.items()}
            said += _values(panels[2], by_distance, problem)
        panels[0].set_title(title)
        for axes in panels[:2]:
            axes.set_xticks([int(distance) for distance in tasks])
        runs = own[(own.split == "test") & (own.metric == metric)].value
        lost = f", {runs.isna().sum()} of {len(runs)} runs diverged" if runs.isna().any() else ""
        lines.append(f"* {title}, {own.seed.nunique()} seeds{lost}, distances {', '.join(tasks)}:")
        lines += [f"  - {part}" for part in said]
    grid[0, 0].set_ylabel("squared error" if metric == "loss" else "accuracy")
    grid[1, 0].set_ylabel("index, salience")
    for row, axes in enumerate(grid[:, -1]):
        marks = (style.RUN, style.INTERVAL) if row < 2 else ()
        axes.legend(*style.legend_entries([axes], *marks), loc="center left", bbox_to_anchor=(1, 0.5))
    if shown == 3:
        grid[2, 0].set_ylabel("learned value" if problem == "addition" else "mean |value|")
    return figure, "\n".join(lines)
