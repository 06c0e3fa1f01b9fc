"""Regularized runs paired with the plain runs of the same seed."""

from __future__ import annotations

import pandas as pd

from compositional.figures.shared import style
from compositional.tables.shared import reading

KEY = ["task", "model", "seed"]
RUN = [*reading.RUN]
FEWEST = 3  # seeds for a conclusion: the interval of two values is too wide, or 0 if they are equal
TOO_FEW = "too few seeds to judge"


def gains(table: pd.DataFrame, split: str, metric: str = "accuracy") -> pd.DataFrame:
    """Regularized runs (task, model, regularizer, lambda, seed, value), with `gain`: their value minus the plain run's.

    split: "test" or "in_distribution".
    """
    rows = style.accuracies(table, split, metric)
    plain = rows[rows.regularizer == "none"].set_index(KEY).value.rename("plain")
    found = rows[rows.regularizer != "none"].join(plain, on=KEY)
    return found.assign(gain=found.value - found.plain)


def differs(gain: pd.Series) -> bool:
    """Whether the 95 % interval of the mean gain (Student's t) excludes 0."""
    known = gain.dropna().to_numpy()
    return len(known) > 1 and bool(abs(known.mean()) > style.interval(known))


def few(gain: pd.Series) -> bool:
    """Whether there are too few seeds for a conclusion."""
    return bool(gain.count() < FEWEST)


def undecided(*values: pd.Series) -> str:
    """Why a claim about values, one per seed, is open: there are too few. Empty if there are enough."""
    return TOO_FEW if any(map(few, values)) else ""


def helps(gain: pd.Series) -> bool:
    """Whether this interval is above 0."""
    return differs(gain) and gain.mean() > 0


def conclusion(gain: pd.Series, above: str, below: str, neither: str) -> str:
    """The word for this interval above 0, below 0, or neither; that there are too few seeds for a conclusion, if there are."""
    if few(gain):
        return TOO_FEW
    return neither if not differs(gain) else above if gain.mean() > 0 else below
