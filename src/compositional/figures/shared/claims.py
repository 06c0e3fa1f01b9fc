"""Verdicts from 95 % intervals over runs: a claim that numbers are above 0 holds or not only if no interval includes 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import betaincinv, stdtrit

from compositional.figures.shared import paired, style

Interval = tuple[float, float]  # lower and upper end; NaN if there are too few seeds
UNKNOWN: Interval = (np.nan, np.nan)
_EXACT = 1e-9  # a number that differs from a bound by no more is at the bound


def of_mean(values: pd.Series) -> Interval:
    """Interval of the mean of values, one per seed (Student's t). For what is paired by seed, pass differences."""
    known = values.dropna().to_numpy()
    half = style.interval(known)
    return UNKNOWN if paired.few(values) else (known.mean() - half, known.mean() + half)


def of_difference(first: pd.Series, second: pd.Series) -> Interval:
    """Interval of the difference of two means, first minus second, of runs that are not paired (Welch)."""
    if paired.few(first) or paired.few(second):
        return UNKNOWN
    counts, spreads = (np.array([getattr(values, name)() for values in (first, second)]) for name in ("count", "var"))
    squares = spreads / counts
    if not squares.any():
        half = 0.0
    else:
        half = stdtrit(squares.sum() ** 2 / (squares**2 / (counts - 1)).sum(), 0.975) * np.sqrt(squares.sum())
    return first.mean() - second.mean() - half, first.mean() - second.mean() + half


def of_share(true: pd.Series) -> Interval:
    """Interval of the share of runs for which something is true, a truth value per run (Clopper and Pearson, exact)."""
    hits, count = int(true.sum()), len(true)
    low = betaincinv(hits, count - hits + 1, 0.025) if hits else 0.0
    high = betaincinv(hits + 1, count - hits, 0.975) if hits < count else 1.0
    return UNKNOWN if paired.few(true) else (float(low), float(high))


def of_difference_of_shares(first: pd.Series, second: pd.Series) -> Interval:
    """Interval of the difference of two shares (as in `of_share`), first minus second, from their intervals (Newcombe)."""
    (one, low, high), (other, below, above) = ((float(true.mean()), *of_share(true)) for true in (first, second))
    return one - other - np.hypot(one - low, above - other), one - other + np.hypot(high - one, other - below)


def within(values: pd.Series, low: float = -np.inf, high: float = np.inf) -> Interval:
    """Interval of the distance of a mean from the nearer of two bounds; it is above 0 if the interval of the mean is between
    them, and below 0 if that is beyond one."""
    left, right = of_mean(values)
    return min(left - low, high - right) + _EXACT, min(right - low, high - left) + _EXACT


def verdict(intervals: Mapping[str, Interval]) -> str:
    """Words for the claim that every number is above 0. intervals: by what the number is about, "" if there is only one.

    It holds if all intervals are above 0, does not if one has nothing above 0, and otherwise is open.
    """
    if np.isnan([*intervals.values()]).any():
        return style.verdict(False, paired.TOO_FEW)
    fails = any(high <= 0 for _, high in intervals.values())
    unclear = [name for name, (low, high) in intervals.items() if low <= 0 < high]
    reason = "the interval includes the bound" + (f": {', '.join(unclear)}" if any(unclear) else "")
    return style.verdict(not fails, reason if unclear and not fails else "")


def stated(interval: Interval, digits: int = 3) -> str:
    """An interval in brackets, for captions, after a space; nothing if it is unknown."""
    return "" if np.isnan(interval).any() else " (95 % interval {:.{d}f} to {:.{d}f})".format(*interval, d=digits)
