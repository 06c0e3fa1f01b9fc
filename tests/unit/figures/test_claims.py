"""Verdicts over seeds: a difference within their spread is open, and the intervals are those of textbooks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compositional.figures import boundaries, influence, quadrant_shares, setting_curves
from compositional.figures.shared import claims
from compositional.plugins import defaults

NAN = float("nan")


def test_the_interval_of_unpaired_runs_is_welchs():
    first, second = pd.Series([0.1, 0.4, 0.3, NAN]), pd.Series([0.2, 0.25, 0.3, 0.31, 0.2])
    welch = stats.ttest_ind(first.dropna(), second, equal_var=False).confidence_interval()
    assert claims.of_difference(first, second) == pytest.approx((welch.low, welch.high))
    assert claims.of_difference(pd.Series([1.0] * 3), pd.Series([0.5] * 3)) == (0.5, 0.5)


def test_the_interval_of_a_share_is_exact():
    for hits, count in ((0, 3), (2, 8), (8, 8)):
        exact = stats.binomtest(hits, count).proportion_ci(method="exact")
        assert claims.of_share(pd.Series([True] * hits + [False] * (count - hits))) == pytest.approx((exact.low, exact.high))


def test_the_difference_of_shares_has_newcombes_interval_from_theirs():
    first, second = pd.Series([True] * 4), pd.Series([False] * 4)
    low, high = claims.of_difference_of_shares(first, second)
    edge = 0.025**0.25  # the interval of four of four begins here
    assert (low, high) == pytest.approx((1 - np.sqrt(2) * (1 - edge), 1.0))
    assert claims.of_difference_of_shares(first[:3], second[:3])[0] < 0


def test_an_interval_of_too_few_values_is_unknown():
    few, enough = pd.Series([0.1, 0.2, NAN]), pd.Series([0.1, 0.2, 0.3])
    assert np.isnan([claims.of_mean(few), claims.of_difference(few, enough), claims.of_difference(enough, few)]).all()
    assert np.isnan([claims.of_share(few[:2] > 0), claims.within(few, 0)]).all()
    assert claims.stated(claims.of_mean(few)) == ""
    assert claims.stated(claims.of_mean(pd.Series([0.25] * 3)), 2) == " (95 % interval 0.25 to 0.25)"


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ({"": (0.1, 0.2)}, "holds"),
        ({"": (-0.1, 0.2)}, "open, the interval includes the bound"),
        ({"": (-0.2, -0.1)}, "DOES NOT HOLD"),
        ({"": (0.0, 0.0)}, "DOES NOT HOLD"),
        ({"one": (0.1, 0.2), "two": (-0.1, 0.2), "three": (0.0, 0.1)}, "open, the interval includes the bound: two, three"),
        ({"one": (-0.2, -0.1), "two": (-0.1, 0.2)}, "DOES NOT HOLD"),
        ({"one": (-0.2, -0.1), "two": claims.UNKNOWN}, "open, too few seeds to judge"),
    ],
)
def test_a_claim_about_several_numbers_is_open_if_one_of_them_is(intervals, said):
    assert claims.verdict(intervals) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.4, 0.6, "holds"),
        (0.5, 0.6, "open, the interval includes the bound"),
        (0.4, 0.51, "open, the interval includes the bound"),
        (0.6, 0.7, "DOES NOT HOLD"),
        (-np.inf, 0.4, "DOES NOT HOLD"),
    ],
)
def test_a_mean_is_within_bounds_if_its_interval_is(low, high, said):
    assert claims.verdict({"": claims.within(pd.Series([0.49, 0.5, 0.51]), low, high)}) == said


def test_a_mean_without_spread_may_be_at_its_bound():
    assert claims.verdict({"": claims.within(pd.Series([0.1 + 0.2] * 3), high=0.3)}) == "holds"


def history(ends: dict[str, dict[str, list[float]]]) -> pd.DataFrame:
    """Two steps, 0 and 10, with equal values. ends: task -> metric on both splits -> one value per seed."""
    rows = [
        (task, "m", "none", 0.0, seed, step, split, metric, value)
        for task, metrics in ends.items()
        for metric, values in metrics.items()
        for seed, value in enumerate(values)
        for step in (0, 10)
        for split in ("train", "test")
    ]
    return pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "step", "split", "metric", "value"])


def caption(module, table: pd.DataFrame, **options) -> str:
    figure, text = module.draw(table, defaults(f"figures.{module.__name__.rpartition('.')[2]}") | options)
    plt.close(figure)
    return text


def test_a_higher_median_of_ratios_is_open_if_the_seeds_vary_more():
    def judged(of_a: list[float]) -> str:
        metrics = {"influence_relevant": [1.0] * 3, "accuracy": [0.5] * 3}
        table = history({"a": metrics | {"influence_redundant": of_a}, "b": metrics | {"influence_redundant": [0.5, 0.6, 0.7]}})
        return caption(influence, table, problems={"p": {"A": "a", "B": "b"}})

    # The median of A, 0.65, is above 0.6, and the mean by 0.05.
    assert "2 of 3 seeds of A end above B's median; mean of A minus B's 0.050 (95 % interval -0.177 to 0.277): open" in judged(
        [0.55, 0.65, 0.75]
    )
    assert "mean of A minus B's 0.400 (95 % interval 0.173 to 0.627): holds" in judged([0.9, 1.0, 1.1])
    assert "mean of A minus B's -0.400 (95 % interval -0.627 to -0.173): DOES NOT HOLD" in judged([0.1, 0.2, 0.3])


def test_a_lead_or_a_bound_within_the_spread_of_the_seeds_is_open():
    table = history({"a": {"accuracy": [0.5, 0.7, 0.9]}, "b": {"accuracy": [0.45, 0.6, 0.8]}})
    expectation = {"setting": "A", "quantity": "train", "at_least": 0.6}
    text = caption(setting_curves, table, settings={"A": "a", "B": "b"}, early_steps=[10], expectations=[expectation])
    # Means 0.7 and 0.6167; the interval of A is 0.7 +- 4.303 * 0.2 / sqrt 3.
    assert "A is ahead in 3 of 3 pairs of independent runs, by 0.083 (95 % interval -0.346 to 0.513): open, the interval" in text
    assert "final train accuracy 0.7000 (95 % interval 0.2032 to 1.1968), expected at least 0.6: open, the interval" in text


def test_most_of_a_few_seeds_are_not_yet_most_seeds():
    def judged(shares: list[float]) -> str:
        metrics = {"accuracy": shares} | {f"margin at {x} {y}": [1.0] * len(shares) for x in (-1, 1) for y in (-1, 1)}
        table = history({"t": metrics})
        grid = table.metric.str.startswith("margin") & (table.split == "train")
        return caption(boundaries, table.assign(split=table.split.mask(grid, "grid")), along="seed", models={"m": "title"})

    assert "in 3 of 4 seeds (95 % interval 0.194 to 0.994): open, the interval includes the bound" in judged([0.1, 0.2, 0.3, 0.9])
    assert "in 6 of 6 seeds (95 % interval 0.541 to 1.000): holds" in judged([0.1] * 6)
    assert "in 0 of 6 seeds (95 % interval 0.000 to 0.459): DOES NOT HOLD" in judged([0.9] * 6)


def test_a_difference_of_a_few_counts_of_seeds_is_open():
    def judged(of_a: list[float], of_b: list[float]) -> str:
        table = history({"a": {"accuracy": of_a}, "b": {"accuracy": of_b}})
        return caption(quadrant_shares, table[table.step == 10], settings={"A": "a", "B": "b"}, models={"m": "title"})

    some = judged([1.0, 0.9, 0.4, 0.3, 0.2], [1.0, 1.0, 0.9, 0.9, 0.9])
    assert "B's fraction minus A's (95 % interval -0.4" in some
    assert some.count("open, the interval includes the bound") == 2  # 1 of 5 against 2 of 5, and 3 of 5 get less than half
    all_of_them = judged([0.1] * 8, [1.0] * 8)
    assert all_of_them.count(": holds") == 2
