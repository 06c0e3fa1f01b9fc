"""Spaces of representations, one panel per lambda, on the plain model's principal axes, so that directions are comparable."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from compositional.figures.shared import page, words

SOURCE = "vectors.csv"
PARAMETERS = {
    "representations": {
        "type": "object",
        "names": "representations",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "representation, as in the table -> title of its row; empty: all that exist",
    },
    "groups": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "default": {},
        "description": "label -> words: an item gets the color of its first word that is in a group",
    },
}
# Okabe and Ito's colors, then darker ones: ten classes of digits need ten colors.
PALETTE = ["#D55E00", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#8C510A", "#5E3C99", "#F0E442"]
_OTHER = "0.65"
_NAMED = 20  # items are named if a representation has at most this many


def _group(item: str, groups: dict[str, list[str]]) -> str | None:
    return next((label for word in item.split() for label, own in groups.items() if word in own), None)


def _scatter(axes: Axes, points: np.ndarray, items: list[str], groups: dict[str, list[str]]) -> None:
    of = [_group(item, groups) for item in items]
    # Later groups have smaller dots, so that all points that coincide are visible.
    sizes = np.linspace(44, 10, len(groups)) if len(groups) <= 5 else np.full(len(groups), 14)
    for label, size in [(None, 14), *zip(groups, sizes, strict=True)]:
        own = np.array([group == label for group in of])
        shade = _OTHER if label is None else PALETTE[list(groups).index(label) % len(PALETTE)]
        axes.scatter(points[own, 0], points[own, 1], s=size, color=shade, label=label, alpha=0.8, linewidths=0)
    if len(items) <= _NAMED:
        # The legend names groups. Names of other items are left out where they would cover each other.
        room, named = np.ptp(points, axis=0).max() * np.array([0.16, 0.06]), list(points[[group is not None for group in of]])
        for item, point, group in zip(items, points, of, strict=True):
            if group is None and all((abs(point - other) > room).any() for other in named):
                axes.annotate(item, point, xytext=(2, 2), textcoords="offset points", fontsize="x-small")
                named.append(point)


def _panel(axes: Axes, space: pd.DataFrame, axes_of: np.ndarray, head: str, groups: dict[str, list[str]]) -> str:
    """Draw vectors, one row per item, on two axes (2, D); returns the text about them for the caption."""
    values = space.to_numpy()
    if not np.isfinite(values).all():
        axes.set_title(f"{head}\ndiverged")
        return f"{head}: diverged"
    centered = values - values.mean(0)
    points = centered @ axes_of.T
    total = np.square(centered).sum()
    share = np.square(points).sum() / total if total > 0 else 0.0
    _scatter(axes, points, list(space.index), groups)
    axes.set_title(f"{head}\n({share:.0%} of its variance)")
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelsize="small")
    spread = np.sqrt(total / len(values))
    return f"{head}: share {share:.3f}, root mean square distance from the center {spread:.3f}"


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table (representation, item, dimension, value); options: see PARAMETERS.

    The plain run and its regularized ones must have the same seed, task and model, because all panels use the plain run's axes.

    Raises:
        ValueError: there are several problems or seeds, or no plain run, or the plain run diverged.
    """
    runs = table[["task", "model", "seed"]].drop_duplicates()
    if len(runs) > 1:
        raise ValueError(f"embeddings: the grids must have one task, model and seed; they have {runs.values.tolist()}")
    task, model, seed = runs.iloc[0]
    shown = options["representations"] or {name: name for name in dict.fromkeys(table.representation)}
    columns = sorted(
        set(zip(table["lambda"], table.regularizer, strict=True)), key=lambda one: (one[1] != "none", one[1], one[0])
    )
    if columns[0][1] != "none":
        raise ValueError("embeddings: the table lacks the plain run, whose axes all panels use")
    lines = [
        f"Representations of {task}, {model}, seed {seed}: principal components of the plain model (lambda = 0), and the other "
        "models on the same two axes after centering each. They start from the same weights and see the same batches. Directions "
        "can be compared between the panels of a row. Each panel has its own scale, because on a common scale all points of some "
        "models would coincide. In brackets: the share of a model's own variance on the two axes. The axes are those of the "
        "plain model, so a small share means that the representation varies in other directions."
        + (" Commands are shown by the mean over their words' states." if "encoder_states" in shown else ""),
        "",
    ]
    figure, grid = plt.subplots(
        len(shown), len(columns), figsize=(2.5 * len(columns) + 1.0, 2.4 * len(shown)), squeeze=False, layout="constrained"
    )
    for panels, (name, title) in zip(grid, shown.items(), strict=True):
        rows = table[table.representation == name]
        if rows.empty:
            known = ", ".join(dict.fromkeys(table.representation))
            raise ValueError(f"embeddings: representations: the table has no {name!r}, only {known}")
        spaces = {
            key: own.pivot(index="item", columns="dimension", values="value").loc[own.item.unique()]  # in the table's order
            for key, own in rows.groupby(["lambda", "regularizer"])
        }
        if not np.isfinite(spaces[columns[0]].to_numpy()).all():
            raise ValueError(f"embeddings: the plain run of {task}, {model}, seed {seed} diverged, and all panels use its axes")
        axes_of = PCA(2, svd_solver="full").fit(spaces[columns[0]].to_numpy()).components_
        shares = []
        for axes, (strength, regularizer) in zip(panels, columns, strict=True):
            head = "plain, lambda 0" if regularizer == "none" else f"{words.of(regularizer, options)}, lambda {strength:g}"
            shares.append(_panel(axes, spaces[strength, regularizer], axes_of, head, options["groups"]))
        panels[0].set_ylabel(f"{title}\nPC 2 of the plain model")
        for axes in panels[1:]:
            axes.set_ylabel("PC 2 of the plain model")
        lines += [f"* {title}", *(f"  - {share}" for share in shares)]
    for axes in grid.flat:
        axes.set_xlabel("PC 1 of the plain model")
    page.legend(figure, [grid[0, 0]], options)
    return figure, "\n".join(lines)
