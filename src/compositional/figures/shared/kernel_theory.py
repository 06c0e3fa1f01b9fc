"""Shared by figures of kernel theory: saliences by layer, and values of conjunctions by type."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from compositional.figures.shared import style
from compositional.measures import additivity

TYPES = ("right conjunction", "wrong conjunction", "sensory", "context", "memorization")


def saliences(table: pd.DataFrame) -> pd.DataFrame:
    """Columns model, name (a set of components), order, layer, value."""
    rows = table[(table.split == "kernel") & table.metric.str.contains(" at layer ")]
    name = rows.metric.str.removeprefix("salience of ").str.partition(" at layer ")
    found = rows.assign(name=name[0], layer=name[2].astype(int), order=name[0].str.count(r"\+") + 1)
    return found[found.name != "none"][["model", "name", "order", "layer", "value"]]


def type_of(conjunction: str) -> str:
    """The type of a conjunction such as "context=0 feature1=3"."""
    items = dict(part.split("=") for part in conjunction.split())
    if "context" not in items:
        return "sensory"
    if len(items) != 2:
        return "context" if len(items) == 1 else "memorization"
    relevant = "feature1" if items["context"] == "0" else "feature2"
    return "right conjunction" if relevant in items else "wrong conjunction"


def values_of_classes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows "value of <conjunction>" for the predicted classes -1 and 1 of a machine, from its rows "output of <items>"."""
    own = rows[rows.metric.str.startswith("output of ")]
    items = np.array([metric.split()[2:] for metric in own.metric], dtype=int)
    trained = (own.split == "train").to_numpy()
    found = additivity.describe(items, np.sign(own[["value"]].to_numpy()), trained, ("context", "feature1", "feature2"))
    return pd.DataFrame({"seed": 0, "metric": [*found], "value": [*found.values()]})


def magnitudes(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute value by type (columns, in order of TYPES), one row per seed, from the rows of one task and model."""
    rows = rows[rows.metric.str.startswith("value of ") & ~rows.metric.str.startswith("value of intercept")]
    kind = rows.metric.str.removeprefix("value of ").map(type_of)
    found = rows.assign(kind=kind, value=rows.value.abs()).pivot_table(index="seed", columns="kind", values="value")
    return found.reindex(columns=TYPES)


def bars(axes: Axes, groups: dict[str, pd.DataFrame], shades: np.ndarray) -> None:
    """Draw grouped bars of `magnitudes`, with every seed as a dot."""
    width = 0.8 / len(groups)
    for place, ((label, values), shade) in enumerate(zip(groups.items(), shades, strict=True)):
        at = np.arange(len(TYPES)) - 0.4 + width * (place + 0.5)
        axes.bar(at, values.mean(), width * 0.92, color=shade, label=label)
        if len(values) > 1:
            dots = np.tile(at, len(values)), values.to_numpy().ravel()
            axes.scatter(*dots, s=6, color="0.15", linewidths=0, alpha=0.6, zorder=3, label=style.RUN)
    axes.set_xticks(range(len(TYPES)), TYPES, fontsize="small", rotation=25, ha="right", rotation_mode="anchor")
    axes.set_ylabel("mean |value|")
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
