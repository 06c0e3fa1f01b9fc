"""Programs and their graphs: the best and the worst of the last generation by training accuracy, one row per loop."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import synthesized as tables
from compositional.synthesis import graphs
from compositional.synthesis.programs import parse

SOURCE = "metrics.csv"
PARAMETERS = {
    "each": {"type": "integer", "minimum": 1, "default": 3, "description": "programs drawn from each end of the ranking"},
}
_LETTERS = 22  # in a line above a graph


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    found = tables.networks(table)
    found = found[found.generation == found.generation.max()]
    if found.empty:
        raise ValueError("all networks diverged, so there is no program to draw")
    loops, each = sorted(set(found.loop)), options["each"]
    figure, grid = plt.subplots(
        len(loops), 2 * each, figsize=(1.75 * 2 * each, 2.2 * len(loops)), squeeze=False, layout="constrained"
    )
    lines = [
        f"The {each} best (left) and worst programs of the last generation by training accuracy, one row per loop, as graphs. "
        "Nodes are numbered in order of creation, the first one red; numbers and colors of edges are ports. Above a graph: its "
        "program, and training and validation accuracy of its network.",
        "",
    ]
    for axes in grid.flat:
        axes.set_axis_off()
    for row, loop in zip(grid, loops, strict=True):
        own = tables.ranked(found[found.loop == loop])
        row[0].text(
            -0.02, 0.5, f"loop {loop}", transform=row[0].transAxes, rotation=90, ha="right", va="center", fontsize="small"
        )
        known = tables.library(table, own.task.iloc[0])
        ends = pd.concat([own.head(each), own.tail(each)]).drop_duplicates("seed")
        for axes, member in zip(row, ends.itertuples(), strict=False):
            tables.draw_graph(axes, graphs.run(known, parse(member.program)))
            text = "\n".join(textwrap.wrap(member.program, _LETTERS)[:4])
            axes.set_title(f"{text}\n{member.train:.2f} / {member.validation:.2f}")
            lines.append(
                f"* loop {loop}: train {member.train:.3f}, validation {member.validation:.3f}, {member.nodes:g} nodes, "
                f"{member.edges:g} edges: {member.program}"
            )
    return figure, "\n".join(lines)
