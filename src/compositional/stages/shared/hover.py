"""Find where a figure shows values of single runs, so that the report can name the run of each point.

Figure modules need no code for this. The figure is drawn once more from its table with the last digits of every value changed
such that all values differ. The value of a point then identifies the row of the table that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.records.order import in_order
from compositional.runs import Run
from compositional.stages import plot
from compositional.tables.shared.reading import RUN, read_table

_TAG = 1e-13  # relative change of a value, times the number of its row
_NONE = (None, "None", "none", "", " ")  # values of a line's marker that stand for no marker


@dataclass(frozen=True)
class Point:
    """x, y: position of the center in pixels of the PNG, from the top left. value: text such as "test accuracy 0.75"."""

    x: float
    y: float
    run: Run
    value: str


def tagged(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[float, int]]:
    """The table with all values made different, and the number of the row that each value belongs to."""
    values = table.value.to_numpy(float)
    step = _TAG * np.arange(1, len(values) + 1) * np.maximum(np.abs(values), 1e-3)
    changed = np.where(np.abs(values) < 1e-6, values + step, values - np.sign(values) * step)
    changed = np.where(table.metric == "diverged", values, changed)
    places: dict[float, int] = {}
    for place in np.flatnonzero((table.metric != "diverged").to_numpy() & np.isfinite(values)):
        places[float(changed[place])] = int(place)
    return table.assign(value=changed), places


def _marks(figure: Figure) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The points of every artist that shows points: in data coordinates (n, 2), and in pixels from the bottom left (n, 2)."""
    for axes in figure.axes:
        for found in axes.collections:
            if len(offsets := np.ma.getdata(found.get_offsets())) and found.get_offset_transform().contains_branch(
                axes.transData
            ):
                yield offsets, found.get_offset_transform().transform(offsets)
        for line in axes.lines:
            if line.get_marker() not in _NONE and len(data := np.asarray(line.get_xydata(), float)):
                yield data, line.get_transform().transform(data)


def points(recipe: dict[str, Any], table: Path) -> tuple[tuple[float, float], list[Point]]:
    """Width and height of a figure's PNG in pixels, and the points that show a value of one run; no points without runs.

    Args:
        recipe: of the figure, from its record: `module`, `options` and their `order`.
        table: path of its table, a CSV file.
    """
    shown = read_table(table)
    if not {*RUN, "split", "metric", "value"} <= {*shown}:
        return (1.0, 1.0), []
    rows, places = tagged(shown)
    found = []
    with plot.drawn(recipe["module"], rows, in_order(recipe["options"], recipe["order"])) as (figure, _):
        dpi, margin = plot.rendering()
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        box = figure.bbox_inches if margin is None else figure.get_tightbbox().padded(margin)
        for data, pixels in _marks(figure):
            for place in range(len(data)):
                row = next((places[float(value)] for value in data[place] if float(value) in places), None)
                if row is not None:
                    x, y = pixels[place]
                    one = shown.iloc[row]
                    task, model, term, strength, seed = (one[key] for key in RUN)
                    run = Run(task, model, term, float(strength), int(seed))
                    said = f"{one['split']} {one['metric']} {one['value']:.4g}"
                    found.append(Point(x - box.x0 * dpi, box.y1 * dpi - y, run, said))
    return (box.width * dpi, box.height * dpi), found
