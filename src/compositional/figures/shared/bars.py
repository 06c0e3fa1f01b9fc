"""Bars of means, with every seed as a dot, next to published values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from compositional.figures.shared import style

PUBLISHED, LEAK, HELD_OUT = "published", "ours, test expressions occur in training", "ours, test expressions held out of training"
SHADES = {PUBLISHED: "0.75", LEAK: "#E69F00", HELD_OUT: "#0072B2"}


def bar(axes: Axes, place: float, values: pd.Series, name: str, *, width: float, upright: bool, largest: float = np.inf) -> None:
    """Draw one bar: the mean of the known values with its 95 % interval, from three on, and every seed, from two on. A bar of
    length 0 is a line.

    largest: upper limit of the interval, 1 for shares.
    """
    known = values.dropna().to_numpy()
    if not len(known):
        return
    spread = style.inside(known.mean(), style.drawn_interval(known), largest) if len(known) > 1 else None
    shown: dict[str, Any] = {
        "color": SHADES[name],
        "edgecolor": SHADES[name],
        "linewidth": 1.5,
        "label": name,
        "error_kw": {"linewidth": 0.9, "capsize": 2},
    }
    if upright:
        axes.bar(place, known.mean(), width, yerr=spread, **shown)
    else:
        axes.barh(place, known.mean(), width, xerr=spread, **shown)
    if len(known) > 1:
        beside = place + np.linspace(-0.3, 0.3, len(known)) * width
        across, up = (beside, known) if upright else (known, beside)
        axes.scatter(across, up, s=5, color="0.15", alpha=0.5, linewidths=0, zorder=3, label=style.RUN)
