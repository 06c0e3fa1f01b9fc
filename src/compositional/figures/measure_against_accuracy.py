"""Is a measure of representations correlated with accuracy on recombinations? One panel per task and model, one point per run."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import page, paired, ranks, style, words

SOURCE = ("metrics.csv", "representations.csv")
PARAMETERS = {
    "measure": {
        "type": "array",
        "items": {"type": "string", "names": "metrics"},
        "default": [],
        "description": "names of metrics in the table; a model is shown with the first one that it has",
    },
    "title": {"type": "string", "default": "", "description": "name of the measure on its axis"},
    "references": {
        "type": "object",
        "additionalProperties": {"type": "string", "names": "metrics"},
        "default": {},
        "description": "name in the caption -> metric whose mean is given for comparison; * stands for the representation",
    },
    "sign": {"enum": [-1, 1], "default": 1, "description": "sign of the claimed correlation"},
}


def partial(one: np.ndarray, other: np.ndarray, given: np.ndarray) -> float:
    """Rank correlation of two variables with a third one held fixed: the partial correlation of their ranks. All are (n,)."""
    if len(set(given)) < 2:
        return ranks.correlation(one, other)
    own, first, second = (ranks.correlation(*pair) for pair in ((one, other), (one, given), (other, given)))
    rest = (1 - first**2) * (1 - second**2)
    return (own - first * second) / np.sqrt(rest) if rest > 0 else np.nan


def by_seed(rows: pd.DataFrame) -> np.ndarray:
    """The rank correlation between value and accuracy over the runs of each seed: a few seeds give no honest interval. Seeds in
    which one of the two does not vary are left out."""
    found = [ranks.correlation(own.value, own.accuracy) for _, own in rows.groupby("seed")]
    return np.array([rho for rho in found if not np.isnan(rho)])


def _runs(table: pd.DataFrame, measure: list[str]) -> pd.DataFrame:
    """One row per run that has the measure: its value, the run's accuracies, and the representation in which it is measured."""
    trained = table[table.split != "initialization"]
    found = [trained[trained.metric == metric].set_index(paired.RUN)[["value", "metric"]] for metric in measure]
    rows = pd.concat(found)
    rows = rows[~rows.index.duplicated()].reset_index()
    for name, split in (("accuracy", "test"), ("fitted", "in_distribution")):
        rows = rows.join(style.accuracies(table, split).set_index(paired.RUN).value.rename(name), on=paired.RUN)
    return rows


def _draw(axes: Axes, rows: pd.DataFrame, options: dict[str, Any]) -> None:
    shades = style.distinct_colors(rows.regularizer)
    for name, own in rows.groupby("regularizer"):
        label = f"{style.RUN}, {words.of(name, options)}"
        axes.scatter(own.value, own.accuracy, s=16, color=shades[name], alpha=0.75, linewidths=0, label=label)
    if rows.value.min() > 0 and rows.value.max() > 100 * rows.value.min():
        axes.set_xscale("log")
    axes.set_ylim(-0.04, 1.04)
    axes.grid(color="0.94")
    axes.set_axisbelow(True)


def _caption(rows: pd.DataFrame, table: pd.DataFrame, options: dict[str, Any]) -> str:
    lines = [
        f"{options['title'].capitalize()} against accuracy on combinations never seen; every point is a run. rho: Spearman's "
        "rank correlation over the runs of a panel; by seed: over the runs of each seed in which both vary; "
        "partial: the same with accuracy in distribution held fixed (accuracy on training examples if a task holds out nothing "
        "else). Runs that diverged are left out." + style.exposure(rows, table),
        "",
    ]
    stands = judged = 0
    for (task, model), own in rows.groupby(["task", "model"]):
        known = own.dropna(subset=["value", "accuracy"])
        own_rhos = by_seed(known)
        judged += (enough := len(own_rhos) >= paired.FEWEST)
        stands += enough and bool((options["sign"] * own_rhos > 0).all())
        rho = ranks.correlation(known.value, known.accuracy)
        given = partial(*(known[column].to_numpy() for column in ("value", "accuracy", "fitted")))
        lines.append(
            f"* {task}, {model} ({len(known)} runs, {known.seed.nunique()} seeds): rho {ranks.stated(rho)} "
            f"(by seed: {', '.join(f'{value:+.2f}' for value in own_rhos) or 'none'}), partial {ranks.stated(given)}; "
            f"{own.metric.iloc[0]}"
        )
        lines.append("")
        cell = table[(table.task == task) & (table.model == model)]
        representation = own.metric.iloc[0].rpartition(" in ")[2]
        for (name, strength), group in known.groupby(["regularizer", "lambda"]):
            shown = "plain" if name == "none" else f"{name}, lambda {strength:g}"
            line = f"  - {shown}: {group.value.mean():.3f}, accuracy {group.accuracy.mean():.3f}"
            setting = cell[(cell.regularizer == name) & (cell["lambda"] == strength)]
            for called, metric in options["references"].items():
                values = setting[setting.metric == metric.replace("*", representation)].value
                line += f"; {called} {values.mean():.3f}" if len(values) else ""
            lines.append(line)
        lines.append("")
    left = rows.groupby(["task", "model"]).ngroups - judged
    side = "above" if options["sign"] > 0 else "below"
    lines.append(
        f"Claim: the measure is correlated with accuracy: in most panels, the rank correlation is {side} 0 with every seed. It "
        f"is in {stands} of {judged}{f' ({left} with too few seeds)' if left else ''}: "
        f"{style.verdict(stands > judged / 2, '' if judged else paired.TOO_FEW)}."
    )
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS.

    Raises:
        ValueError: no run has the measure.
    """
    if not set(options["measure"]) & set(table.metric):
        raise ValueError(f"measure_against_accuracy: no run has {' or '.join(map(repr, options['measure'])) or 'a measure'}")
    rows = _runs(table, options["measure"])
    tasks, models = rows.task.unique(), rows.model.unique()
    figure, grid = plt.subplots(
        len(models), len(tasks), figsize=(2.6 * len(tasks) + 0.4, 2.3 * len(models) + 0.6), squeeze=False, layout="constrained"
    )
    for (line, column), axes in np.ndenumerate(grid):
        own = rows[(rows.task == tasks[column]) & (rows.model == models[line])].dropna(subset=["value", "accuracy"])
        axes.set_visible(len(own) > 0)
        if len(own):
            _draw(axes, own, options)
            axes.set_title(f"{words.of(tasks[column], options)}\n{words.of(models[line], options)}")
            axes.set(xlabel=options["title"], ylabel="accuracy, recombinations")
    page.legend(figure, grid.flat, options)
    return figure, _caption(rows, table, options)
