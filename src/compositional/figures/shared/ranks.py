"""Rank correlations of the figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr


def correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's rank correlation of two variables (n,); NaN if one of them does not vary."""
    return float(spearmanr(one, other).statistic) if min(len(np.unique(one)), len(np.unique(other))) > 1 else np.nan


def stated(correlation: float) -> str:
    """A correlation in a caption or a title."""
    return "undefined" if np.isnan(correlation) else f"{correlation:+.2f}"
