"""Statistics of few runs, compared with hand-computed values and with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from compositional.measures import statistics


def test_interquartile_mean_drops_a_quarter_of_all_runs_at_each_end():
    # The middle half of 1 ... 8 is 3 ... 6; tasks do not matter.
    assert statistics.interquartile_mean(np.array([8.0, 1, 2, 3]), np.array([4.0, 5, 6, 7])) == 4.5
    # Of five runs, one is dropped at each end (5 / 4, rounded down).
    assert statistics.interquartile_mean(np.array([0.0, 1, 2, 3, 100])) == 2


def test_probability_of_improvement_is_a_mean_of_mann_whitney_shares():
    ours, theirs = [np.array([3.0, 1.0]), np.array([2.0, 2.0])], [np.array([2.0, 0.0]), np.array([2.0, 3.0])]
    # First task: 3 > 2, 3 > 0, 1 < 2, 1 > 0: 3 / 4. Second: a tie and a loss, twice: 1 / 4.
    assert statistics.probability_of_improvement(*ours, *theirs) == 0.5
    u = stats.mannwhitneyu(ours[0], theirs[0]).statistic
    assert statistics.probability_of_improvement(ours[0], theirs[0]) == u / 4


def test_the_bootstrap_draws_runs_within_their_tasks():
    # Task means differ by 10, runs within a task by 2: if runs were drawn across tasks, the interval would be many times as wide.
    scores = [np.array([0.0, 2.0]), np.array([10.0, 12.0])]

    def mean(*parts, axis=-1):
        return np.concatenate(parts, axis).mean(axis)

    value, low, high = statistics.bootstrapped(mean, scores)
    # Each task's mean is 0, 1 or 2 (10, 11, 12) with probabilities 1/4, 1/2, 1/4: the mean of both is 5 or 7 with 1/16 each.
    assert (value, low, high) == (6.0, 5.0, 7.0)
    assert statistics.bootstrapped(mean, scores) == (value, low, high)


def test_a_bootstrap_of_a_normal_sample_agrees_with_its_standard_error():
    scores = [np.random.default_rng(0).normal(size=400) for _ in range(2)]

    def mean(*parts, axis=-1):
        return np.concatenate(parts, axis).mean(axis)

    _, low, high = statistics.bootstrapped(mean, scores)
    error = 1.96 * np.sqrt(sum(own.var() / 400 for own in scores)) / 2
    assert (high - low) / 2 == pytest.approx(error, rel=0.1)


def test_a_single_run_has_no_interval():
    value, low, high = statistics.bootstrapped(statistics.interquartile_mean, [np.array([0.5]), np.array([0.7, 0.9])])
    assert value == pytest.approx(0.7)
    assert np.isnan([low, high]).all()
