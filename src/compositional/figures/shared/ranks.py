"""Rank correlations of the figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr


def correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's rank correlation of two variables (n,), without pairs of which a value is missing (NaN); NaN if one does not
    vary."""
    pairs = np.stack([np.asarray(one, float), np.asarray(other, float)])
    known = pairs[:, ~np.isnan(pairs).any(0)]
    return float(spearmanr(*known).statistic) if min(len(np.unique(values)) for values in known) > 1 else np.nan


def stated(correlation: float) -> str:
    """A correlation in a caption or a title."""
    return "undefined" if np.isnan(correlation) else f"{correlation:+.2f}"
