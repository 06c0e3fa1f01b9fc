"""Compositionality measures of representations: against lambda, and against accuracy on recombinations, two panels for each."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from compositional.figures.shared import intervals, page, paired, ranks, style, words

SOURCE = ("metrics.csv", "representations.csv", "activations.safetensors")
PARAMETERS = {
    "measures": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "string", "names": "metrics"}},
        "default": {},
        "description": "title -> names of metrics in the table; a run is shown with the first one that it has",
    },
    "logarithmic": {
        "type": "array",
        "items": {"type": "string", "names": "options.measures"},
        "default": [],
        "description": "titles of measures with a logarithmic axis",
    },
}
_COLUMNS = 4  # measures side by side
_LETTERS = 20  # in a line of an axis label
# The meaning of "shuffled" for measures that do not shuffle inputs.
_NULLS = {
    "relative_distance": "the distance to equally many other words drawn at random",
    "swap_consistency": "agreement with another input's answer",
}


def _values(table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """One row per run: the metric shown and its value, its shuffled mean and quantiles if it has them, and test accuracy.

    The value is NaN if there is none, for example for diverged runs.

    Raises:
        ValueError: a measure is in several splits, as "loss" is. Values of untrained networks are left out and do not count.
    """
    kinds = {"value": "", "shuffled": " (shuffled)", "low": " (2.5 %)", "high": " (97.5 %)"}
    found = pd.DataFrame(columns=[*paired.RUN, *kinds, "metric"])
    trained = table[table.split != "initialization"]
    for metric in metrics:
        splits = sorted(set(trained.split[trained.metric == metric]))
        if len(splits) > 1:
            raise ValueError(f"metrics: {metric!r} is in several splits ({', '.join(splits)}); use a measure of one split")
        series = {
            kind: trained[trained.metric == f"{metric}{suffix}"].set_index(paired.RUN).value for kind, suffix in kinds.items()
        }
        own = pd.DataFrame(series).loc[series["value"].index].reset_index().assign(metric=metric)
        known = found.set_index(["task", "model"]).index
        new = own[~own.set_index(["task", "model"]).index.isin(known)]
        found = pd.concat([found, new], ignore_index=True) if len(found) else new
    accuracy = style.accuracies(table, "test").set_index(paired.RUN).value.rename("accuracy")
    return found.join(accuracy, on=paired.RUN)


def _against_lambda(axes: Axes, rows: pd.DataFrame, models: list[str], options: dict[str, Any]) -> None:
    threshold = style.lambda_axis(axes, rows["lambda"], linscale=1, ticks=4)
    shades = style.distinct_colors(rows.regularizer)
    for model, own in rows.groupby("model"):
        marker = style.marker_of(models.index(model))
        for name in sorted(set(own.regularizer) - {"none"}) or ["none"]:
            line = own[own.regularizer.isin(["none", name])]
            shade = shades[name]
            axes.scatter(line["lambda"], line.value, s=9, color=shade, marker=marker, alpha=0.4, linewidths=0)
            lost = line["lambda"][line.value.isna()]
            intervals.crosses(axes, lost, shade, 20, linewidths=1, transform=axes.get_xaxis_transform())
            means = line.groupby("lambda").value.mean()
            null = line.groupby("lambda")[["low", "high", "shuffled"]].mean().dropna()
            axes.fill_between(null.index, null.low, null.high, color=shade, alpha=0.12, linewidth=0, zorder=0)
            axes.plot(null.index, null.shuffled, color=shade, linestyle=":", linewidth=1, zorder=1)
            label = words.of_method(name, model, models, options)
            axes.plot(means.index, means, color=shade, marker=marker, markersize=3.5, linewidth=1.2, label=label)
    axes.set_xlim(left=-0.5 * threshold)
    axes.tick_params(labelsize="small")


def _against_accuracy(axes: Axes, rows: pd.DataFrame, models: list[str]) -> None:
    axes.scatter(rows.accuracy, rows.shuffled, s=10, color="0.8", marker="_", linewidths=1, zorder=0)
    shades = style.distinct_colors(rows.regularizer)
    for (model, name), own in rows.groupby(["model", "regularizer"]):
        marker = style.marker_of(models.index(model))
        axes.scatter(own.accuracy, own.value, s=14, color=shades[name], marker=marker, alpha=0.7, linewidths=0)
    axes.set_xlim(-0.03, 1.03)
    axes.tick_params(labelsize="small")
    rhos = [ranks.stated(ranks.correlation(own.value, own.accuracy)) for _, own in rows.groupby("model")]
    axes.set_title(f"rho {' / '.join(rhos)}", loc="right")


def _caption(measures: dict[str, pd.DataFrame], swaps: str) -> str:
    shown = {metric for rows in measures.values() for metric in rows.metric}
    others = "".join(f"; for {name} it is {null}" for name, null in _NULLS.items() if any(one.startswith(name) for one in shown))
    lines = [
        "Measures of what the networks represent: against lambda (first panel of each pair; lines are means over seeds) and "
        "against accuracy on combinations never seen (second). Every dot is a run; lambda = 0 (black in the second panels) is "
        "the plain network. Each model's metric is named below, with the representation in which it is measured. Dotted, with "
        'a pale band: the "shuffled" values, which are the same measure after shuffling which vector belongs to which '
        f"input{others}; shown are their mean and their 2.5 and 97.5 % quantiles, each averaged over the line's seeds. In the "
        "second panels they are a gray dash per run. rho: Spearman's rank correlation between the measure and accuracy, one "
        "number per model in alphabetical order, over all its runs that have the measure. Runs of one lambda are not independent "
        "of each other, so rho describes this grid and is not a test."
        + (
            " Crosses at the bottom are runs without a value, which are not averaged: they diverged, or all runs compared with "
            "them diverged, or there is no other seed to compare with."
        )
        * any(rows.value.isna().any() for rows in measures.values())
        + swaps,
        "",
    ]
    for title, rows in measures.items():
        lines.append(f"* {title}")
        for (task, model, metric), own in rows.groupby(["task", "model", "metric"]):
            plain = own[own.regularizer == "none"]
            shuffled = f", shuffled {plain.shuffled.mean():.3f}" if plain.shuffled.notna().any() else ""
            start = f"{plain.value.mean():.3f} at lambda = 0{shuffled}; " if plain.value.notna().any() else ""
            known = own.value.notna()
            parts = []
            for name, regularized in own[known & (own.regularizer != "none")].groupby("regularizer"):
                by_lambda = regularized.groupby("lambda").value.mean()
                accuracy = regularized.groupby("lambda").accuracy.mean()
                if accuracy.notna().any():
                    best = accuracy.idxmax()
                    span = f", its most accurate lambda (range {by_lambda.min():.3f} to {by_lambda.max():.3f})"
                    parts.append(f"{name} {by_lambda[best]:.3f} at {best:g}{span if len(by_lambda) > 1 else ''}")
            rho = ranks.correlation(own.value, own.accuracy)
            parts.append("rho undefined" if np.isnan(rho) else f"rho with accuracy {rho:+.2f} ({known.sum()} runs)")
            if not known.all():
                parts.append(f"{(~known).sum()} of {len(own)} runs without a value")
            lines.append(f"  - {task}, {model}, {metric}: {start}{'; '.join(parts)}")
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS.

    Raises:
        ValueError: no run has a requested measure, or the table has several tasks.
    """
    if len(tasks := sorted(set(table.task))) > 1:
        raise ValueError(
            f"metrics: a figure of measures shows one task, the table has {', '.join(tasks)}; make one figure per task"
        )
    measures = {title: _values(table, metrics) for title, metrics in options["measures"].items()}
    for title, rows in measures.items():
        if rows.empty:
            raise ValueError(f"metrics: no run has {' or '.join(map(repr, options['measures'][title]))}, listed under {title!r}")
    columns = min(_COLUMNS, len(measures))
    lines = -(-len(measures) // columns)
    figure, grid = plt.subplots(
        2 * lines, columns, figsize=(2.4 * columns, 3.9 * lines + 0.3), squeeze=False, layout="constrained"
    )
    models = sorted(set(table.model))
    for index, (title, rows) in enumerate(measures.items()):
        top, bottom = grid[2 * (index // columns) : 2 * (index // columns) + 2, index % columns]
        _against_lambda(top, rows, models, options)
        _against_accuracy(bottom, rows, models)
        for axes in (top, bottom):
            axes.set_ylabel(textwrap.fill(title, _LETTERS))
            axes.grid(axis="y", color="0.94")
            axes.set_axisbelow(True)
            if title in options["logarithmic"]:
                axes.set_yscale("log")
        if rows.value.notna().any():
            bottom.set_ylim(top.get_ylim())
        top.set_title(title)
        top.set_xlabel("lambda")
        bottom.set_xlabel("accuracy, recombinations")
    for axes in grid[-2:, (len(measures) - 1) % columns + 1 :].flat:
        axes.set_visible(False)
    marks: list[Artist] = [Line2D([], [], linestyle="", marker="o", markersize=4, color="k", label="a plain run (lower panels)")]
    if any(rows.shuffled.notna().any() for rows in measures.values()):
        marks += [
            Line2D([], [], linestyle=":", linewidth=1, color="0.4", label="shuffled: mean"),
            Patch(facecolor="0.4", alpha=0.2, label="shuffled: 95 % of the values"),
            Line2D([], [], linestyle="", marker="_", color="0.7", label="shuffled: a run (lower panels)"),
        ]
    page.legend(figure, grid.flat, options, *marks, style.RUN)
    return figure, _caption(measures, style.exposure(pd.concat(measures.values()), table))
