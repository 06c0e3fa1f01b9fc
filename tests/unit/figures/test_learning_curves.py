"""Learning curves distinguish settings that are trained, still improving, or stuck."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.figures import learning_curves

STEPS = (0, 200, 400, 600, 800)
TRAIN = {
    ("none", 0.0): (0.1, 0.6, 0.9, 0.99, 1.0),
    ("entropy", 0.1): (0.1, 0.5, 0.8, 0.95, 0.99),
    ("entropy", 1.0): (0.1, 0.1, 0.2, 0.3, 0.385),
    ("entropy", 10.0): (0.1, 0.1, 0.1, 0.1, 0.105),
}


@pytest.fixture
def table():
    rows = [
        ("scan_jump", "lstm", name, strength, seed, step, split, "accuracy", value * (1 if split == "train" else 0.5))
        for (name, strength), curve in TRAIN.items()
        for seed in range(2)
        for step, value in zip(STEPS, curve, strict=True)
        for split in ("train", "test")
    ]
    columns = ["task", "model", "regularizer", "lambda", "seed", "step", "split", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_a_lambda_that_is_too_large_is_distinguished_from_a_budget_that_is_too_small(table):
    figure, caption = learning_curves.draw(table, {})
    plt.close(figure)
    assert "lambda 0: trained (1.000)" in caption
    assert "lambda 0.1: trained (0.990)" in caption
    # From step 600, the last record within three quarters of 800, to the end: 0.385 - 0.3 and 0.105 - 0.1.
    assert "lambda 1: NOT TRAINED YET (0.385, +0.085 over the last quarter of the steps)" in caption
    assert "lambda 10: stuck (0.105, +0.005 over the last quarter of the steps)" in caption


def test_a_diverged_setting_has_no_curve(table):
    lost = table.assign(value=table.value.where(table["lambda"] != 10, float("nan")))
    figure, caption = learning_curves.draw(lost, {})
    plt.close(figure)
    assert "lambda 10: diverged" in caption


def test_diverged_runs_are_counted_and_do_not_change_the_verdict(table):
    """The history of a diverged run ends with a record that is NaN."""
    ends = (table["lambda"] == 10) & (table.step == 800)
    some = table.assign(value=table.value.mask(ends & (table.seed == 1)))
    some.loc[(some["lambda"] == 10) & (some.seed == 0), "value"] = 1.0  # the survivor is trained
    figure, caption = learning_curves.draw(some, {})
    plt.close(figure)
    assert "lambda 10: trained (1.000); 1 of 2 runs diverged and are left out" in caption
    figure, caption = learning_curves.draw(table.assign(value=table.value.mask(ends)), {})
    plt.close(figure)
    assert "lambda 10: diverged" in caption


def test_plain_runs_alone_can_be_shown(table):
    figure, caption = learning_curves.draw(table[table.regularizer == "none"], {})
    assert len(figure.axes) == 2
    plt.close(figure)
    assert "scan_jump, lstm, none" in caption
