"""Components of factorizations in the tables of their learning curves."""

from __future__ import annotations

import pandas as pd

LEARNED = 0.02  # a component counts as learned if it is above this share of the largest one
RANKS = ("largest", "2nd largest", "3rd largest", *(f"{rank}th largest" for rank in range(4, 11)))  # names of the lines


def tracked(rows: pd.DataFrame, quantity: str, suffix: str = "") -> pd.DataFrame:
    """The tracked components of one run: one row per recorded step, columns 1, 2, ..., the largest at that step first."""
    own = rows[(rows.split == "model") & rows.metric.str.fullmatch(rf"{quantity}_\d+{suffix}")]
    ranks = own.metric.str.removeprefix(f"{quantity}_").str.removesuffix(suffix).astype(int)
    return own.assign(component=ranks).pivot(index="step", columns="component", values="value")
