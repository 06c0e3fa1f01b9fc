"""Accuracy against the distance of the parts that must be combined, one line per lambda: locality bias, and what counters it."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.figure import Figure

from compositional.figures.shared import claims, page, paired, style, words

SOURCE = "metrics.csv"
PARAMETERS = {
    "tasks": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "number"},
        "default": {},
        "description": "task -> distance (or path length) on the horizontal axis",
    },
    "axis": {"type": "string", "default": "distance (pixels)", "description": "what the horizontal axis shows"},
    "problem": {"type": "string", "default": "", "description": "what is learned, for the title and the caption"},
    "regularizer": {
        "type": "string",
        "names": "regularizers",
        "default": "interaction",
        "description": "the regularizer whose lambdas are compared with 0",
    },
    "published": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "names": "tasks",
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "default": {},
        "description": "lambda -> {task: published accuracy}, drawn as open circles and compared in the caption",
    },
}
_CHANCE = 0.5
_LEARNED = 0.05  # training accuracy may be lower than the plain network's by this, so that test accuracies are compared
_LESS = 0.3  # a fall is clearly less if it is less by this share


def accuracies(table: pd.DataFrame, options: dict[str, Any], split: str) -> pd.DataFrame:
    """Accuracy of every run: columns place, lambda, seed, value (NaN if a run diverged)."""
    rows = table[(table.metric == "accuracy") & (table.split == split) & table.task.isin(options["tasks"])]
    rows = rows[rows.regularizer.isin(["none", options["regularizer"]])]
    return rows.assign(place=rows.task.map(options["tasks"]))[["task", "place", "lambda", "seed", "value"]]


def _shades(regularizer: str, strengths: list[float]) -> dict[float, Any]:
    """By lambda: the plain model's color, and tones of the regularizer's, the darker the larger lambda."""
    full = np.array(colors.to_rgb(style.color(regularizer)))
    used = [strength for strength in strengths if strength > 0]
    shares = np.linspace(1, 0.45, len(used))[::-1]
    return {0.0: style.color("none")} | {strength: 1 - share * (1 - full) for strength, share in zip(used, shares, strict=True)}


def _by_place(own: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Means and standard deviations over seeds (NaN if there is only one), by place.

    Other figures divide by n - 1. Here, deviations are those of the population, as in the paper's figures, which are compared.
    """
    groups = own.groupby("place").value
    return groups.mean(), groups.std(ddof=0).where(groups.count() > 1)


def _described(own: pd.DataFrame, learned: pd.DataFrame, published: dict[float, float], axis: str) -> list[str]:
    """The caption's lines about the runs of one lambda: their accuracies on the test and on the training set, by place."""
    lines = []
    means, spread = _by_place(own)
    for place, mean in means.items():
        values = own[own.place == place].value
        if values.isna().all():
            lines.append(f"  - {axis} {place:g}: {style.mean(values)}")
            continue
        fitted = learned[learned.place == place].value.mean()
        around = f" ± {spread[place]:.3f}" if values.count() > 1 else " (1 seed)"
        compared = f"; published {words.published(published[place])}" if place in published else ""
        lines.append(f"  - {axis} {place:g}: test {mean:.3f}{around}, train {fitted:.3f}{compared}")
    return lines


def _compared(test: pd.DataFrame, train: pd.DataFrame, strength: float, axis: str) -> str:
    """The caption's line about the fall of accuracy at a lambda, compared with that at 0."""
    least, most = min(test.place), max(test.place)
    means = test.groupby(["lambda", "place"]).value.mean()
    # NaN if one of the ends is missing, for example because all its runs diverged.
    plain, fall = (means.get((at, least), math.nan) - means.get((at, most), math.nan) for at in (0.0, strength))
    if math.isnan(plain + fall):
        return f"* fall from the smallest to the largest {axis}, lambda 0 and {strength:g}: unknown"
    by_seed = test.pivot(index="seed", columns=["lambda", "place"], values="value")
    without, with_it = (by_seed[at, least] - by_seed[at, most] for at in (0.0, strength))
    less = without - with_it
    # A network that learns nothing also has no fall.
    higher = by_seed[strength, most] - by_seed[0.0, most]
    plain_fit, fit = (train[(train["lambda"] == at) & (train.place == most)].value.mean() for at in (0.0, strength))
    if fit < plain_fit - _LEARNED and not paired.few(less):
        verdict = style.verdict(False, f"its training accuracy at the end is lower by more than {_LEARNED:g}")
    else:
        parts = {"fall without": without - 0.05, "less": less - _LESS * without, "higher": higher}
        verdict = claims.verdict({name: claims.of_mean(part) for name, part in parts.items()})
    return (
        f"* fall from the smallest to the largest {axis}: {style.summary(without)} at lambda 0, "
        f"{fall:.3f} at lambda {strength:g}; at least 0.05 without, clearly ({100 * _LESS:.0f} %) less with the regularizer "
        f"(by {style.summary(less)}), and higher at the end (by {style.summary(higher)}): {verdict}"
    )


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: test accuracy solid, training accuracy dotted."""
    test, train = (accuracies(table, options, split) for split in ("test", "train"))
    figure, axes = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    lines = [
        f"{options['problem']}: accuracy against {options['axis']}, one line per lambda of `{options['regularizer']}`. Lines are "
        "means over seeds, bars, and ± after accuracies below, their standard deviation (population), dotted lines accuracy on "
        "the training set, dashed: chance; the last step counts, nothing is selected. Claim: without the regularizer accuracy "
        "falls; with it, accuracy falls clearly less and ends higher. It is open if one of the three 95 % intervals (Student's "
        "t), paired by seed, includes its bound; ± after falls and differences is half of such an interval.",
        "",
    ]
    published = {float(key): values for key, values in options["published"].items()}
    task_at = test.groupby("place").task.first()
    strengths = sorted(set(test["lambda"]))
    shades = _shades(options["regularizer"], strengths)
    for strength in strengths:
        shade = shades[strength]
        own, learned = test[test["lambda"] == strength], train[train["lambda"] == strength]
        means, spread = _by_place(own)
        given = published.get(strength, {})
        known = {place: given[task_at[place]] for place in means.dropna().index if task_at[place] in given}
        axes.errorbar(
            means.index, means, spread, color=shade, marker="o", markersize=4, capsize=2, label=f"lambda = {strength:g}"
        )
        axes.plot(learned.groupby("place").value.mean(), ":", color=shade, linewidth=1)
        for place, value in known.items():
            axes.plot(place, value, "o", markersize=8, markerfacecolor="none", color=shade)
        lines.append(f"* lambda {strength:g}, {own.seed.nunique()} seeds, {int(own.value.isna().sum())} diverged")
        lines += _described(own, learned, known, options["axis"])
    lines += [_compared(test, train, strength, options["axis"]) for strength in strengths if strength > 0]
    axes.plot([], [], ":", color="0.4", linewidth=1, label="training set")
    if published:
        axes.plot([], [], "o", markersize=8, markerfacecolor="none", color="0.4", label="published")
    axes.axhline(_CHANCE, color="0.6", linewidth=0.8, linestyle="--", label="chance")
    axes.set(xlabel=options["axis"], ylabel="accuracy", ylim=(min(0.4, axes.get_ylim()[0]), 1.02), xticks=sorted(set(test.place)))
    axes.set_title(options["problem"])
    axes.grid(axis="y", color="0.92")
    page.legend(figure, [axes], options, style.DEVIATION)
    return figure, "\n".join(lines)
