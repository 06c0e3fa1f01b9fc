"""All methods on all tasks: accuracy on the test set, one dot per seed, with published numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, named_runs, page, paired, style, words
from compositional.figures.shared import rows as charts
from compositional.measures.statistics import bootstrapped, interquartile_mean, probability_of_improvement

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "metric": {
        "type": "string",
        "names": "metrics",
        "default": "accuracy",
        "description": "metric that is compared on the test set",
    },
    "summarize": {
        "type": "boolean",
        "default": False,
        "description": "add a panel with the interquartile mean over all tasks and seeds, and to the caption the probability "
        "that a method improves on the first one, with stratified bootstrap intervals; only for methods that have runs on every "
        "task",
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


def _complete(rows: pd.DataFrame, methods: list[str]) -> dict[str, list[np.ndarray]]:
    """Values of every method that has known values on every task: one array per task, in the order of the tasks' names."""
    tasks = sorted(set(rows.task))
    known = rows.dropna(subset="value")
    found = {
        method: [known[(known.method == method) & (known.task == task)].value.to_numpy() for task in tasks] for method in methods
    }
    return {method: scores for method, scores in found.items() if all(map(len, scores))}


def _summaries(rows: pd.DataFrame, methods: list[str]) -> dict[str, tuple[float, float, float]]:
    """Interquartile mean over tasks and seeds, with its interval (value, low, high), by method."""
    return {name: bootstrapped(interquartile_mean, scores) for name, scores in _complete(rows, methods).items()}


def _stated(low: float, high: float, digits: int) -> str:
    return "" if np.isnan(low) else f" [{low:.{digits}f}, {high:.{digits}f}]"


def _summary_lines(rows: pd.DataFrame, methods: list[str]) -> list[str]:
    """The same in words, with the probability of improvement on the first method."""
    scores = _complete(rows, methods)
    if not scores:
        return ["* all tasks: no method has runs on every task"]
    first, lines = next(iter(scores)), [f"* all tasks ({rows.task.nunique()}), interquartile mean with its 95 % interval"]
    for name, (value, low, high) in _summaries(rows, methods).items():
        line = f"  - {name}: {value:.3f}{_stated(low, high, 3)}"
        if name != first:
            chance, low, high = bootstrapped(probability_of_improvement, [*scores[name], *scores[first]])
            line += f"; better than {first} with probability {chance:.2f}{_stated(low, high, 2)}"
        lines.append(line)
    left = [method for method in methods if method not in scores]
    return lines + ([f"  - not on every task: {', '.join(left)}"] if left else [])


def _caption(rows: pd.DataFrame, methods: list[str], options: dict[str, Any], swaps: str) -> str:
    """Numbers, all from the table. swaps: a sentence about swaps, if there are any."""
    is_accuracy = options["metric"] == "accuracy"
    what = "Accuracy (exact match for sequences)" if is_accuracy else options["metric"]
    published = any(options["published"].get(task) for task in rows.task)
    cut = f"Intervals{' and deviations' * published} are cut off at 0 and 1. "
    lines = [
        f"{what} on the test set; docs/language.md explains for every task what is new in it. Dots are seeds, bars means with "
        "95 % intervals (Student's t, three seeds or more)"
        + ", crosses runs that diverged and are not averaged" * bool(rows.value.isna().any())
        + "; open diamonds are published results, with their standard deviation over seeds if it is given" * published
        + f". {cut * is_accuracy}The training budget is fixed and no checkpoint is chosen on the test set. ± is half of a 95 % "
        f"interval; {rows.groupby(['task', 'method']).ngroups} cells are shown."
        + (
            " If a lambda is the best on the same test set (ablation), its accuracy is too optimistic. Gains are over the plain "
            "run of the same model and seed, with 95 % intervals."
        )
        * bool((rows.regularizer != "none").any())
        + swaps,
        "",
    ]
    for task, own in rows.groupby("task"):
        lines.append(f"* {task}")
        for method in methods:
            runs = own[own.method == method]
            values, strength = runs.value, runs["lambda"].max()
            known = values.dropna().to_numpy()
            if len(known):
                half = f" ± {style.interval(known):.3f}" if len(known) > 2 else ""
                spread = f"{half}, median {np.median(known):.3f}, from {known.min():.3f} to {known.max():.3f}"
                gained = f"; gain {style.summary(runs.gain, '+')}" if runs.gain.count() > 1 else ""
                at = f" (lambda {strength:g})" if strength and method in options["methods"] else ""
                lines.append(
                    f"  - {method}{at}: {known.mean():.3f}{spread if len(known) > 1 else ''} ({style.seeds(values)}){gained}"
                )
            elif len(values):
                lines.append(f"  - {method}: all {len(values)} runs diverged")
        for method, given in options["published"].get(task, {}).items():
            spread = f", standard deviation {words.published(given['deviation'])}" if "deviation" in given else ""
            spread += f", median {words.published(given['median'])}" if "median" in given else ""
            source = given.get("source", "as commonly reported")
            lines.append(f"  - published, {method}: {words.published(given['mean'])}{spread} ({source})")
    return "\n".join(lines + (_summary_lines(rows, methods) if options["summarize"] else []))


def _summary_panel(axes: Axes, rows: pd.DataFrame, methods: list[str]) -> None:
    """Draw interquartile means with their intervals, one line per method."""
    for name, (value, low, high) in _summaries(rows, methods).items():
        axes.plot([low, high], [methods.index(name)] * 2, color="0.3", linewidth=4, alpha=0.4, solid_capstyle="butt")
        axes.plot(value, methods.index(name), color="0.1", marker="|", markersize=11, markeredgewidth=2)
    axes.set(title="all tasks", xlabel="interquartile mean")
    axes.grid(axis="both", color="0.92")
    axes.set_axisbelow(True)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    metric = options["metric"]
    test = style.accuracies(table, "test", metric)
    if test.empty:
        raise ValueError(
            f"comparison: no run has {metric!r} on its test set; the table has {', '.join(sorted(set(table.metric)))}"
        )
    plain = test[test.regularizer == "none"].set_index(paired.KEY).value.rename("plain")
    test = test.join(plain, on=paired.KEY)
    test["gain"] = (test.value - test.plain).where(test.regularizer != "none")
    parts = [rows.assign(method=label) for label, rows in style.methods(test, options["methods"]).items()]
    rows = pd.concat(parts, ignore_index=True)
    ours = list(dict.fromkeys(rows.method))
    tasks = sorted(set(rows.task))
    theirs = charts.systems(options["published"], tasks)
    largest = 1.0 if metric == "accuracy" else np.inf
    shades = style.distinct_colors(rows.regularizer)
    names = [words.of_label(method, rows[rows.method == method], options) for method in ours]
    count = len(tasks) + options["summarize"]
    page_style = options.get("style", {})
    figure, panels = charts.panels(count, names, page_style, width=2.6, height=0.26, below=0.4, published=theirs)
    for axes, task in zip(panels, tasks, strict=False):
        for place, method in enumerate(ours):
            own = rows[(rows.task == task) & (rows.method == method)]
            if len(own):
                intervals.seeds_and_mean(
                    axes,
                    own.value.to_numpy(),
                    place,
                    shades[own.regularizer.iloc[0]],
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
                    linestyle="",
                    capsize=2,
                    label="published mean, standard deviation" if "deviation" in given else "published value",
                )
        axes.set(title=words.of(task, options), xlabel="accuracy, test set" if metric == "accuracy" else metric)
        if metric == "accuracy":
            axes.set_xlim(-0.03, 1.03)
        axes.grid(axis="both", color="0.92")
        axes.set_axisbelow(True)
    if options["summarize"]:
        _summary_panel(panels[-1], rows, ours)
    page.legend(figure, panels, options, style.RUN, style.INTERVAL)
    return figure, _caption(rows, ours, options, style.exposure(rows, table))
