"""Does a term bring accuracy above that of a rule that needs no network? Against lambda, and by category at one lambda."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compositional.figures.shared import claims, intervals, page, style, words

SOURCE = "metrics.csv"
REGULARIZED = True
ONE_MODEL = True
PARAMETERS = {
    "rule": {
        "type": "string",
        "names": "metrics",
        "default": "",
        "description": 'the rule: the name of a reference of the tasks; "<rule> of <category>" is its accuracy on a category',
    },
    "score": {
        "type": "string",
        "default": "accuracy",
        "description": "what the tasks' accuracy is, for the axes and the caption",
    },
    "strength": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.1,
        "description": "lambda of the runs that are shown by category, and whose gains the caption states",
    },
    "categories": {"type": "string", "default": "", "description": "group of categories in the lower panels, the part before /"},
    "published": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "object",
            "names": "regularizers",
            "additionalProperties": {
                "type": "array",
                "items": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "number", "minimum": 0}},
            },
        },
        "default": {},
        "description": "task -> {regularizer: [lambda, published mean, its standard deviation over seeds] for several lambdas}",
    },
}
_LINES = ("-", "-.", ":")
_STEP = 0.08  # between two lines, as a share of a decade
_PUBLISHED: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 5,
    "markerfacecolor": "white",
    "elinewidth": 2.5,
    "zorder": 4,
}
_DEVIATION = "published mean; bar: standard deviation over seeds"
_RULE: dict[str, Any] = {"color": "0.2", "linestyle": "--", "linewidth": 1.2}


def rule_of(table: pd.DataFrame, task: str, metric: str) -> float:
    """A task's reference, which is the same for all of its runs.

    Raises:
        ValueError: the task has no such reference.
    """
    rows = table[(table.task == task) & (table.split == "reference")]
    values = rows.value[rows.metric == metric].unique()
    if len(values) != 1:
        raise ValueError(
            f"against_rule: rule: {task} has no reference {metric!r}; name one of {', '.join(sorted(set(rows.metric)))}"
        )
    return float(values[0])


def _names(table: pd.DataFrame) -> list[str]:
    return sorted(set(table.regularizer) - {"none"})


def _against_lambda(axes: Axes, table: pd.DataFrame, task: str, options: dict[str, Any]) -> None:
    rows = style.accuracies(table[table.task == task], "test")
    threshold, shades, names = style.lambda_axis(axes, rows["lambda"]), style.distinct_colors(table.regularizer), _names(table)
    for index, name in enumerate(names):
        if name not in set(rows.regularizer):
            continue
        place = _STEP * (index - (len(names) - 1) / 2)

        def move(strengths: pd.Series, dot: float = 0.0, place: float = place) -> pd.Series:
            return intervals.moved(strengths, place + 0.03 * dot, threshold)

        own = rows[rows.regularizer.isin(["none", name])]
        intervals.line_of_means(axes, own, "lambda", move, shades[name], words.of(name, options), _LINES[index % len(_LINES)])
        # Crosses at the bottom of the panel, because the axis does not begin at 0.
        lost = move(own["lambda"][own.value.isna()])
        intervals.crosses(axes, lost, shades[name], 30, transform=axes.get_xaxis_transform())
        for strength, mean, deviation in options["published"].get(task, {}).get(name, []):
            shade = shades[name] if strength else shades["none"]
            axes.errorbar([strength], [mean], [deviation], color=shade, label=_DEVIATION, **_PUBLISHED)
    axes.axhline(rule_of(table, task, options["rule"]), label=f"rule: {options['rule']}", **_RULE)
    axes.set_xlim(left=-0.4 * threshold)
    axes.set(title=words.of(task, options), xlabel="lambda")


def _categories(table: pd.DataFrame, task: str, group: str) -> list[str]:
    """The categories of a group, in the order of their numbers."""
    start = f"accuracy of {group}/"
    rows = table[(table.task == task) & (table.split == "test")]
    found = {metric.removeprefix("accuracy of ") for metric in rows.metric if metric.startswith(start)}
    return sorted(found, key=lambda name: (len(name), name))


def _by_category(table: pd.DataFrame, task: str, category: str) -> pd.DataFrame:
    rows = table[(table.task == task) & (table.split == "test")]
    return rows[rows.metric == f"accuracy of {category}"]


def _along_categories(axes: Axes, table: pd.DataFrame, task: str, options: dict[str, Any]) -> None:
    shades, found = style.distinct_colors(table.regularizer), _categories(table, task, options["categories"])
    for index, name in enumerate(["none", *_names(table)]):
        means, line = [], _LINES[(index - 1) % len(_LINES)] if index else "-"
        for category in found:
            own = _by_category(table, task, category)
            chosen = style.at_lambda(own, 0.0 if name == "none" else options["strength"])
            means.append(chosen[chosen.regularizer == name].value.mean())
        axes.plot(range(len(found)), means, color=shades[name], linestyle=line, marker="o", markersize=3, linewidth=1.2)
    rule = [rule_of(table, task, f"{options['rule']} of {category}") for category in found]
    axes.plot(range(len(found)), rule, **_RULE)
    axes.set_xticks(range(len(found)), [category.partition("/")[2] for category in found])
    axes.set(xlabel=options["categories"])


def _caption(table: pd.DataFrame, tasks: list[str], options: dict[str, Any]) -> str:
    strength = options["strength"]
    lines = [
        f"{options['score'].capitalize()} on combinations never seen. Top: against lambda; dots are runs, lines are means with "
        "95 % intervals (Student's t, three seeds or more), and all lines share the plain runs at lambda = 0. Dashed: a rule "
        f"that needs no network, computed from the same test set. Bottom: means by {options['categories'] or 'category'}, plain "
        f"and at lambda {strength:g}. Open diamonds are published means; their thick bars are standard deviations over seeds, "
        "not intervals. Gains are paired by seed, with 95 % intervals that are not corrected for the number of comparisons. That "
        "a mean is not above the rule is open if its 95 % interval includes the rule.",
        "",
    ]
    for task in tasks:
        rows, trained = (style.accuracies(table[table.task == task], split) for split in ("test", "train"))
        plain, rule = rows[rows.regularizer == "none"], rule_of(table, task, options["rule"])
        settings = rows.dropna(subset="value").groupby(["regularizer", "lambda"]).value
        means = settings.mean()
        below = {f"{name}, lambda {at:g}": claims.within(values, high=rule) for (name, at), values in settings}
        best = means.idxmax() if len(means) else ("all diverged", float("nan"))
        above = int((rows.value > rule).sum())
        lines += [
            f"* {task}: {options['rule']} {rule:.3f}; plain {style.summary(plain.value)} ({style.seeds(plain.value)}), "
            f"training examples {style.mean(trained[trained.regularizer == 'none'].value)}",
            "",
            f"  - no mean is above the rule: {claims.verdict(below)}. The largest is {style.summary(settings.get_group(best))} "
            f"({best[0]}, lambda {best[1]:g}); {above} of {rows.value.count()} runs are above the rule"
            if len(means)
            else "  - no mean is above the rule: open, all runs diverged",
        ]
        for name in _names(rows):
            own = style.at_lambda(rows[rows.regularizer == name], strength)
            if len(own):
                learned = style.mean(style.at_lambda(trained[trained.regularizer == name], strength).value)
                gain = style.summary(style.gains(own, plain), "+")
                lines.append(
                    f"  - {name} at lambda {strength:g}: {style.mean(own.value)}, gain {gain}, training examples {learned}"
                )
        for name, published in options["published"].get(task, {}).items():
            several = "; ".join(f"{mean:.4f} ({deviation:.4f}) at lambda {own:g}" for own, mean, deviation in published)
            lines.append(f"  - published, {name}: {several}")
        over = []
        for category in _categories(table, task, options["categories"]):
            own = _by_category(table, task, category).groupby(["regularizer", "lambda"]).value.mean().max()
            if own > rule_of(table, task, f"{options['rule']} of {category}"):
                over.append(category)
        lines += [f"  - categories where some mean is above the rule: {', '.join(over) or 'none'}", ""]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    tasks = sorted(set(table.task))
    figure, grid = plt.subplots(2, len(tasks), figsize=(3.9 * len(tasks), 5.8), sharey="row", squeeze=False, layout="constrained")
    for column, task in enumerate(tasks):
        _against_lambda(grid[0, column], table, task, options)
        _along_categories(grid[1, column], table, task, options)
        for axes in grid[:, column]:
            axes.grid(axis="y", color="0.92")
    grid[0, 0].set_ylabel(f"{options['score']},\nrecombinations")
    grid[1, 0].set_ylabel(f"{options['score']},\nat lambda {options['strength']:g}")
    marks: list[Artist] = [
        Line2D([], [], color=style.COLORS["none"], marker="o", markersize=3, linewidth=1.2, label="plain (bottom)")
    ]
    if options["published"]:
        look = {key: value for key, value in _PUBLISHED.items() if key != "elinewidth"}
        marks.append(Line2D([], [], color="0.3", label=_DEVIATION, **look))
    page.legend(figure, grid[0], options, *marks, style.RUN, style.INTERVAL)
    return figure, _caption(table, tasks, options)
