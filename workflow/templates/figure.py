"""Accuracy on the test set, one bar per method: describe here what the figure shows and which question it answers."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import style, words

SOURCE = "metrics.csv"
PARAMETERS = {
    "metric": {
        "type": "string",
        "names": "metrics",
        "default": "accuracy",
        "description": "metric of the test set that is shown",
    },
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    rows = table[(table.split == "test") & (table.metric == options["metric"])]
    if rows.empty:
        raise ValueError(f"metric: {options['metric']}: the table has only {', '.join(sorted(set(table.metric)))}")
    grouped = rows.groupby(["task", "model", "regularizer", "lambda"])
    figure, axes = plt.subplots(figsize=(6.4, 0.8 + 0.3 * grouped.ngroups), layout="constrained")
    lines, labels = [f"{options['metric']} on the test set: means over seeds with their 95 % interval (Student's t).", ""], []
    for place, (method, own) in enumerate(grouped):
        *names, strength = map(str, method)
        known = own.value.dropna()  # a diverged run has no accuracy
        axes.barh(place, known.mean(), xerr=style.drawn_interval(known.to_numpy()), color=style.color(names[-1]))
        labels.append(", ".join([*(words.of(name, options) for name in names), strength]))
        lines.append(f"* {', '.join([*names, strength])}: {style.summary(own.value)} ({style.seeds(own.value)})")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()  # the order of the caption
    axes.set_xlabel(options["metric"])
    return figure, "\n".join(lines)
