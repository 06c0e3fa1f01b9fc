"""Networks on addition: values of items by training set, additivity of outputs, and the effect of training on similarities."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import item_values, page, paired, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "sets": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "training sets: the task, and its title",
    },
    "models": {
        "type": "object",
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "networks in order, each with its label",
    },
    "along": {"type": "string", "default": "", "description": "the property that changes from network to network"},
    "largest_loss": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.001,
        "description": "runs with a larger training loss are left out, and counted in the caption",
    },
    "problem": {"type": "string", "default": "", "description": "what was trained, for the caption"},
}
_MARKS = ("o", "s", "^", "D", "v")


def _by_seed(rows: pd.DataFrame, split: str, metric: str) -> pd.Series:
    return rows[(rows.split == split) & (rows.metric == metric)].set_index("seed").value


def _similarity(rows: pd.DataFrame, split: str, kind: str = "similarity") -> pd.Series:
    """Similarity of inputs that share one component, averaged over both components, by seed."""
    first, second = (_by_seed(rows, split, f"{kind} of {part} in penultimate") for part in ("first", "second"))
    return (first + second) / 2


def _measured(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """What is measured of a network, by seed: the quantities of the lower panels, and "before": similarity before training."""
    return {
        "additivity index": _by_seed(rows, "all", "additivity"),
        "squared error, new": _by_seed(rows, "test", "loss"),
        "similarity": _similarity(rows, "all"),
        "before": _similarity(rows, "initialization"),
        "spread of similarity": _similarity(rows, "all", "similarity_spread"),
    }


def _described(rows: pd.DataFrame, learned: pd.Series, measured: dict[str, pd.Series]) -> str:
    """The numbers of a network, for the caption."""
    four = f"value of item 4 {learned[8]:.2f}, " if pd.notna(learned.get(8)) else ""
    means = {name: values.mean() for name, values in measured.items()}
    return (
        f"({rows.seed.nunique()} seeds): additivity {means['additivity index']:.3f}, squared error on new combinations "
        f"{means['squared error, new']:.3f}, {four}similarity of overlapping inputs {means['before']:.3f} before and "
        f"{means['similarity']:.3f} after training, its spread {means['spread of similarity']:.3f}"
    )


def _panel(axes: Axes, quantity: str, measured: list[tuple[str, dict[str, dict[str, pd.Series]]]], names: list[str]) -> None:
    """Draw a quantity by network, one line per training set. measured: titles of the sets, with what is measured by network."""
    for (title, of), mark, shade in zip(measured, _MARKS, style.apart(len(_MARKS)), strict=False):
        if not of:  # all its runs are left out
            continue
        places = [names.index(label) for label in of]
        for place, own in zip(places, of.values(), strict=True):
            axes.scatter([place] * len(own[quantity]), own[quantity], s=8, color=shade, alpha=0.5, linewidths=0)
        middle = [own[quantity].mean() for own in of.values()]
        axes.plot(places, middle, marker=mark, color=shade, markersize=4, linewidth=1, label=title)
        if quantity == "similarity":
            before = [own["before"].mean() for own in of.values()]
            axes.plot(places, before, mark, color=shade, markersize=5, fillstyle="none")
    axes.set_xticks(range(len(names)), names)
    axes.grid(axis="y", color="0.92")


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    sets, models = style.present(options["sets"], table.task), style.present(options["models"], table.model)
    loss = table[(table.split == "train") & (table.metric == "loss")].set_index(paired.KEY).value
    kept = table.set_index(paired.KEY).index.isin(loss.index[loss <= options["largest_loss"]])
    figure, grid = plt.subplots(2, 4, figsize=(10.6, 5), layout="constrained")
    shades = dict(zip(models.values(), style.shades(len(models)), strict=True))
    lines = [
        f"{options['problem']} Top: an item's learned value against its true one, mean of seeds (dashed: true values; items "
        "seen with all others are left out). Bottom, with lines through means and dots for seeds: additivity index of the "
        "outputs; squared error on new combinations; similarity of hidden representations of inputs that share one item "
        "(0: nothing shared, 1: identical), before (open) and after training; and its standard deviation over such pairs of "
        "inputs.",
        "",
    ]
    if dropped := int((~loss.le(options["largest_loss"])).sum()):
        lines.append(
            f"* {dropped} of {len(loss)} runs end with a training loss above {options['largest_loss']:g} and are left out"
        )
    measured: dict[str, dict[str, dict[str, pd.Series]]] = {task: {} for task in sets}
    for axes, (task, title) in zip(grid[0], sets.items(), strict=False):
        learned = {}
        for model, label in models.items():
            rows = table[(table.task == task) & (table.model == model) & kept]
            if rows.empty:
                continue
            learned[label], measured[task][label] = item_values.of_networks(rows), _measured(rows)
            lines.append(f"* {title}, {label} {_described(rows, learned[label], measured[task][label])}")
        item_values.draw(axes, learned, [shades[label] for label in learned])
        axes.set(title=title, ylim=(-4.4, 4.4))
    for axes in grid[0, len(sets) :]:
        axes.set_axis_off()
    grid[0, len(sets) - 1].legend(loc="center left", bbox_to_anchor=(1, 0.5), title=options["along"])
    quantities = ("additivity index", "squared error, new", "similarity", "spread of similarity")
    for axes, quantity in zip(grid[1], quantities, strict=True):
        _panel(axes, quantity, [(title, measured[task]) for task, title in sets.items()], [*models.values()])
        axes.set(ylabel=quantity, xlabel=options["along"])
    grid[1, 2].plot([], [], "o", color="0.4", fillstyle="none", markersize=5, label="before training")
    page.legend(figure, grid[1], options, style.RUN)
    return figure, "\n".join(lines)
