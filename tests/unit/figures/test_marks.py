"""Marks that several figures share."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer
from support import judged

from compositional.figures.shared import bars, intervals, page, rows, style


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


def test_rows_of_published_systems_are_below_a_line():
    figure, panels = rows.panels(2, ["ours", "more"], {}, width=2, height=0.3, below=0.4, published=["theirs"])
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["ours", "more", "theirs (published)"]
    assert [line.get_ydata()[0] for axes in panels for line in axes.lines] == [1.5, 1.5]
    plt.close(figure)


def test_wrapped_names_of_rows_do_not_overlap_in_a_column_of_a_paper():
    style_of_page, long = {"width": 3.3}, "a system with a name of so many words that three lines are needed for it"
    with plt.rc_context(style.RC):
        figure, _ = rows.panels(1, [long, long, "short", long], style_of_page, width=2, height=0.26, below=0.4)
        page.fit(figure, style_of_page)
        assert judged.overlapping(figure) == []
        plt.close(figure)


def test_an_axis_of_lambdas_names_at_most_so_many_as_asked_and_marks_all():
    figure, axes = plt.subplots()
    style.lambda_axis(axes, [0, 0.001, 0.01, 0.1, 1, 10], ticks=4)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.001", "", "0.1", "", "10"]
    plt.close(figure)
