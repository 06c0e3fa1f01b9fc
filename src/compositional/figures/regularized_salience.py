"""The link of the kernel theory to the main study: the effect of a compositional regularizer on salience and additivity.

The theory predicts that a kernel machine generalizes better to new combinations if single components are more salient in its
representation. This figure measures it in the networks of the ablation, whose last hidden layer is the representation that the
output layer reads.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import page, paired, ranks, style, words

SOURCE = "metrics.csv"
ONE_MODEL = True
PARAMETERS = {
    "components": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "array",
            "minItems": 3,
            "maxItems": 3,
            "prefixItems": [{"type": "string"}, {"type": "string"}, {"type": "string", "names": "representations"}],
        },
        "default": {"digits_concat": ["left", "right", "penultimate"]},
        "description": "task -> [the component that its label depends on, the component that is redundant, the representation "
        "whose salience is shown]",
    },
}


def _wide(table: pd.DataFrame, first: str, second: str, where: str) -> pd.DataFrame:
    """One row per run that did not diverge: regularizer, lambda, seed, accuracy, additivity and saliences."""
    wanted = {
        ("test", "accuracy"): "accuracy",
        ("all", "additivity"): "additivity",
        ("all", f"salience of {first} in {where}"): "relevant",
        ("all", f"salience of {second} in {where}"): "redundant",
        ("initialization", f"salience of {first} in {where}"): "untrained",
    }
    # Components may be in either order, because each task names them in its own order.
    wanted |= {("all", f"salience of {pair} in {where}"): "conjunction" for pair in (f"{first}+{second}", f"{second}+{first}")}
    rows = table.assign(name=[wanted.get(pair) for pair in zip(table.split, table.metric, strict=True)]).dropna(
        subset=["name", "value"]
    )
    keys = ["regularizer", "lambda", "seed"]
    wide = rows.pivot(index=keys, columns="name", values="value").dropna(subset=["accuracy"])
    return wide.assign(single=(wide.relevant + wide.redundant) / 2).reset_index()


def _panels(panels: np.ndarray, runs: pd.DataFrame, quantities: dict[str, str], options: dict[str, Any]) -> None:
    """Draw one task: every quantity against lambda, then accuracy against the relevant component's salience."""
    *by_lambda, by_salience = panels
    plain = runs[runs.regularizer == "none"]
    shades = style.distinct_colors(runs.regularizer)
    for name in sorted(set(runs.regularizer) - {"none"}):
        own, regularized = runs[runs.regularizer.isin(["none", name])], runs[runs.regularizer == name]
        for axes, quantity in zip(by_lambda, quantities, strict=True):
            means = own.groupby("lambda")[quantity].mean()
            axes.scatter(own["lambda"], own[quantity], s=7, color=shades[name], linewidths=0, alpha=0.6)
            axes.plot(means.index, means, color=shades[name], linewidth=1.2, label=f"{words.of(name, options)}, mean")
        by_salience.scatter(regularized.relevant, regularized.accuracy, s=10, color=shades[name], linewidths=0, alpha=0.7)
    for axes, (quantity, label) in zip(by_lambda, quantities.items(), strict=True):
        style.lambda_axis(axes, runs["lambda"])
        axes.tick_params(axis="x", labelsize="small")
        if quantity in ("relevant", "redundant", "conjunction"):
            axes.axhline(0, color="0.8", linewidth=0.8)
        axes.set(xlabel="lambda", ylabel=label)
    by_salience.scatter(
        plain.relevant, plain.accuracy, s=14, color=style.COLORS["none"], linewidths=0, zorder=3, label="a plain run"
    )
    by_salience.set(xlabel=quantities["relevant"], ylabel=quantities["accuracy"])


def _numbers(runs: pd.DataFrame, name: str) -> list[str]:
    """The caption's lines about one regularizer of a task."""
    additive = "additivity" in runs
    plain, regularized = runs[runs.regularizer == "none"], runs[runs.regularizer == name]
    means = regularized.groupby("lambda").mean(numeric_only=True)
    best = means.accuracy.idxmax()
    keys = ["accuracy", "relevant", "redundant", "conjunction", "single"]
    change = regularized[regularized["lambda"] == best].set_index("seed")[keys] - plain.set_index("seed")[keys]
    said = "; ".join(f"{key} {means[key][best]:.3f} ({style.summary(change[key], '+')})" for key in keys[1:4])
    gain, no = change.accuracy.dropna(), "does not help beyond the seeds' spread"
    verdict = paired.conclusion(gain, "helps", no, no)
    # A representation that is equal for all inputs has no salience.
    own = runs[runs.regularizer.isin(["none", name])].dropna(subset="relevant")
    below = own[own["lambda"] < own["lambda"].max()]
    trend, moderate = (ranks.stated(ranks.correlation(part.relevant, part.accuracy)) for part in (own, below))
    return [
        f"  - {name}, at lambda {best:g}, the oracle (best of these runs): accuracy {means.accuracy[best]:.3f} "
        f"({style.summary(gain, '+')}, {verdict}); salience {said}; mean of both components {means.single[best]:.3f} "
        f"({change.single.mean():+.3f})" + (f"; additivity {means.additivity[best]:.3f}" if additive else ""),
        f"  - {name}, over all its runs and the plain ones: rho of accuracy with the relevant component's salience "
        f"{trend}, without the largest lambda {moderate}"
        + (f"; with additivity {ranks.stated(ranks.correlation(own.additivity, own.accuracy))}" if additive else ""),
    ]


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table, one row per task."""
    tasks = sorted(table.task.unique())
    figure, grid = plt.subplots(2 * len(tasks), 3, figsize=(8.6, 5 * len(tasks)), squeeze=False, layout="constrained")
    lines = [
        "Salience of the components in a representation and, if it is measured, additivity index of the outputs of "
        "regularized networks against lambda (dots are runs, lines means of seeds; differences with 95 % intervals), and each "
        "run's accuracy on new combinations against the salience of the relevant component. Saliences of both components and of "
        "their conjunction sum to 1. Question: does a regularizer that helps raise the salience of single components? Whether "
        "one helps is judged at a lambda chosen on these very runs, which is too optimistic. rho: Spearman's rank correlation. "
        "Runs of one lambda are not independent of each other, so rho describes this grid and is not a test."
        + style.exposure(table, table),
        "",
    ]
    for panels, task in zip(grid.reshape(len(tasks), 6), tasks, strict=True):
        if task not in options["components"]:
            raise ValueError(f"regularized_salience: components: add task {task!r}; it has only {sorted(options['components'])}")
        first, second, where = options["components"][task]
        rows = table[table.task == task]
        if rows[rows.metric == "diverged"].value.min() == 1:
            panels[0].set_title(f"{words.of(task, options)}: every run diverged")
            lines.append(f"* {task}: every run diverged, so nothing is drawn")
            continue
        runs = _wide(rows, first, second, where)
        additive = "additivity" in runs
        quantities = {
            "accuracy": "accuracy, new combinations",
            "relevant": f"salience, {first} (relevant)",
            "redundant": f"salience, {second} (redundant)",
            "conjunction": "salience, conjunction",
        }
        quantities |= {"additivity": "additivity index"} if additive else {"single": "salience, mean of the two"}
        _panels(panels, runs, quantities, options)
        panels[0].set_title(f"{words.of(task, options)}, {words.of(where, options)}")
        plain = runs[runs.regularizer == "none"]
        lines.append(
            f"* {task}, plain ({len(plain)} seeds), in {where}: accuracy {plain.accuracy.mean():.3f}, salience "
            f"{plain.relevant.mean():.3f} ({first}, relevant), {plain.redundant.mean():.3f} ({second}, redundant), "
            f"{plain.conjunction.mean():.3f} (conjunction); before training {plain.untrained.mean():.3f} ({first})"
            + (f"; additivity {plain.additivity.mean():.3f}" if additive else "")
        )
        for name in sorted(set(runs.regularizer) - {"none"}):
            lines += _numbers(runs, name)
    page.legend(figure, grid.flat, options, *([style.RUN] if grid.flat[0].lines else []))
    return figure, "\n".join(lines)
