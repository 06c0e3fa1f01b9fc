"""Correlations and claims of the figure of a measure against accuracy, with hand-computed values."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from compositional.figures import measure_against_accuracy
from compositional.figures.shared import paired, ranks
from compositional.plugins import defaults

OPTIONS = defaults("figures.measure_against_accuracy") | {
    "measure": ["error in states", "error in penultimate"],
    "title": "error",
    "references": {"shuffled": "error in * (shuffled)"},
    "sign": -1,
}


def table(sign: float) -> pd.DataFrame:
    """Three seeds of three lambdas: the error falls (sign -1) or rises with accuracy; it is 5 if shuffled."""
    rows = []
    for seed in range(3):
        for place, strength in enumerate((0.0, 0.1, 1.0)):
            key = ("scan_jump", "lstm", "entropy" if strength else "none", strength, seed)
            accuracy = 0.1 + 0.3 * place + 0.01 * seed
            for split, metric, value in (
                ("test", "accuracy", accuracy),
                ("train", "accuracy", 1.0),
                ("probe", "error in states", 1 + sign * accuracy),
                ("probe", "error in states (shuffled)", 5.0),
            ):
                rows.append((*key, split, metric, value))
    return pd.DataFrame(rows, columns=[*paired.RUN, "split", "metric", "value"])


def test_partial_correlation_equals_the_hand_computed_value():
    one, given = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    # Spearman's rho of `one` and `given`: 1 - 6 * 2 / (4 * 15) = 0.8; of `one` with itself 1: (1 - 0.64) / (1 - 0.64).
    assert measure_against_accuracy.partial(one, one, given) == pytest.approx(1)
    other = np.array([2.0, 1.0, 4.0, 3.0])  # rho is 0.6 with `one` and 0 with `given`
    assert measure_against_accuracy.partial(one, other, given) == pytest.approx(0.6 / np.sqrt(1 - 0.64))
    assert measure_against_accuracy.partial(one, other, np.ones(4)) == pytest.approx(0.6)


@pytest.mark.parametrize(("sign", "said"), [(-1, "1 of 1: holds"), (1, "0 of 1: DOES NOT HOLD")])
def test_the_claim_holds_if_every_seed_is_on_its_side_of_zero(sign, said):
    figure, caption = measure_against_accuracy.draw(table(sign), OPTIONS)
    plt.close(figure)
    seeds = ", ".join(3 * [f"{sign:+.2f}"])
    assert f"(9 runs, 3 seeds): rho {sign:+.2f} (by seed: {seeds}), partial {sign:+.2f}; error in states" in caption
    assert said in caption
    assert f"plain: {1 + sign * 0.11:.3f}, accuracy 0.110; shuffled 5.000" in caption


def test_two_seeds_and_diverged_runs_leave_the_claim_open():
    rows = table(-1)
    lost = rows.assign(value=np.nan)
    for few in (rows[rows.seed < 2], lost):
        figure, caption = measure_against_accuracy.draw(few, OPTIONS)
        plt.close(figure)
        assert "It is in 0 of 0 (1 with too few seeds): open, too few seeds to judge." in caption
        assert "+nan" not in caption


def test_without_the_measure_there_is_no_figure():
    with pytest.raises(ValueError, match="no run has 'loss of nothing'"):
        measure_against_accuracy.draw(table(1), OPTIONS | {"measure": ["loss of nothing"]})


def test_rank_correlations_are_undefined_without_variation():
    assert ranks.correlation([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert [ranks.stated(ranks.correlation([1, 2], other)) for other in ([1, 1], [2, 1])] == ["undefined", "-1.00"]
    assert ranks.stated(ranks.correlation([1], [2])) == "undefined"
    assert ranks.correlation([1, np.nan, 2], [1, 2, np.nan]) is np.nan
    assert ranks.correlation([1, 2, 3, 9, np.nan], [1, 2, 3, np.nan, 0]) == pytest.approx(1)
