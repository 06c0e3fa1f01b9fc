"""How components grow: rate against size on logarithmic axes, and the fitted exponents compared with the theory's 2 - 2 / K.

Time is that of gradient flow: steps weighted by their size, which group RMSprop changes constantly.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import claims, components, style

SOURCE = "history.csv"
PARAMETERS = {
    "groups": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["task", "model", "quantity", "factors", "title"],
            "properties": {
                "task": {"type": "string", "names": "tasks"},
                "model": {"type": "string", "names": "models"},
                "quantity": {"type": "string", "names": "metrics"},
                "factors": {"type": "integer", "minimum": 2},
                "title": {"type": "string"},
            },
        },
        "default": [],
        "description": "groups: the task, model and tracked quantity of each; factors: K, the number of factors of a component",
    },
    "window": {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "default": [0.003, 0.1],
        "description": "rates are fitted while a component is between these shares of its final size",
    },
}
_COMPONENTS = 5  # number of largest components that are analyzed
_NEAR = 0.1  # an exponent that differs by no more agrees with the theory
_LEAST_POINTS = 4  # records in the window that a fit requires


def followed(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Sizes of one run's components: one row per recorded step, columns 1, 2, ..., the largest at the end first.

    If an index is recorded for each size, a column is one component, NaN while it is not tracked. Otherwise (singular values) a
    column is a rank.
    """
    ranks = components.tracked(rows, quantity)
    indices = components.tracked(rows, quantity, "_index")
    if indices.empty:
        return ranks
    sizes = pd.DataFrame({"size": ranks.stack(), "index": indices.stack()}).reset_index("component", drop=True)
    sizes = sizes.set_index("index", append=True)["size"].unstack()
    last = indices.iloc[-1]
    return sizes[last.to_list()].set_axis(last.index, axis=1)


def growth(rows: pd.DataFrame, quantity: str, window: list[float]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each learned component of one run: sizes and rates d size / d time at its records inside the window."""
    curves = followed(rows, quantity)
    sizes = rows[(rows.split == "batches") & (rows.metric == "step_size")].set_index("step").value.sort_index()
    time = (sizes * np.diff(sizes.index, prepend=0)).cumsum()
    curves = curves.loc[curves.index.isin(time.index)]
    elapsed = np.diff(time.loc[curves.index])
    found = {}
    for name in curves.columns[:_COMPONENTS]:
        size = curves[name].to_numpy()
        if size[-1] < components.LEARNED * curves.iloc[-1].max():
            continue
        above = int((size > window[1] * size[-1]).argmax())
        below = np.flatnonzero(size[:above] < window[0] * size[-1])
        inside = slice(below[-1] + 1 if len(below) else 0, max(above - 1, 0))
        rate, middle = np.diff(size) / elapsed, np.sqrt(size[1:] * size[:-1])
        growing = rate[inside] > 0
        found[int(name)] = middle[inside][growing], rate[inside][growing]
    return found


def exponent(size: np.ndarray, rate: np.ndarray) -> float:
    """Slope of log rate over log size."""
    return float(np.polyfit(np.log(size), np.log(rate), 1)[0])


def _panel(axes: Axes, group: dict[str, Any], own: pd.DataFrame, window: list[float]) -> pd.Series:
    """Draw a group's rates; returns its exponents, one per run and component, by seed."""
    exponents, seeds, every = [], [], []
    shades = style.shades(_COMPONENTS, 0, 0.9)
    for seed, rows in own.groupby("seed"):
        for name, (size, rate) in growth(rows, group["quantity"], window).items():
            if len(size) < _LEAST_POINTS:
                continue
            exponents.append(exponent(size, rate))
            seeds.append(seed)
            every.append((size, rate))
            axes.plot(size, rate, ".", color=shades[name - 1], markersize=2.5, label=f"{components.RANKS[name - 1]} component")
    theory = 2 - 2 / group["factors"]
    if every:
        sizes, rates = (np.concatenate(part) for part in zip(*every, strict=True))
        reach = np.array([sizes.min(), sizes.max()])
        height = np.exp(np.mean(np.log(rates) - theory * np.log(sizes)))
        lines = axes.plot(reach, height * reach**theory, color="black", linewidth=1)
        axes.legend(lines, [f"slope {theory:.3g}"])
    axes.set(xscale="log", yscale="log", xlabel="size of the component")
    axes.set_title(f"{group['title']}, K = {group['factors']}")
    return pd.Series(exponents, index=seeds, dtype=float)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: one panel per group, and one with all exponents against K."""
    groups = options["groups"]
    columns = min(5, len(groups))
    height = -(-len(groups) // columns)
    figure = plt.figure(figsize=(2.3 * columns + 2.9, 2.3 * height), layout="constrained")
    left, right = np.asarray(figure.subfigures(1, 2, width_ratios=[2.3 * columns, 2.9]))
    panels = left.subplots(height, columns, squeeze=False)
    low, high = options["window"]
    lines = [
        "Rate of growth d(size)/d(time) of a component against its size, while it is between "
        f"{low:g} and {high:g} of its final size. Theory: rate ~ size^(2 - 2/K) for K factors per component, while the residual "
        "in its direction is constant. The figure follows the components that are largest at the end, each while it is among the "
        "ten largest; singular values are followed by rank. Dots are recorded points of all runs, colors are components in order "
        "of size, black lines have the theory's slope. Right: fitted exponents, one dot per component and run. Time counts steps "
        "by their size. Agreement is open if the 95 % interval over runs includes a bound.",
        "",
    ]
    summary = right.subplots()
    for factors in sorted({group["factors"] for group in groups}):
        summary.hlines(2 - 2 / factors, factors - 0.35, factors + 0.35, color="black", linewidth=1, label="theory")
    for index, (group, axes) in enumerate(zip(groups, panels.flat, strict=False)):
        own = table[(table.task == group["task"]) & (table.model == group["model"])]
        exponents = _panel(axes, group, own, options["window"])
        place = group["factors"] + 0.12 * (index / max(len(groups) - 1, 1) - 0.5) * 4
        summary.plot([place] * len(exponents), exponents, ".", markersize=4, alpha=0.6, label=group["title"])
        theory = 2 - 2 / group["factors"]
        if exponents.empty:
            lines.append(f"* {group['title']}: no component has {_LEAST_POINTS} records in the window")
            continue
        quartiles = np.percentile(exponents, [25, 75])
        middle, by_run = exponents.median(), exponents.groupby(level=0).median()
        lines.append(
            f"* {group['title']}, K = {group['factors']}: theory {theory:.3f}, median exponent {middle:.3f} (quartiles "
            f"{quartiles[0]:.3f} to {quartiles[1]:.3f}, {len(exponents)} components of {own.seed.nunique()} runs); mean over "
            f"runs of their medians {style.summary(by_run)}, within {_NEAR:g} of the theory: "
            f"{claims.verdict({'': claims.within(by_run, theory - _NEAR, theory + _NEAR)})}"
        )
    for axes in panels.flat[len(groups) :]:
        axes.set_axis_off()
    for axes in panels.flat:
        axes.set_ylabel("rate of growth")
    summary.set(xlabel="K", ylabel="fitted exponent", xticks=range(2, max(group["factors"] for group in groups) + 1))
    left.legend(*style.legend_entries(panels.flat), ncols=_COMPONENTS, markerscale=2, loc="outside lower center")
    right.legend(*style.legend_entries([summary]), ncols=2, loc="outside lower center")
    return figure, "\n".join(lines)
