"""Accuracy compared with a rule that needs no network: what the caption concludes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.figures import against_rule
from compositional.plugins import defaults

OPTIONS = defaults("figures.against_rule") | {"rule": "guess", "strength": 0.2, "categories": "length"}


def table(plain: float, regularized: float) -> pd.DataFrame:
    """Three seeds, whose accuracies differ by 0.01; the rule has 0.5, and 0.4 and 0.6 by category."""
    rows = []
    for name, strength, accuracy in (("none", 0.0, plain), ("entropy", 0.2, regularized)):
        for seed in range(3):
            own = {"task": "digits_concat", "model": "cnn", "regularizer": name, "lambda": strength, "seed": seed}
            value = accuracy + 0.01 * (seed - 1)
            found = {("test", "accuracy"): value, ("train", "accuracy"): 1.0, ("reference", "guess"): 0.5}
            found |= {("test", f"accuracy of length/{length}"): value for length in (9, 10)}
            found |= {("reference", "guess of length/9"): 0.4, ("reference", "guess of length/10"): 0.6}
            rows += [own | {"split": split, "metric": metric, "value": value} for (split, metric), value in found.items()]
    return pd.DataFrame(rows)


def caption(**accuracies: float) -> str:
    figure, text = against_rule.draw(table(**accuracies), OPTIONS)
    plt.close(figure)
    return text


def test_the_caption_says_whether_any_mean_is_above_the_rule():
    below = caption(plain=0.45, regularized=0.48)
    assert "no mean is above the rule: holds. The largest is 0.480 (entropy, lambda 0.2); 0 of 6 runs" in below
    assert "gain +0.030 ± 0.000" in below
    assert "categories where some mean is above the rule: length/9\n" in below
    above = caption(plain=0.45, regularized=0.505)
    assert "no mean is above the rule: DOES NOT HOLD" in above
    assert "2 of 6 runs are above the rule" in above


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
