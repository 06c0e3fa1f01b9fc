"""The figure of paired gains: verdicts need three seeds, and intervals are counted."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.figures import paired_gains
from compositional.figures.shared import paired
from compositional.plugins import defaults


def caption(seeds: int, diverged: int | None = None) -> str:
    rows = []
    for task, terms in (
        ("one", (("none", 0.0, 0.0), ("entropy", 0.1, 0.2), ("additivity", 1.0, 0.1))),
        ("two", (("none", 0.0, 0.0), ("entropy", 0.1, 0.2))),
    ):
        for term, strength, gain in terms:
            for seed in range(seeds):
                for split in ("test", "validation"):
                    rows.append((task, "net", term, strength, seed, split, "accuracy", 0.5 + gain))
    table = pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])
    table.loc[(table.seed == diverged) & (table.regularizer == "additivity"), "value"] = float("nan")
    figure, text = paired_gains.draw(table, defaults("figures.paired_gains") | {"tasks": {"one": "one", "two": "two"}})
    assert len({axes.get_xlim() for axes in figure.axes}) == 1  # equal gains have equal lengths
    plt.close(figure)
    return text


def test_runs_are_paired_with_the_plain_run_of_their_task_model_and_seed():
    rows = [
        ("one", "net", "none", 0.0, 0, 0.1),
        ("one", "net", "none", 0.0, 1, 0.2),
        ("one", "other", "none", 0.0, 0, 0.4),
        ("two", "net", "none", 0.0, 0, 0.8),
        *(("one", model, "entropy", 0.1, seed, 1.0) for model in ("net", "other") for seed in (0, 1)),
        ("two", "net", "entropy", 0.1, 0, 1.0),
    ]
    table = pd.DataFrame(rows, columns=[*paired.RUN, "value"]).assign(split="test", metric="accuracy")
    # The other model has no plain run with seed 1.
    assert paired.gains(table, "test").gain.tolist() == pytest.approx([0.9, 0.8, 0.6, float("nan"), 0.2], nan_ok=True)


def test_a_single_gain_does_not_differ_from_0():
    assert not paired.differs(pd.Series([0.1, float("nan")]))
    assert not paired.differs(pd.Series([0.1, 0.3]))  # 0.2 ± 12.7 times 0.1
    assert paired.helps(pd.Series([0.1, 0.1]))
    assert paired.differs(pd.Series([-0.1, -0.1]))
    assert not paired.helps(pd.Series([-0.1, -0.1]))


def test_no_verdict_is_stated_for_two_seeds_even_if_their_gains_are_equal():
    assert caption(3).count("held out, helps") == 3
    for seeds in (1, 2):
        assert caption(seeds).count("held out, too few seeds to judge") == 3


def test_diverged_pairs_are_counted():
    assert caption(4, diverged=3).count("held out, helps (1 of 4 pairs of runs diverged)") == 1
    assert "diverged" not in caption(3)


def test_only_intervals_that_exist_are_counted():
    assert "Of the 3 intervals of each kind" in caption(3)
