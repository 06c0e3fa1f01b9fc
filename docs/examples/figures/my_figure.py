"""Test accuracy against lambda, one line per task."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import style, words

SOURCE = "metrics.csv"  # of every run; the columns of the table are task, model, regularizer, lambda, seed, split, metric, value
PARAMETERS = {
    "metric": {"type": "string", "names": "metrics", "default": "accuracy", "description": "what is drawn, on the test set"},
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption, whose numbers come from the table."""
    rows = table[(table.split == "test") & (table.metric == options["metric"])]
    if rows.empty:
        raise ValueError(f"metric: {options['metric']}: the table has only {', '.join(sorted(set(table.metric)))}")
    means = rows.groupby(["task", "lambda"]).value.mean().unstack("task")
    figure, axes = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    shown = means.rename(columns=lambda task: words.of(task, options)).rename_axis(columns=None)
    shown.plot(ax=axes, marker="o", xlabel="lambda", ylabel=options["metric"])
    style.lambda_axis(axes, means.index)  # lambda = 0, and the others on a logarithmic scale
    best = "; ".join(f"{task}: {own.max():.3f} at lambda {own.idxmax():g}" for task, own in means.items())
    return figure, f"{options['metric']} on the test set, means over {rows.seed.nunique()} seeds. Best of {best}."
