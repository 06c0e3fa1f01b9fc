"""Accuracy against the distance of the parts that must be combined, one line per lambda: locality bias, and what counters it."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.figure import Figure

from compositional.figures.shared import claims, page, paired, style

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


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: test accuracy solid, training accuracy dotted."""
    test, train = (accuracies(table, options, split) for split in ("test", "train"))
    figure, axes = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    lines = [
        f"{options['problem']}: accuracy against {options['axis']}, one line per lambda of `{options['regularizer']}`. Lines are "
        "means over seeds, bars their standard deviation (population), dotted lines accuracy on the training set, dashed: "
        "chance; the last step counts, nothing is selected. Claim: without the regularizer accuracy falls; with it, accuracy "
        "falls clearly less and ends higher. It is open if one of the three 95 % intervals, paired by seed, includes its bound.",
        "",
    ]
    published = {float(key): values for key, values in options["published"].items()}
    falls, ends, fits = {}, {}, {}
    strengths = sorted(set(test["lambda"]))
    shades = _shades(options["regularizer"], strengths)
    for strength in strengths:
        shade = shades[strength]
        own, learned = test[test["lambda"] == strength], train[train["lambda"] == strength]
        groups = own.groupby("place").value
        means, spread = groups.mean(), groups.std(ddof=0).where(groups.count() > 1)
        axes.errorbar(
            means.index, means, spread, color=shade, marker="o", markersize=4, capsize=2, label=f"lambda = {strength:g}"
        )
        axes.plot(learned.groupby("place").value.mean(), ":", color=shade, linewidth=1)
        # NaN if one of the ends is missing, for example because all its runs diverged.
        ends[strength] = means.get(max(test.place), math.nan)
        fits[strength] = learned[learned.place == max(test.place)].value.mean()
        falls[strength] = means.get(min(test.place), math.nan) - ends[strength]
        lines.append(f"* lambda {strength:g}, {own.seed.nunique()} seeds, {int(own.value.isna().sum())} diverged")
        for place, mean in means.items():
            values = own[own.place == place].value
            if values.isna().all():
                lines.append(f"  - {options['axis']} {place:g}: {style.mean(values)}")
                continue
            fitted = learned[learned.place == place].value.mean()
            task = own[own.place == place].task.iloc[0]
            known = published.get(strength, {}).get(task)
            around = f" ± {spread[place]:.3f}" if values.count() > 1 else " (1 seed)"
            beside = "" if known is None else f"; published {known:.3f}"
            if known is not None:
                axes.plot(place, known, "o", markersize=8, markerfacecolor="none", color=shade)
            lines.append(f"  - {options['axis']} {place:g}: test {mean:.3f}{around}, train {fitted:.3f}{beside}")
    plain, others = falls.get(0.0, math.nan), {strength: fall for strength, fall in falls.items() if strength > 0}
    for strength, fall in others.items():
        if math.isnan(plain + fall):
            lines.append(f"* fall from the smallest to the largest {options['axis']}, lambda 0 and {strength:g}: unknown")
            continue
        by_seed = test.pivot(index="seed", columns=["lambda", "place"], values="value")
        by_lambda = {at: by_seed[at, min(test.place)] - by_seed[at, max(test.place)] for at in (0.0, strength)}
        less = by_lambda[0.0] - by_lambda[strength]
        # A network that learns nothing also has no fall.
        higher = by_seed[strength, max(test.place)] - by_seed[0.0, max(test.place)]
        if fits[strength] < fits[0.0] - _LEARNED and not paired.few(less):
            verdict = style.verdict(False, f"its training accuracy at the end is lower by more than {_LEARNED:g}")
        else:
            parts = {"fall without": by_lambda[0.0] - 0.05, "less": less - _LESS * by_lambda[0.0], "higher": higher}
            verdict = claims.verdict({name: claims.of_mean(part) for name, part in parts.items()})
        lines.append(
            f"* fall from the smallest to the largest {options['axis']}: {style.summary(by_lambda[0.0])} at lambda 0, "
            f"{fall:.3f} at lambda {strength:g}; at least 0.05 without, clearly ({100 * _LESS:.0f} %) less with the regularizer "
            f"(by {style.summary(less)}), and higher at the end (by {style.summary(higher)}): {verdict}"
        )
    axes.plot([], [], ":", color="0.4", linewidth=1, label="training set")
    if published:
        axes.plot([], [], "o", markersize=8, markerfacecolor="none", color="0.4", label="published")
    axes.errorbar([np.nan], [np.nan], [0], color="0.4", linestyle="", capsize=2, label="standard deviation over seeds")
    axes.axhline(_CHANCE, color="0.6", linewidth=0.8, linestyle="--", label="chance")
    axes.set(xlabel=options["axis"], ylabel="accuracy", ylim=(min(0.4, axes.get_ylim()[0]), 1.02), xticks=sorted(set(test.place)))
    axes.set_title(options["problem"])
    axes.grid(axis="y", color="0.92")
    page.legend(figure, [axes], options)
    return figure, "\n".join(lines)
