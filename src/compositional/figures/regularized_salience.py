"""The link of the kernel theory to the main study: what a compositional regularizer does to salience and additivity.

The theory says that a kernel machine generalizes to new combinations as far as single components are salient in its
representation. Measured here in the networks of the ablation, whose last hidden layer is the representation that their output
layer reads.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from compositional.figures import style

SOURCE = "metrics.csv"
PARAMETERS = {
    "relevant": {"type": "string", "default": "left", "description": "the component that determines the label"},
    "redundant": {"type": "string", "default": "right", "description": "the other one"},
    "representation": {"type": "string", "default": "penultimate", "description": "whose salience is shown"},
}


def _wide(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    """A row a run that did not diverge: regularizer, lambda, seed, accuracy, additivity and saliences."""
    first, second, where = (options[key] for key in ("relevant", "redundant", "representation"))
    wanted = {
        ("test", "accuracy"): "accuracy",
        ("all", "additivity"): "additivity",
        ("all", f"salience of {first} in {where}"): "relevant",
        ("all", f"salience of {second} in {where}"): "redundant",
        ("all", f"salience of {first}+{second} in {where}"): "conjunction",
        ("initialization", f"salience of {first} in {where}"): "untrained",
    }
    rows = table.assign(name=[wanted.get(pair) for pair in zip(table.split, table.metric, strict=True)]).dropna(
        subset=["name", "value"]
    )
    keys = ["task", "model", "regularizer", "lambda", "seed"]
    wide = rows.pivot(index=keys, columns="name", values="value").dropna(subset=["accuracy"])
    return wide.assign(single=(wide.relevant + wide.redundant) / 2).reset_index()


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table, a row a task."""
    every = _wide(table, options)
    tasks = sorted(every.task.unique())
    panels = {
        "accuracy": "accuracy, new combinations",
        "relevant": f"salience, {options['relevant']} (relevant)",
        "redundant": f"salience, {options['redundant']} (redundant)",
        "conjunction": "salience, conjunction",
        "additivity": "additivity index",
    }
    figure, grid = plt.subplots(2 * len(tasks), 3, figsize=(8.6, 5 * len(tasks)), squeeze=False, layout="constrained")
    grid = grid.reshape(len(tasks), 6)
    lines = [
        f"Salience of the components in the representation {options['representation']!r} and additivity index of the outputs "
        "of regularized networks against lambda (means of seeds, bars 95 % intervals), and each run's accuracy on new "
        "combinations against the salience of the relevant component. Saliences of both components and of their conjunction "
        "sum to 1. Question: does a regularizer that helps raise single-component salience?",
        "",
    ]
    for row, task in zip(grid, tasks, strict=True):
        runs = every[every.task == task]
        plain = runs[runs.regularizer == "none"]
        lines.append(
            f"* {task}, plain ({len(plain)} seeds): accuracy {plain.accuracy.mean():.3f}, salience "
            f"{plain.relevant.mean():.3f} (relevant), {plain.redundant.mean():.3f} (redundant), "
            f"{plain.conjunction.mean():.3f} (conjunction); before training {plain.untrained.mean():.3f} (relevant); "
            f"additivity {plain.additivity.mean():.3f}"
        )
        positive = sorted(set(runs["lambda"]) - {0.0})
        for name in sorted(set(runs.regularizer) - {"none"}):
            own = runs[runs.regularizer.isin(["none", name])]
            for axes, quantity in zip(row, panels, strict=False):
                groups = own.groupby("lambda")[quantity]
                means, half = groups.mean(), groups.apply(lambda values: style.interval(values.to_numpy()))
                axes.errorbar(
                    means.index,
                    means,
                    yerr=half,
                    color=style.color(name),
                    marker="o",
                    markersize=3,
                    linewidth=1.2,
                    capsize=2,
                    label=name,
                )
            regularized = runs[runs.regularizer == name]
            row[-1].scatter(regularized.relevant, regularized.accuracy, s=10, color=style.color(name), linewidths=0, alpha=0.7)
            means = regularized.groupby("lambda")[
                ["accuracy", "relevant", "redundant", "conjunction", "single", "additivity"]
            ].mean()
            best = means.accuracy.idxmax()
            at = regularized[regularized["lambda"] == best]
            change = {
                key: at.set_index("seed")[key] - plain.set_index("seed")[key]
                for key in ("accuracy", "relevant", "redundant", "conjunction", "single")
            }
            said = "; ".join(
                f"{key} {means[key][best]:.3f} ({delta.mean():+.3f} ± {style.interval(delta.dropna().to_numpy()):.3f})"
                for key, delta in change.items()
                if key not in ("accuracy", "single")
            )
            gain, half = change["accuracy"].mean(), style.interval(change["accuracy"].dropna().to_numpy())
            verdict = "helps" if gain > half else "does not help beyond the seeds' spread"
            lines.append(
                f"  - {name}, at its best lambda (of these runs), {best:g}: accuracy {means.accuracy[best]:.3f} ({gain:+.3f} "
                f"± {half:.3f}, "
                f"{verdict}); salience {said}; mean of both components {means.single[best]:.3f} "
                f"({change['single'].mean():+.3f}); additivity {means.additivity[best]:.3f}"
            )
            below = own[own["lambda"] < own["lambda"].max()]
            trend, moderate = (stats.spearmanr(part.relevant, part.accuracy) for part in (own, below))
            lines.append(
                f"  - {name}, over all its runs and the plain ones: rank correlation of accuracy with the relevant "
                f"component's salience {trend.statistic:+.2f} (p = {trend.pvalue:.1g}), without the largest lambda "
                f"{moderate.statistic:+.2f} (p = {moderate.pvalue:.1g}); with additivity "
                f"{stats.spearmanr(own.additivity, own.accuracy).statistic:+.2f}"
            )
        row[-1].scatter(plain.relevant, plain.accuracy, s=14, color=style.COLORS["none"], linewidths=0, zorder=3)
        row[-1].set(xlabel=panels["relevant"], ylabel=panels["accuracy"])
        for axes, (quantity, label) in zip(row, panels.items(), strict=False):
            if positive:
                axes.set_xscale("symlog", linthresh=positive[0], linscale=0.6)
                axes.set_xticks([0, *positive], ["0", *(f"{value:g}" for value in positive)], fontsize=7)
                axes.minorticks_off()
            if quantity in ("relevant", "redundant", "conjunction"):
                axes.axhline(0, color="0.8", linewidth=0.8)
            axes.set(xlabel="lambda", ylabel=label)
        row[0].set_title(task, fontsize=9)
    grid[0, 0].legend(fontsize=7)
    return figure, "\n".join(lines)
