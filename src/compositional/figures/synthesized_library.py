"""Growth of the library over the generations, and drawings of the inventions of one loop."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import synthesized as tables

SOURCE = "metrics.csv"
PARAMETERS: dict = {}
_COLUMNS, _DRAWN = 6, 12  # inventions drawn per row, and in total: the first ones


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    found = tables.networks(table)
    found = found[found.generation > 0]
    if found.empty:
        raise ValueError("all networks diverged, so there is no program to draw")
    rows = []
    for (loop, generation), own in found.groupby(["loop", "generation"]):
        known = tables.library(table, own.task.iloc[0])
        rows.append((loop, generation, len(known), own["size"].mean(), own.mass.mean(), own.nodes.mean(), own.edges.mean()))
    grown = pd.DataFrame(rows, columns=["loop", "generation", "inventions", "size", "mass", "nodes", "edges"])
    shown = int(grown.loop.min())
    last = found[(found.loop == shown) & (found.generation == found.generation.max())]
    known = tables.library(table, last.task.iloc[0])
    bodies = list(known.bodies.items())[:_DRAWN]
    lines = -(-max(len(bodies), 1) // _COLUMNS)
    figure = plt.figure(figsize=(9.6, 2.6 + 2.1 * lines), layout="constrained")
    upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=[2.6, 2.1 * lines]))
    panels = upper.subplots(1, 3)
    for axes, names, title in zip(
        panels, (("inventions",), ("size", "mass"), ("nodes", "edges")), ("library", "programs", "graphs"), strict=True
    ):
        for name, shade in zip(names, ("#0072B2", "#D55E00"), strict=False):
            curves = grown.pivot(index="generation", columns="loop", values=name)
            axes.plot(curves.index, curves, color=shade, linewidth=0.8, alpha=0.6, marker=".")
            axes.plot([], [], color=shade, linewidth=0.8, alpha=0.6, marker=".", label=f"{name}, a loop")
            axes.plot(curves.index, curves.mean(axis=1), color=shade, linewidth=2, label=f"{name}, mean")
        axes.set(title=title, xlabel="generation", ylabel="number", xticks=sorted(set(grown.generation)), ylim=(0, None))
        axes.legend()
    for axes in (grid := lower.subplots(lines, _COLUMNS, squeeze=False)).flat:
        axes.set_axis_off()
    for axes, (name, body) in zip(grid.flat, bodies, strict=False):
        tables.draw_term(axes, body)
        axes.set_title(name)
    caption = [
        "Above: inventions in the library, mean size of a generation's programs (an invention counts once) and mass (inventions "
        "expanded), mean nodes and edges of their graphs; thin lines are single loops, thick ones their mean. Below: the "
        f"inventions of loop {shown}, read from the top; orange boxes are arguments, blue ones earlier inventions.",
        "",
    ]
    for generation, own in grown.groupby("generation"):
        numbers = ", ".join(f"{name} {tables.loop_interval(own[name])}" for name in grown.columns[2:])
        caption.append(f"* generation {generation}, {len(own)} loops: {numbers}")
    caption += [f"* loop {shown}: {name} = {body}" for name, body in known.bodies.items()]
    return figure, "\n".join(caption)
