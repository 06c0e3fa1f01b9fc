"""Kernel machines on addition with dispersed training sets: many random sets of two combinations per item and component."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import item_values, page, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "line": {
        "type": "string",
        "pattern": ".",
        "names": "models",
        "default": "",
        "description": "the model with a grid of kernels, for the error",
    },
    "values": {
        "type": "string",
        "pattern": ".",
        "names": "models",
        "default": "",
        "description": "the model with single kernels, for the values of items",
    },
    "shown": {"type": "integer", "minimum": 1, "default": 4, "description": "number of training sets that are shown separately"},
}


def _outputs(rows: pd.DataFrame) -> pd.DataFrame:
    """Columns first, second, kernel, set, split, value of every output."""
    own = rows[rows.metric.str.startswith("output of ")]
    parts = own.metric.str.extract(r"output of (?P<first>\d+) (?P<second>\d+) at (?P<kernel>\S+) of set (?P<number>\d+)")
    return parts.astype({"first": int, "second": int, "number": int}).assign(split=own.split, value=own.value)


def _item_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Coefficient plus half the intercept, averaged over both components: index (kernel, set), one column per item."""
    own = rows[(rows.split == "all") & rows.metric.str.startswith("value of ")]
    parts = (
        own.metric.str.extract(r"^value of (?P<name>\S+) at (?P<kernel>\S+) of set (?P<number>\d+)$")
        .assign(value=own.value)
        .dropna()
    )
    parts["number"] = parts.number.astype(int)
    intercept = parts[parts.name == "intercept"].set_index(["kernel", "number"]).value
    single = parts[parts.name != "intercept"]
    single = single.assign(item=single.name.str.partition("=")[2].astype(int))
    return single.groupby(["kernel", "number", "item"]).value.mean().unstack().add(intercept / 2, axis=0)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    line, single = (table[table.model == options[key]] for key in ("line", "values"))
    errors = line[(line.split == "test") & line.metric.str.startswith("squared_error at ")]
    where = errors.metric.str.extract(r"squared_error at (?P<kernel>\S+) of set (?P<number>\d+)").astype(float)
    errors = where.assign(value=errors.value).pivot(index="kernel", columns="number", values="value")
    outputs, values = _outputs(single), _item_values(single)
    names = sorted(set(values.index.get_level_values("kernel")), key=float)
    shown = min(options["shown"], errors.shape[1])
    figure, grid = plt.subplots(2, shown + 1, figsize=(2.1 * (shown + 1) + 0.8, 4.3), layout="constrained")
    for number in range(shown):
        trained = outputs[(outputs.number == number) & (outputs.kernel == names[0]) & (outputs.split == "train")]
        matrix = np.zeros((9, 9))
        matrix[trained["first"], trained["second"]] = 1
        grid[0, number].imshow(matrix, cmap="Greys", vmax=1.4, origin="lower", extent=(-4.5, 4.5, -4.5, 4.5))
        grid[0, number].set(
            title=f"training set {number + 1}", xticks=[-4, 0, 4], yticks=[-4, 0, 4], xlabel="second", ylabel="first"
        )
    mean, deviation = errors.mean(axis=1), errors.std(axis=1, ddof=1)
    half = 2 * deviation / np.sqrt(errors.shape[1])
    axes = grid[0, shown]
    axes.plot(mean.index, mean, color="k", linewidth=1.4, label="mean over sets")
    axes.fill_between(mean.index, mean - half, mean + half, color="k", alpha=0.2, linewidth=0, label="two standard errors")
    axes.set(xlabel="salience of a component", ylabel="squared error, new", ylim=(0, None), xlim=(0, 0.5))
    for number in range(shown + 1):
        axes = grid[1, number]
        own = {f"salience {name}": values.loc[name].loc[number] if number < shown else values.loc[name].mean() for name in names}
        item_values.draw(axes, own, style.shades(len(names)), size=2.5)
        axes.set(ylim=(-4.4, 4.4), title=f"mean of {errors.shape[1]} sets" if number == shown else f"set {number + 1}")
    page.legend(figure, [grid[0, shown], grid[1, -1]], options)
    places = {at: np.isclose(mean.index, at) for at in (0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.5)}
    lines = [
        f"Support vector regression on {errors.shape[1]} dispersed training sets of 18 combinations. Top: {shown} of the "
        "sets, and the mean squared error on new combinations against the salience of a component (band: two standard errors). "
        "Bottom: learned against true values of items, one color per salience; dashed: true values.",
        "",
        "* mean squared error (standard deviation over sets): "
        + ", ".join(
            f"{mean[place].item():.2f} ({deviation[place].item():.2f}) at {at:g}" for at, place in places.items() if place.any()
        ),
        "* slope of mean values: " + ", ".join(f"{item_values.slope(values.loc[name].mean()):.3f} at {name}" for name in names),
    ]
    return figure, "\n".join(lines)
