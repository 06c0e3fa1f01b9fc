"""Accuracy compared with a rule that needs no network: what the caption concludes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.figures import against_rule
from compositional.plugins import defaults

OPTIONS = defaults("figures.against_rule") | {"rule": "guess", "strength": 0.2, "categories": "length"}


def table(plain: float, regularized: float, seeds: int = 3) -> pd.DataFrame:
    """Seeds whose accuracies differ by 0.01; the rule has 0.5, and 0.4 and 0.6 by category."""
    rows = []
    for name, strength, accuracy in (("none", 0.0, plain), ("entropy", 0.2, regularized)):
        for seed in range(seeds):
            own = {"task": "digits_concat", "model": "cnn", "regularizer": name, "lambda": strength, "seed": seed}
            value = accuracy + 0.01 * (seed - 1)
            found = {("test", "accuracy"): value, ("train", "accuracy"): 1.0, ("reference", "guess"): 0.5}
            found |= {("test", f"accuracy of length/{length}"): value for length in (9, 10)}
            found |= {("reference", "guess of length/9"): 0.4, ("reference", "guess of length/10"): 0.6}
            rows += [own | {"split": split, "metric": metric, "value": value} for (split, metric), value in found.items()]
    return pd.DataFrame(rows)


def caption(plain: float, regularized: float, seeds: int = 3) -> str:
    figure, text = against_rule.draw(table(plain, regularized, seeds), OPTIONS)
    plt.close(figure)
    return text


def test_the_caption_says_whether_any_mean_is_above_the_rule():
    below = caption(plain=0.45, regularized=0.47)
    assert "no mean is above the rule: holds. The largest is 0.470 ± 0.025 (entropy, lambda 0.2); 0 of 6 runs" in below
    assert "gain +0.020 ± 0.000" in below
    assert "categories where some mean is above the rule: length/9\n" in below
    above = caption(plain=0.45, regularized=0.53)
    assert "no mean is above the rule: DOES NOT HOLD" in above
    assert "3 of 6 runs are above the rule" in above


@pytest.mark.parametrize("mean", [0.48, 0.505])  # half of the interval is 4.303 * 0.01 / sqrt 3 = 0.025
def test_a_mean_whose_interval_includes_the_rule_is_neither_above_nor_below(mean):
    said = "no mean is above the rule: open, the interval includes the bound: entropy, lambda 0.2."
    assert said in caption(plain=0.45, regularized=mean)


def test_two_seeds_are_too_few_for_a_comparison_with_the_rule():
    assert "no mean is above the rule: open, too few seeds to judge" in caption(plain=0.45, regularized=0.47, seeds=2)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match=r"no reference 'coin'; name one of guess, guess of length/10"):
        against_rule.rule_of(table(0.4, 0.4), "digits_concat", "coin")


def test_runs_that_all_diverged_confirm_nothing():
    assert "no mean is above the rule: open, all runs diverged" in caption(plain=float("nan"), regularized=float("nan"))


def test_the_legend_names_the_crosses_of_diverged_runs():
    rows = table(plain=0.45, regularized=0.48)
    rows.loc[(rows.seed == 0) & (rows.regularizer != "none") & (rows.split == "test"), "value"] = float("nan")
    figure, _ = against_rule.draw(rows, OPTIONS)
    assert "a run that diverged" in [text.get_text() for text in figure.legends[0].get_texts()]
    plt.close(figure)
