"""Shared by the figures of the study: its networks as a table, the inventions, and drawings of them."""

from __future__ import annotations

import networkx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from compositional.figures.shared import style
from compositional.synthesis import graphs
from compositional.synthesis.programs import Library, Term

GENERATION = r"_loop(?P<loop>\d+)_generation(?P<generation>\d+)$"
REFERENCES = {"majority class": ":", "shape in shape": "-."}
BASELINE, POPULATION = "#000000", "#0072B2"


def networks(table: pd.DataFrame) -> pd.DataFrame:
    """One row per network that did not diverge, sorted: loop and generation (0 for the baseline), seed, train, validation,
    train_loss, program, and numbers about the program (NaN for the baseline).
    """
    rows = table.set_index(["task", "seed"])

    def values(split: str, metric: str) -> pd.Series:
        return rows[(rows.split == split) & (rows.metric == metric)].value.astype(float)

    parts = {split: values(split, "accuracy") for split in ("train", "validation")} | {"train_loss": values("train", "loss")}
    parts |= {name: values("program", name) for name in ("nodes", "edges", "size", "mass", "origin", "changed")}
    texts = rows.metric[(rows.split == "program") & rows.metric.str.startswith("is ")]
    parts["program"] = texts.str.removeprefix("is ")
    found = pd.DataFrame(parts).dropna(subset=["train", "validation"]).reset_index()
    place = found.task.str.extract(GENERATION)
    found["loop"] = place.loop.fillna("-1").astype(int)
    found["generation"] = place.generation.fillna("0").astype(int)
    return found.sort_values(["generation", "loop", "seed"]).reset_index(drop=True)


def ranked(found: pd.DataFrame) -> pd.DataFrame:
    """Networks from the best to the worst by training accuracy, ties by training loss, as in `raven_evolved.rank`."""
    return found.sort_values(["train", "train_loss", "seed"], ascending=[False, True, True])


def references(table: pd.DataFrame) -> dict[str, float]:
    """Validation accuracies that need no network, by name."""
    rows = table[table.split == "reference"]
    return {name: float(rows[rows.metric == name].value.iloc[0]) for name in REFERENCES if (rows.metric == name).any()}


def draw_references(axes: Axes, values: dict[str, float]) -> None:
    """Draw horizontal lines for references that need no network."""
    for name, value in values.items():
        axes.axhline(value, color="0.45", linestyle=REFERENCES[name], linewidth=1, label=f"{name} ({value:.3f})")


def library(table: pd.DataFrame, task: str) -> Library:
    """The inventions that a generation's programs use."""
    rows = table[(table.task == task) & (table.split == "library")].drop_duplicates("metric")
    rows = rows.assign(place=rows.value.astype(float)).sort_values("place")
    return Library(dict(text.split(" = ", 1) for text in rows.metric))


def loop_interval(values: pd.Series) -> str:
    """Mean over loops with the half width of its 95 % interval (Student's t)."""
    return style.summary(values, of="loop")


def correlation(left: pd.Series, right: pd.Series) -> float:
    """Pearson's r; NaN if one of the two does not vary, and for fewer than three pairs."""
    return pd.concat([left, right], axis=1, keys=["left", "right"]).corr(min_periods=3).loc["left", "right"]


def draw_graph(axes: Axes, state: graphs.State) -> None:
    """Draw a program's graph: nodes by order of creation, edges colored and labeled by port."""
    multigraph = networkx.MultiGraph()
    multigraph.add_nodes_from(range(len(state.nodes)))
    for edge in state.edges:
        multigraph.add_edge(state.nodes.index(edge.left), state.nodes.index(edge.right), port=edge.port)
    found = networkx.kamada_kawai_layout(networkx.Graph(multigraph)) if len(state.nodes) > 1 else {0: np.zeros(2)}
    places = {node: (float(across), float(up)) for node, (across, up) in found.items()}
    bends: dict[frozenset, int] = {}
    for left, right, port in multigraph.edges(data="port"):
        pair = frozenset((left, right))
        bend = bends[pair] = bends.get(pair, -1) + 1
        arrow = {"arrowstyle": "-", "color": f"C{port}", "linewidth": 1.5, "connectionstyle": f"arc3,rad={0.25 * bend}"}
        axes.annotate("", places[left], places[right], arrowprops=arrow)
        middle = (found[left] + found[right]) / 2
        across, up = middle + 0.25 * bend * np.array([1, -1]) * (found[left] - found[right])[::-1] / 2
        axes.text(across, up, str(port), fontsize="x-small", ha="center", va="center", color=f"C{port}", bbox=style.BEHIND)
    for node, place in places.items():
        axes.plot(*place, "o", color="0.15" if node else "#D55E00", markersize=8, zorder=3)
        axes.text(place[0], place[1], str(node), fontsize="x-small", color="white", ha="center", va="center", zorder=4)
    # The layout is within -1..1. A path may be a straight line, so limits are fixed rather than computed.
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
    axes.set_axis_off()


def draw_term(axes: Axes, term: Term) -> None:
    """Draw a program or an invention's body as a tree, read from the top; holes are drawn as boxes."""
    width = 0.0

    def place(part: Term, depth: int) -> float:
        nonlocal width
        below = [place(argument, depth + 1) for argument in part.arguments]
        if below:
            x = sum(below) / len(below)
        else:
            x, width = width, width + 1
        for at in below:
            axes.plot([x, at], [-depth, -depth - 1], color="0.7", linewidth=1, zorder=1)
        is_hole = part.head.startswith("#")
        shade = "#E69F00" if is_hole else "#56B4E9" if part.head.startswith("fn_") else "0.92"
        box = {"boxstyle": "square,pad=0.25" if is_hole else "round,pad=0.25", "facecolor": shade, "edgecolor": "none"}
        axes.text(
            x, -depth, part.head.replace("if_positions_equal", "if equal"), fontsize="x-small", ha="center", va="center", bbox=box
        )
        axes.plot(x, -depth, alpha=0)
        return x

    place(term, 0)
    axes.margins(0.3, 0.15)
    axes.set_axis_off()
