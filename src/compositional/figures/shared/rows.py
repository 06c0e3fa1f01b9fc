"""Charts with one row per method or published system, the same rows in every panel, and one panel per task."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

_LETTER, _BESIDE = 0.06, 0.5  # inches: width of a letter of a row's name, and space next to the names
_LINE = 0.19  # inches: height of a line of a row's name
_ABOVE = 0.6  # inches per row of panels, for titles and labels
_ABREAST = 4  # panels next to each other, unless the width of the page is given


def systems(published: Mapping[str, Mapping[str, Any]], tasks: Iterable[str]) -> list[str]:
    """The systems with published values for any of the tasks, each once."""
    return list(dict.fromkeys(name for task in tasks for name in published.get(task, {})))


def panels(
    count: int,
    names: list[str],
    page: Mapping[str, Any],
    *,
    width: float,
    height: float,
    below: float,
    published: Sequence[str] = (),
    sharex: bool = False,
) -> tuple[Figure, np.ndarray]:
    """Make `count` panels with the same rows, as many next to each other as fit on the page.

    Args:
        names: of the rows; they are wrapped if the page is narrow.
        page: the option `style`.
        width, height: of a panel and of a row, in inches.
        below: height of what is below all panels, such as a legend, in inches.
        published: systems with published values, whose rows are below those of `names` and a line.

    Returns:
        The figure and its panels (count,).
    """
    ours = len(names)
    names = [*names, *(f"{name} (published)" for name in published)]
    room = _BESIDE + _LETTER * max(map(len, names))
    across = page.get("width", room + width * min(count, _ABREAST))
    if across < room + width:  # a column of a paper
        names = [textwrap.fill(name, 28) for name in names]
        room = _BESIDE + _LETTER * max(len(line) for name in names for line in name.splitlines())
    most = int(np.clip((across - room) // (width / 2), 1, count)) if "width" in page else min(count, _ABREAST)
    rows = -(-count // most)
    columns = -(-count // rows)
    lines = [1 + name.count("\n") for name in names]
    height = max(height, *(_LINE * (above + under) / 2 for above, under in pairwise([*lines, 1])))
    size = (page.get("width", width * columns + room), (height * len(names) + _ABOVE) * rows + below)
    figure, grid = plt.subplots(rows, columns, figsize=size, sharex=sharex, sharey=True, squeeze=False, layout="constrained")
    for axes in grid.flat[count:]:
        axes.remove()
    grid[0, 0].set_yticks(range(len(names)), names)
    grid[0, 0].set_ylim(len(names) - 0.5, -0.5)
    for axes in grid.flat[: count if published else 0]:
        axes.axhline(ours - 0.5, color="0.7", linewidth=0.8)
    return figure, grid.flat[:count]
