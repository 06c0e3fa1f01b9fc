"""Values that machines and networks learn for the items of symbolic addition, for several figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from compositional.tasks.shared import designs


def by_kernel(rows: pd.DataFrame) -> pd.DataFrame:
    """Learned value of each item (coefficient plus half the intercept, averaged over components): one row per item, one column
    per kernel.

    Items that occur with all others in training are left out, because their values trade off against those of whole inputs.
    """
    rows = rows[(rows.split == "all") & rows.metric.str.startswith("value of ")]
    parts = rows.metric.str.extract(r"^value of (?P<name>\S+)(?P<rest>.*?) at (?P<kernel>.+)$").assign(value=rows.value)
    intercept = parts[parts.name == "intercept"].groupby("kernel").value.mean()
    single = parts[(parts.rest == "") & (parts.name != "intercept")]
    item = single.name.str.partition("=")[2].astype(int)
    values = single.assign(item=item).groupby(["item", "kernel"]).value.mean().unstack()
    partners = parts[parts.rest != ""].name.str.partition("=")[2].astype(int).value_counts()
    everywhere = partners.index[partners == partners.max()] if partners.max() > partners.min() else []
    kernels_in_order = sorted(values, key=lambda name: [float(part) for part in name.split()])
    return (values + intercept / 2).drop(index=everywhere)[kernels_in_order]


def of_networks(rows: pd.DataFrame) -> pd.Series:
    """Mean learned value of each item over the runs of one task and model; items are left out as in `by_kernel`."""
    return by_kernel(rows.assign(metric=rows.metric + " at 0"))["0"]


def slope(values: pd.Series) -> float:
    """Least-squares slope of learned against true values of items; NaN if a value is unknown."""
    return float(np.polyfit(designs.VALUES[values.index], values, 1)[0]) if values.notna().all() else np.nan


def draw(axes: Axes, values: Mapping[str, pd.Series], shades: Iterable[Any], size: float = 3) -> None:
    """Draw learned against true values of items, one labeled line for each; dashed: true values."""
    for (label, own), shade in zip(values.items(), shades, strict=True):
        axes.plot(designs.VALUES[own.index], own, "o-", color=shade, markersize=size, linewidth=1, label=label)
    axes.plot([-4, 4], [-4, 4], color="0.5", linestyle="--", linewidth=1, label="true values")
    axes.set(xlabel="item's value", ylabel="learned value")
