"""The figure of readings: each reading comes from its own metric, and gains are those of the last step only."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from compositional.figures import readings
from compositional.plugins import defaults


def caption(gain: float, seeds: int = 3, points: str = "30 points") -> str:
    rows = []
    for regularizer, strength, more in (("none", 0.0, 0.0), ("recombination", 1.0, gain)):
        for seed, value in enumerate((0.5, 0.52, 0.54)[:seeds]):
            run = ("forms", "lstm", regularizer, strength, seed, "test")
            rows.append((*run, "accuracy", value + more + 0.001 * (seed - 1) * (regularizer != "none") * (gain > 0)))
            rows.append((*run, "accuracy, brackets repaired", value + more + 0.01))
            rows.append((*run, f"accuracy, best of {points}", value + more + 0.05))
            rows.append((*run, "accuracy of asks/size", 1.0))
    table = pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])
    figure, text = readings.draw(table, defaults("figures.readings") | {"published": {"forms": {"theirs": 0.586}}})
    plt.close(figure)
    return text


def test_every_reading_is_stated_and_gains_are_those_of_the_last_step():
    text = caption(0.2)
    assert "largest of 30 accuracies" in text
    half = 0.050  # 4.303 * 0.02 / sqrt 3; for the last step with swaps 0.021
    assert "last step 0.520 ± 0.050" in text
    assert "last step 0.720 ± 0.052" in text
    for words, value in (("last step, brackets repaired", 0.73), ("best point on the test set", 0.77)):
        assert f"{words} {value:.3f} ± {half:.3f}" in text
    assert "gain +0.200 ± 0.002: the interval excludes 0" in text
    assert "published, theirs: 0.586" in text


def test_the_caption_states_that_there_is_no_gain():
    assert "gain +0.000 ± 0.000: the interval includes 0" in caption(0.0)


def test_a_part_of_the_test_set_is_named():
    assert "largest of 30 accuracies on 200 examples during training" in caption(0.2, points="30 points on 200 examples")


def test_one_seed_has_no_interval():
    assert "gain +0.199 (1 seed): too few seeds to judge" in caption(0.2, seeds=1)
    assert "gain +0.199 ± 0.006: too few seeds to judge" in caption(0.2, seeds=2)
