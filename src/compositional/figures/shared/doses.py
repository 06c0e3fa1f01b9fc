"""Runs of tasks whose reference values state how much of a word training shows: the doses of a draw."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from compositional.figures.shared import paired, style

COMMANDS, ROWS, DRAW, BITS = "composed commands", "rows of composed commands", "draw", "bits of the verb"


def placed(table: pd.DataFrame, needed: Sequence[str], lacking: str, optional: Sequence[str] = ()) -> pd.DataFrame:
    """Test accuracy of every run, with its task's reference values as columns; those that are `optional` may be missing.

    Raises:
        ValueError: a task lacks a value that is needed. lacking: the message, with {} for the task.
    """
    rows = style.accuracies(table, "test")
    told = table[table.split == "reference"].drop_duplicates(["task", "metric"])
    known = told.pivot(index="task", columns="metric", values="value").reindex(columns=[*needed, *optional]).dropna(subset=needed)
    if missing := sorted(set(rows.task) - set(known.index)):
        raise ValueError(lacking.format(repr(missing[0])))
    return rows.join(known, on="task").astype({name: int for name in needed if name != BITS})


def undecided(change: pd.Series) -> str:
    """Why it is open whether a change, one value per draw, is 0; empty if it is not."""
    if paired.few(change):
        return "too few draws to judge"
    return "" if paired.differs(change) else "the interval includes 0"
