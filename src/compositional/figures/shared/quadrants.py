"""The toy problem's points and outputs in the tables of its learning curves."""

from __future__ import annotations

import pandas as pd


def coordinates(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows "margin at <X_1> <X_2>" with columns first, second and score: how strongly the output favors Y_1 = 1."""
    places = rows.metric.str.extract(r"margin at (?P<first>\S+) (?P<second>\S+)").astype(float)
    score = rows.value.where(places["first"] > 0, -rows.value)
    return places.assign(score=score, split=rows.split)[places["first"].notna()]
