"""Statistics of few runs on several tasks, after Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep Reinforcement
Learning at the Edge of the Statistical Precipice" (NeurIPS 2021).

Everywhere `scores` is a list with one array (runs,) per task. Intervals are percentile intervals of a stratified bootstrap, which
resamples the runs of every task and keeps the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from compositional import randomness

RESAMPLES = 2000


def interquartile_mean(*scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean of the middle half of all runs of all tasks: a quarter (rounded down) is cut off at each end."""
    return stats.trim_mean(np.concatenate(scores, axis), 0.25, axis)


def probability_of_improvement(*scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """The probability that a run of the first method is better than a run of the second on the same task, averaged over tasks.

    Ties count half: for every task it is the Mann-Whitney U statistic divided by the number of pairs of runs.

    Args:
        scores: (..., runs) for every task of the first method, then for every task of the second, in the same order.
    """
    if axis != -1:
        scores = tuple(np.moveaxis(own, axis, -1) for own in scores)
    half = len(scores) // 2
    shares = []
    for ours, theirs in zip(scores[:half], scores[half:], strict=True):
        better, alike = (compare(ours[..., :, None], theirs[..., None, :]) for compare in (np.greater, np.equal))
        shares.append((better + alike / 2).mean((-2, -1)))
    return np.mean(shares, 0)


def bootstrapped(statistic: Callable[..., np.ndarray], scores: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """A statistic with its 95 % interval (value, low, high); the interval is nan if a task has only one run."""
    value = float(statistic(*scores))
    if min(map(len, scores)) < 2:
        return value, np.nan, np.nan
    source = randomness.generator(randomness.derive("stratified bootstrap"))
    found = stats.bootstrap(scores, statistic, n_resamples=RESAMPLES, vectorized=True, method="percentile", rng=source)
    low, high = map(float, found.confidence_interval)
    return value, low, high
