"""All methods on all tasks: accuracy on the test set, every seed a dot, with published numbers beside ours."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import style

SOURCE = "metrics.csv"
PARAMETERS = {
    "metric": {"type": "string", "default": "accuracy", "description": "what is compared on the test set"},
    "methods": {
        "type": "object",
        "names": "methods",
        "additionalProperties": {
            "type": ["string", "null"],
            "pattern": "^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*/lambda=[0-9][0-9.e+-]*$",
        },
        "default": {},
        "description": "label -> <model>/<regularizer>/lambda=<number>, in the order to show (null: left out); empty: all",
    },
    "published": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["mean"],
                "properties": {
                    "mean": {"type": "number"},
                    "deviation": {"type": "number"},
                    "median": {"type": "number"},
                    "source": {"type": "string"},
                },
            },
        },
        "default": {},
        "description": "task -> {method: {mean, deviation, median over seeds, source}}: published values, accuracies as shares",
    },
}
_PUBLISHED = "0.45"


def _caption(rows: pd.DataFrame, methods: list[str], options: dict[str, Any], swaps: str) -> str:
    """Numbers, all from the table. swaps: what is said of them, if there are any."""
    is_accuracy = options["metric"] == "accuracy"
    what = "Accuracy (exact match for sequences)" if is_accuracy else options["metric"]
    lines = [
        f"{what} on the test set; what is new in it, docs/language.md says of every task. Dots are seeds, bars means with 95 % "
        "intervals (Student's t, from three seeds on), crosses runs that diverged and are not averaged; open diamonds are "
        "published results, with their standard deviation over seeds where one is given. "
        + ("Intervals and deviations are drawn only as far as 0 and 1. " if is_accuracy else "")
        + "The training budget is fixed and no checkpoint is chosen on the test set; lambda is the configuration's, and where it "
        "was found best on the same test set (ablation), that flatters the regularizer." + swaps,
        "",
    ]
    for task, own in rows.groupby("task"):
        lines.append(f"* {task}")
        for method in methods:
            values = own[own.method == method].value
            known = values.dropna().to_numpy()
            if len(known):
                half = f" +- {style.interval(known):.3f}" if len(known) > 2 else ""
                spread = f"{half}, median {np.median(known):.3f}, from {known.min():.3f} to {known.max():.3f}"
                lines.append(f"  - {method}: {known.mean():.3f}{spread if len(known) > 1 else ''} ({style.seeds(values)})")
            elif len(values):
                lines.append(f"  - {method}: all {len(values)} runs diverged")
        for method, given in options["published"].get(task, {}).items():
            spread = f" +- {given['deviation']:.3f}" if "deviation" in given else ""
            spread += f", median {given['median']:.3f}" if "median" in given else ""
            lines.append(
                f"  - published, {method}: {given['mean']:.3f}{spread}" + (f" ({s})" if (s := given.get("source")) else "")
            )
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options as in PARAMETERS."""
    metric = options["metric"]
    test = style.accuracies(table, "test", metric)
    if test.empty:
        raise ValueError(
            f"comparison: no run has {metric!r} on its test set; the table has {', '.join(sorted(set(table.metric)))}"
        )
    parts = [rows.assign(method=label) for label, rows in style.methods(test, options["methods"]).items()]
    rows = pd.concat(parts, ignore_index=True)
    ours = list(dict.fromkeys(rows.method))
    tasks = sorted(set(rows.task))
    theirs = list(dict.fromkeys(method for task in tasks for method in options["published"].get(task, {})))
    largest = 1.0 if metric == "accuracy" else np.inf
    names = [*ours, *(f"{method} (published)" for method in theirs)]
    figure, panels = plt.subplots(
        1,
        len(tasks),
        figsize=(2.6 * len(tasks) + 0.5 + 0.06 * max(map(len, names)), 0.26 * len(names) + 1.0),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, task in zip(panels[0], tasks, strict=True):
        for place, method in enumerate(ours):
            own = rows[(rows.task == task) & (rows.method == method)]
            if len(own):
                style.seeds_and_mean(
                    axes,
                    own.value.to_numpy(),
                    place,
                    style.color(own.regularizer.iloc[0]),
                    largest=largest,
                )
        for place, method in enumerate(theirs, len(ours)):
            if given := options["published"].get(task, {}).get(method):
                axes.errorbar(
                    given["mean"],
                    place,
                    xerr=style.inside(given["mean"], given["deviation"], largest) if "deviation" in given else None,
                    color=_PUBLISHED,
                    marker="D",
                    markerfacecolor="white",
                    markersize=4.5,
                    capsize=2,
                )
        axes.set(title=task, xlabel="accuracy, test set" if metric == "accuracy" else metric)
        if metric == "accuracy":
            axes.set_xlim(-0.03, 1.03)
        axes.set_yticks(range(len(names)), names)
        axes.grid(axis="both", color="0.92")
        axes.set_axisbelow(True)
        if theirs:
            axes.axhline(len(ours) - 0.5, color="0.7", linewidth=0.8)
    panels[0, 0].set_ylim(len(names) - 0.5, -0.5)
    return figure, _caption(rows, ours, options, style.swaps_words(rows, table))
