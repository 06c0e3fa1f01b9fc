"""Marks that several figures share."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from compositional.figures.shared import bars, intervals, style


@pytest.mark.parametrize("across", [True, False])
def test_the_legend_shows_intervals_in_the_direction_of_the_panels(across):
    _, axes = plt.subplots()
    axes.errorbar([0.5], [0.5], **{"xerr" if across else "yerr": [0.1]})
    (handle,), _ = style.legend_entries([axes], style.INTERVAL)
    assert (handle.has_xerr, handle.has_yerr) == (across, not across)


@pytest.mark.parametrize("mark", ["|", "s", "^"])
def test_intervals_have_caps_with_every_mark(mark):
    _, axes = plt.subplots()
    intervals.seeds_and_mean(axes, np.array([0.2, 0.4, 0.6]), 0, "k", mark=mark)
    _, caps, _ = axes.containers[0]
    assert all(cap.get_markeredgewidth() > 0 for cap in caps)


def drawn(mark: str, seeds: int) -> list[str]:
    """The legend of one mean over so many seeds, next to a published one with its deviation, and the icons with an interval."""
    _, axes = plt.subplots()
    axes.errorbar([0.5], [1], xerr=[0.1], label="published")
    values = np.linspace(0.2, 0.6, seeds)
    if mark == "bar":
        bars.bar(axes, 0, pd.Series(values), bars.LEAK, width=0.2, upright=False)
    elif mark == "gain":
        intervals.seeds_and_gain(axes, values, 0, "k", label="ours")
    elif mark == "line":
        intervals.line_of_means(axes, pd.DataFrame({"at": 0, "value": values}), "at", lambda at, _: at, "k", "ours", "-")
    else:
        intervals.seeds_and_mean(axes, values, 0, "k", name="ours")
    handles, names = style.legend_entries([axes], style.INTERVAL)
    icons = [name for handle, name in zip(handles, names, strict=True) if isinstance(handle, ErrorbarContainer)]
    lines = [
        line for bar in axes.containers if isinstance(bar, ErrorbarContainer) for part in bar[2] for line in part.get_segments()
    ]
    assert len([line for line in lines if len(line)]) == (1 if seeds < 3 else 2)
    return icons


@pytest.mark.parametrize("mark", ["bar", "gain", "line", "mean"])
def test_one_or_two_seeds_have_no_interval_in_the_panel_or_in_the_legend(mark):
    few = ["published"]
    own = [] if mark == "bar" else ["ours"]
    assert drawn(mark, 1) == drawn(mark, 2) == few
    assert drawn(mark, 3) == [*few, *own, style.INTERVAL]
