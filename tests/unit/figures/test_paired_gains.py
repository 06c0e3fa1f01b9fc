"""The figure of paired gains: verdicts need three seeds, and intervals are counted."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from compositional.figures import paired_gains
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


def test_no_verdict_is_stated_for_two_seeds_even_if_their_gains_are_equal():
    assert caption(3).count("held out, helps") == 3
    for seeds in (1, 2):
        assert caption(seeds).count("held out, too few seeds to judge") == 3


def test_diverged_pairs_are_counted():
    assert caption(4, diverged=3).count("held out, helps (1 of 4 pairs of runs diverged)") == 1
    assert "diverged" not in caption(3)


def test_only_intervals_that_exist_are_counted():
    assert "Of the 3 intervals of each kind" in caption(3)
