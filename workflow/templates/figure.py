"""Accuracy on the test set, one bar per method: describe here what the figure shows and which question it answers."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import style

SOURCE = "metrics.csv"
PARAMETERS = {
    "metric": {"type": "string", "default": "accuracy", "description": "metric of the test set that is shown"},
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    rows = table[(table.split == "test") & (table.metric == options["metric"])]
    if rows.empty:
        raise ValueError(f"metric: {options['metric']}: the table has only {', '.join(sorted(set(table.metric)))}")
    figure, axes = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    lines = [f"{options['metric']} on the test set: means over seeds with their 95 % interval (Student's t).", ""]
    for place, (method, own) in enumerate(rows.groupby(["task", "model", "regularizer", "lambda"])):
        known = own.value.dropna()  # a diverged run has no accuracy
        axes.bar(place, known.mean(), yerr=style.drawn_interval(known.to_numpy()), color=style.color(str(method[2])))
        lines.append(f"* {', '.join(map(str, method))}: {style.summary(own.value)} ({style.seeds(own.value)})")
    axes.set(xticks=[], ylabel=options["metric"])
    return figure, "\n".join(lines)
