"""The main figure: accuracy on recombinations and in distribution against lambda, one column per task."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, page, style, words

SOURCE = "metrics.csv"
PARAMETERS = {
    "ceilings": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string", "names": "tasks"},
        "default": {},
        "description": "task -> task without the redundant component (setting B), whose plain runs are the ceiling if in a grid",
    },
    "anchors": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "default": {},
        "description": "task -> {label: published accuracy}, drawn as reference lines",
    },
    "controls": {
        "type": "object",
        "names": "regularizers",
        "additionalProperties": {"type": "string", "names": "regularizers"},
        "default": {},
        "description": "regularizer -> its control; the caption states the difference of the two at each lambda that both have",
    },
}
_ANCHORS = ((0, (1, 1)), (0, (1, 4)), (0, (3, 2, 1, 2)))  # line styles of published results, by their order
TITLES = {"test": "recombinations never seen", "in_distribution": "in distribution"}


def _accuracies(table: pd.DataFrame, task: str, split: str) -> pd.DataFrame:
    """Accuracy of every run of a task on "test" or "in_distribution", NaN if it diverged."""
    return style.accuracies(table[table.task == task], split)


def _ceilings(table: pd.DataFrame, options: dict[str, Any], task: str) -> dict[str, pd.Series]:
    """Test accuracies of the plain runs of a task's ceiling, by model, or under "" if there is one model; empty if in no grid."""
    rows = _accuracies(table, options["ceilings"].get(task, ""), "test")
    found = {str(model): own.value for model, own in rows[rows.regularizer == "none"].groupby("model")}
    return found if len(found) != 1 else {"": next(iter(found.values()))}


def _line(axes: Axes, rows: pd.DataFrame, shade: str, label: str, look: tuple[Any, Any], place: float, threshold: float) -> None:
    """Draw one regularizer, with diverged runs as crosses at the bottom.

    look: style of the line and marker. place: horizontal shift relative to lambda, as a share of a decade.
    """

    def move(strengths: pd.Series, dot: float) -> pd.Series:
        return intervals.moved(strengths, place + 0.05 * dot, threshold)

    intervals.line_of_means(axes, rows, "lambda", move, shade, label, *look)
    diverged = rows[rows.value.isna()]["lambda"]
    intervals.crosses(axes, move(diverged, 0), shade, 30)


def _panel(axes: Axes, table: pd.DataFrame, task: str, split: str, options: dict[str, Any]) -> None:
    """Draw one task on one split."""
    rows = _accuracies(table, task, split)
    threshold = style.lambda_axis(axes, rows["lambda"])
    models = sorted(set(rows.model))
    lines = sorted(set(zip(rows.model, rows.regularizer, strict=True)), key=lambda pair: (pair[0], pair[1]))
    regularized = {model for model, name in lines if name != "none"}
    lines = [(model, name) for model, name in lines if name != "none" or model not in regularized]
    shades = style.distinct_colors(table.regularizer)
    terms = sorted(set(table.regularizer) - {"none"})
    markers = {name: style.marker_of(place) for place, name in enumerate(terms)}  # in print without colors
    step = min(0.07, 0.2 / max(len(lines) - 1, 1))  # of a decade
    for index, (model, name) in enumerate(lines):
        own = rows[(rows.model == model) & rows.regularizer.isin(["none", name])]
        label = words.of_method(name, model, models, options)
        look = style.line_of(models.index(model)), markers.get(name, "o")
        _line(axes, own, shades[name], label, look, step * (index - (len(lines) - 1) / 2), threshold)
    if split == "test":
        for (model, values), line in zip(_ceilings(table, options, task).items(), cycle(("--", "-.", ":"))):
            label = "ceiling: nothing redundant in training" + (f" ({words.of(model, options)})" if model else "")
            axes.axhline(values.mean(), color="0.35", linestyle=line, linewidth=1, label=label)
        for (label, value), dashes in zip(options["anchors"].get(task, {}).items(), cycle(_ANCHORS)):
            axes.axhline(value, color="0.55", linestyle=dashes, linewidth=1, label=label)
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlim(left=-0.5 * threshold)
    axes.grid(axis="y", color="0.92")


def _caption(table: pd.DataFrame, tasks: list[str], options: dict[str, Any]) -> str:
    """Claim and numbers, all computed from the table."""
    lines = [
        "Accuracy against the strength lambda of the compositional regularizer. Top: combinations never seen in training; "
        "bottom: in distribution. Dots are seeds, lines are means with 95 % intervals (Student's t, three seeds or more, "
        "cut off at 0 and 1). lambda = 0 is the plain model, which all lines share. The training budget is fixed and "
        "no checkpoint is chosen on the test set. Below, the oracle is the lambda that is best on the test set, in these very "
        "runs, so its accuracy is too optimistic (the figure `selection` chooses lambda without the test set). Gains are over "
        "the plain run of the same seed, with 95 % intervals (Student's t) that are not corrected for the number of settings. If "
        "accuracy on training examples is far below 1 at the largest lambda, more steps may help; a figure with `module: "
        "learning_curves` shows it.",
        "",
    ]
    for task in tasks:
        rows, trained = _accuracies(table, task, "test"), _accuracies(table, task, "train")
        for model, own in rows.groupby("model"):
            unregularized = own[own.regularizer == "none"]
            plain, settings = unregularized.value, len(own[["regularizer", "lambda"]].drop_duplicates())
            counted = f"{style.seeds(plain)}; {settings} setting{'s' if settings > 1 else ''} compared"
            lines += [f"* {task}, {model}: {style.mean(plain)} at lambda = 0 ({counted})", ""]
            for name, regularized in own[own.regularizer != "none"].groupby("regularizer"):
                means = regularized.groupby("lambda").value.mean()
                if means.notna().any():
                    best, largest, several = means.idxmax(), means.index.max(), len(means) > 1
                    last = regularized[regularized["lambda"] == largest].value
                    gain = style.summary(style.gains(regularized[regularized["lambda"] == best], unregularized), "+")
                    which = "the oracle" if several else "the only one"
                    lines.append(f"  - {name}: {means[best]:.3f} at lambda {best:g}, {which}; gain {gain}")
                    there = regularized[regularized["lambda"] == largest][["seed", "lambda", "regularizer", "model"]]
                    learned = style.mean(trained.merge(there).value)
                    at = f"its largest lambda, {largest:g}" if several else f"lambda {largest:g}"
                    lines.append(f"  - {name}: {style.mean(last)} at {at} (training examples: {learned})")
                if lost := int(regularized.value.isna().sum()):
                    lines.append(f"  - {name}: {words.runs(lost)} diverged (crosses), not averaged")
                control = own[own.regularizer == options["controls"].get(name)]
                for strength, shared in regularized[regularized["lambda"].isin(control["lambda"])].groupby("lambda"):
                    more = style.summary(style.gains(shared, control[control["lambda"] == strength]), "+")
                    lines.append(f"  - {name} minus {control.regularizer.iloc[0]} at lambda {strength:g}: {more}")
        if style.holds_nothing_out(table, task):
            lines.append("  - bottom: training examples, because no examples of their distribution are held out")
        for model, values in _ceilings(table, options, task).items():
            lines.append(f"  - ceiling ({', '.join(filter(None, (options['ceilings'][task], model)))}): {style.mean(values)}")
        if anchors := options["anchors"].get(task):
            lines.append("  - dotted: " + "; ".join(f"{label} {words.published(value)}" for label, value in anchors.items()))
        lines.append("")
    if any(_ceilings(table, options, task) for task in tasks):
        lines += [
            "A ceiling is the plain model trained without a redundant component (setting B). Its training has the combinations "
            "of the test set: on sentences the very commands, on images other images of them.",
            "",
        ]
    if table.regularizer.str.startswith("entropy").any():
        lines += [
            "entropy adds noise of a fixed power to the representation if lambda is above 0 (by default with standard deviation "
            "1 for word embeddings and 0.3 for the penultimate layer), and none at lambda = 0. Its lines are therefore not "
            "continuous there: the first step includes the effect of the noise.",
            "",
        ]
    if shown := style.exposure(table, table):
        lines.append(shown.strip())
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    there = set(table.task)
    tasks = sorted(there - {options["ceilings"].get(task) for task in there})
    figure, grid = plt.subplots(2, len(tasks), figsize=(4.2 * len(tasks), 6.0), sharey=True, squeeze=False, layout="constrained")
    for column, task in enumerate(tasks):
        for row, split in enumerate(TITLES):
            _panel(grid[row, column], table, task, split, options)
        grid[0, column].set_title(words.of(task, options))
        for axes in grid[:, column]:
            axes.set_xlabel("lambda")
        if style.holds_nothing_out(table, task):
            grid[1, column].set_title("training examples\n(nothing is held out)")
    for row, title in enumerate(TITLES.values()):
        grid[row, 0].set_ylabel(f"accuracy,\n{title}")
    # The legend is below the panels: with many lines, no part of a panel is free of data.
    page.legend(figure, grid[0], options, style.RUN, style.INTERVAL)
    return figure, _caption(table, tasks, options)
