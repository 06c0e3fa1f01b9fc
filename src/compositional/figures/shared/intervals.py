"""Means of runs with 95 % intervals, as a line or a row of a chart, the runs as dots, and crosses for diverged runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from compositional.figures.shared import style


def line_of_means(
    axes: Axes,
    rows: pd.DataFrame,
    by: str,
    move: Callable[[pd.Series, float], pd.Series],
    shade: str,
    label: str,
    line: Any,
    marker: Any = "o",
) -> None:
    """Draw every run as a dot, and means with intervals (Student's t, cut off at 0 and 1) as a line.

    rows: columns `by` and `value`, NaN if a run diverged. move: shifts places on the axis, so that lines do not hide each other's
    runs. Its second argument is 0 for means and 1 for dots, which are shifted further.
    """
    axes.scatter(move(rows[by], 1.0), rows.value, s=12, color=shade, alpha=0.5, linewidths=0, zorder=3, marker=marker)
    groups = rows.dropna(subset="value").groupby(by).value
    means, half = groups.mean(), groups.apply(lambda values: style.drawn_interval(values.to_numpy()))
    axes.errorbar(
        move(means.index.to_series(), 0.0),
        means,
        style.inside(means, half),
        color=shade,
        label=label,
        linestyle=line,
        capsize=2,
        elinewidth=0.8,
        linewidth=1.4,
        marker=marker,
        markersize=3.5,
    )


def moved(strengths: pd.Series, share: float, threshold: float) -> pd.Series:
    """Lambdas moved to the right by a share of a decade, on a `style.lambda_axis` with this threshold; 0 moves as far."""
    return strengths * 10**share + (strengths == 0) * threshold * share


def crosses(axes: Axes, at: pd.Series, shade: str, size: float, **look: Any) -> None:
    """Draw diverged runs as crosses at 0, given their places on the axis."""
    axes.scatter(
        at, np.zeros(len(at)), marker="x", s=size, color=shade, clip_on=False, zorder=5, **style.named_diverged(at), **look
    )


def seeds_and_mean(
    axes: Axes,
    values: np.ndarray,
    place: float,
    shade: str,
    *,
    height: float = 0.12,
    name: str | None = None,
    largest: float = 1.0,
    size: float = 11,
    mark: Any = "|",
) -> None:
    """Draw one line of a chart: seeds as dots, the mean as a bar with its 95 % interval, diverged seeds as crosses at 0.

    largest: upper limit of the interval, 1 for shares. size: of the mean's bar, in points. mark: replaces the bar, half as high.
    """
    known = values[np.isfinite(values)]
    beside = np.linspace(-height, height, len(known)) if len(known) > 1 else np.zeros(len(known))  # equal values stay visible
    axes.scatter(known, place + beside, s=1.1 * size, color=shade, alpha=0.5, linewidths=0, zorder=3)
    lost = len(values) - len(known)
    axes.scatter(
        np.zeros(lost),
        np.full(lost, place),
        marker="x",
        s=25,
        color=shade,
        clip_on=False,
        zorder=4,
        **style.named_diverged(values[len(known) :]),
    )
    if len(known):
        error = style.inside(known.mean(), style.drawn_interval(known), largest)
        axes.errorbar(
            [known.mean()],
            [place],
            xerr=error,
            color=shade,
            marker=mark,
            markersize=size if mark == "|" else size / 2,
            capsize=2,
            label=name,
            linestyle="",
            # Not a width of 0, which would also be that of the caps.
            **({"markeredgewidth": 2} if mark == "|" else {"markeredgecolor": "none"}),
        )


def seeds_and_gain(axes: Axes, gains: np.ndarray, place: float, shade: Any, **look: Any) -> None:
    """Draw one line of a chart of differences: seeds as dots, the mean as a larger one with its 95 % interval."""
    axes.scatter(gains, np.full(len(gains), place), s=7, color=shade, alpha=0.35, linewidths=0)
    spread = style.drawn_interval(gains)
    axes.errorbar(gains.mean(), place, xerr=spread, color=shade, marker="o", markersize=5, capsize=2, elinewidth=1, **look)
