"""Decision regions of the toy problem during training, or of several seeds at its end, one row per initialization."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from compositional.figures.shared import claims, page, quadrants

SOURCE = "history.csv"
PARAMETERS = {
    "along": {
        "enum": ["step", "seed"],
        "default": "step",
        "description": "one panel per recorded step of the first seed, or one panel per seed at the last step",
    },
    "columns": {"type": "integer", "minimum": 1, "default": 6, "description": "panels side by side"},
    "models": {
        "type": "object",
        "minProperties": 1,
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "the models to show, in order, each with its title",
    },
}
CLASSES = ("#F6D5B8", "#BFDDF0")  # colors of Y_1 = 0 and Y_1 = 1


def _panel(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    scores = quadrants.coordinates(rows[rows.split == "grid"]).pivot(index="second", columns="first", values="score")
    if scores.notna().any(axis=None):
        axes.contourf(scores.columns, scores.index, scores, levels=[-np.inf, 0, np.inf], colors=CLASSES)
    if scores.min(axis=None) < 0 < scores.max(axis=None):
        axes.contour(scores.columns, scores.index, scores, levels=[0], colors="black", linewidths=1)
    axes.add_patch(Rectangle((0, 0), 1, 1, fill=False, linestyle="--", edgecolor="0.25", linewidth=0.9, clip_on=False))
    share = rows[(rows.split == "test") & (rows.metric == "accuracy")].value.dropna()
    axes.set_title(f"{title}: " + (f"{share.item():.2f}" if len(share) else "diverged"))
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
    axes.tick_params(labelsize="x-small", length=2)
    axes.label_outer()


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    along, columns, models = options["along"], options["columns"], options["models"]
    if along == "step":
        shown_of, table = f"Seed {table.seed.min()}", table[table.seed == table.seed.min()]
    else:  # a diverged run ends earlier than the others
        shown_of = f"Step {table.step.max()}"
        table = table[table.step == table.groupby(["task", "model", "seed"]).step.transform("max")]
    shown = sorted(set(table[along]))
    height = -(-len(shown) // columns)
    figure = plt.figure(figsize=(1.25 * columns + 0.4, (1.45 * height + 0.35) * len(models)), layout="constrained")
    lines = [
        "Decision regions of the toy problem: predict Y_1 from X_1, whose sign determines it, and the redundant X_2. The dashed "
        "quadrant is the test set, never seen in training. A compositional solution classifies all of it as Y_1 = 1 (blue) and "
        "has the vertical axis as its boundary. Numbers are the share of this quadrant that is classified correctly. "
        f"{shown_of}, one panel per {along}. The paper's claim: training loses the test quadrant. "
        + (
            "It holds if most seeds end with less than half of it, and is open if the 95 % interval (Clopper and Pearson) of the "
            "share of such seeds includes one half."
            if along == "seed"
            else "One seed cannot judge it."
        ),
        "",
    ]
    parts = figure.subfigures(len(models), 1, squeeze=False)[:, 0]
    for subfigure, (model, name) in zip(parts, models.items(), strict=True):
        rows = table[table.model == model]
        subfigure.suptitle(f"initialization and loss: {name}")
        grid = subfigure.subplots(height, columns, squeeze=False, sharex=True, sharey=True)
        for axes, value in zip(grid.flat, shown, strict=False):
            _panel(axes, rows[rows[along] == value], f"{along} {value}")
        for axes in grid.flat[len(shown) :]:
            axes.set_axis_off()
        subfigure.supxlabel("X₁, relevant")
        subfigure.supylabel("X₂, redundant")
        accuracy = rows[rows.metric == "accuracy"].pivot(index=along, columns="split", values="value")
        lines.append(f"* {name}: share of the test quadrant that is correct (training accuracy), by {along}")
        lines += [
            f"  - {value}: " + ("diverged" if np.isnan(row.test) else f"{row.test:.3f} ({row.train:.3f})")
            for value, row in accuracy.iterrows()
        ]
        ends = rows[(rows.metric == "accuracy") & (rows.split == "test")].sort_values("step").groupby("seed").tail(1).value
        known = ends.dropna()
        if along == "seed" and len(known):
            lost, gone = int((known < 0.5).sum()), len(ends) - len(known)
            counted = f"{lost} of {len(known)} seeds" + (f" ({gone} more diverged)" if gone else "")
            low, high = share = claims.of_share(known < 0.5)
            verdict = claims.verdict({"": (low - 0.5, high - 0.5)})
            lines.append(f"  - less than half at the end in {counted}{claims.stated(share)}: {verdict}")
    for label, shade in enumerate(CLASSES):
        figure.axes[0].scatter([], [], marker="s", color=shade, label=f"classified as Y₁ = {label}")
    figure.axes[0].plot([], [], "--", color="0.25", linewidth=0.9, label="test quadrant")
    page.legend(figure, figure.axes[:1], options)
    return figure, "\n".join(lines)
