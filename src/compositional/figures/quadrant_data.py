"""The toy problem's data: the quadrants that training shows, and the one that it does not."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import page, quadrants

SOURCE = "history.csv"
PARAMETERS: dict = {}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table of one run (`record_outputs` names its data)."""
    points = quadrants.coordinates(table[table.step == table.step.max()])
    points["label"] = (points["first"] > 0).astype(int)
    figure, axes = plt.subplots(figsize=(3.9, 3.4), layout="constrained")
    lines = []
    looks = {
        ("train", 0): ("#D55E00", "o", "train, Y₁ = 0"),
        ("train", 1): ("#0072B2", "o", "train, Y₁ = 1"),
        ("test", 1): ("0.45", "x", "test, Y₁ = 1"),
    }
    for (split, label), (shade, marker, name) in looks.items():
        own = points[(points.split == split) & (points.label == label)]
        axes.scatter(own["first"], own["second"], s=11, c=shade, marker=marker, linewidths=0.8, label=name)
        upper = (own["second"] > 0).mean()
        lines.append(f"* {split}, Y_1 = {label}: {len(own)} points shown, {upper:.3f} of them with Y_2 = 1")
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set(xlabel="X₁, relevant", ylabel="X₂, redundant", xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    page.legend(figure, [axes], options)
    text = (
        "The toy problem's data, setting A. Components (Y_1, Y_2) are uniform on (0, 0), (0, 1), (1, 0) in training and (1, 1) "
        "in test; X_i = Y_i - U[0, 1). The task is to predict Y_1: the sign of X_1 determines it alone. X_2 is redundant, but "
        "informative in training: if X_2 > 0, Y_1 is always 0."
    )
    return figure, "\n".join([text, "", *lines])
