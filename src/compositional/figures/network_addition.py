"""Networks on addition: values of items by training set, additivity of outputs, and the effect of training on similarities."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
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
    measured: dict[str, dict[str, dict[str, pd.Series]]] = {}  # by task, quantity and network, one value per seed
    for axes, (task, title) in zip(grid[0], sets.items(), strict=False):
        learned = {}
        for model, label in models.items():
            rows = table[(table.task == task) & (table.model == model) & kept]
            if rows.empty:
                continue
            learned[label] = item_values.of_networks(rows)
            four = f"value of item 4 {learned[label][8]:.2f}, " if pd.notna(learned[label].get(8)) else ""
            own = {
                "additivity index": _by_seed(rows, "all", "additivity"),
                "squared error, new": _by_seed(rows, "test", "loss"),
                "similarity": _similarity(rows, "all"),
                "before": _similarity(rows, "initialization"),
                "spread of similarity": _similarity(rows, "all", "similarity_spread"),
            }
            for name, values in own.items():
                measured.setdefault(task, {}).setdefault(name, {})[label] = values
            means = {name: values.mean() for name, values in own.items()}
            lines.append(
                f"* {title}, {label} ({rows.seed.nunique()} seeds): additivity {means['additivity index']:.3f}, squared "
                f"error on new combinations {means['squared error, new']:.3f}, {four}similarity of overlapping inputs "
                f"{means['before']:.3f} before and {means['similarity']:.3f} after training, its spread "
                f"{means['spread of similarity']:.3f}"
            )
        item_values.draw(axes, learned, [shades[label] for label in learned])
        axes.set(title=title, ylim=(-4.4, 4.4))
    for axes in grid[0, len(sets) :]:
        axes.set_axis_off()
    grid[0, len(sets) - 1].legend(loc="center left", bbox_to_anchor=(1, 0.5), title=options["along"])
    names = [*models.values()]
    for axes, quantity in zip(
        grid[1], ("additivity index", "squared error, new", "similarity", "spread of similarity"), strict=True
    ):
        for (task, title), mark, shade in zip(sets.items(), _MARKS, style.apart(len(_MARKS)), strict=False):
            if task not in measured:  # all its runs are left out
                continue
            found = measured[task]
            places = [names.index(label) for label in found[quantity]]
            for place, values in zip(places, found[quantity].values(), strict=True):
                axes.scatter([place] * len(values), values, s=8, color=shade, alpha=0.5, linewidths=0)
            middle = [values.mean() for values in found[quantity].values()]
            axes.plot(places, middle, marker=mark, color=shade, markersize=4, linewidth=1, label=title)
            if quantity == "similarity":
                before = [values.mean() for values in found["before"].values()]
                axes.plot(places, before, mark, color=shade, markersize=5, fillstyle="none")
        axes.set(ylabel=quantity, xlabel=options["along"])
        axes.set_xticks(range(len(names)), names)
        axes.grid(axis="y", color="0.92")
    grid[1, 2].plot([], [], "o", color="0.4", fillstyle="none", markersize=5, label="before training")
    page.legend(figure, grid[1], options, style.RUN)
    return figure, "\n".join(lines)
