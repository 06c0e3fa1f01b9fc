"""The figure of reach: gains are paired by seed, and each group has its own metric."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.figures import reach
from compositional.figures.shared import style
from compositional.plugins import defaults

METHODS = {"plain": "net/none/lambda=0", "swaps": "net/recombination/lambda=1"}
GROUPS = {"words": {"task": "one", "metric": "accuracy of lexical"}, "depths": {"task": "two", "metric": "accuracy"}}


def caption(seeds: int, diverged: int | None = None, **options) -> str:
    rows = []
    for seed in range(seeds):
        for regularizer, strength in (("none", 0.0), ("recombination", 1.0)):
            gain = (0.3 + 0.01 * seed) * strength
            rows.append(("one", "net", regularizer, strength, seed, "test", "accuracy of lexical", 0.1 * seed + gain))
            rows.append(("one", "net", regularizer, strength, seed, "test", "accuracy", 1.0))
            rows.append(("two", "net", regularizer, strength, seed, "test", "accuracy", 0.02 * seed * (1 - strength)))
    table = pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])
    table.loc[(table.seed == diverged) & (table.regularizer != "none"), "value"] = float("nan")
    chosen = {"methods": METHODS, "groups": GROUPS, "against": ["words", "depths"]} | options
    figure, text = reach.draw(table, defaults("figures.reach") | chosen)
    plt.close(figure)
    return text


def test_gains_are_paired_and_stated_with_their_intervals():
    text = caption(3)
    assert "- words: +0.310 ± 0.025 (3 seeds): gains" in text  # 4.303 * 0.01 / sqrt 3
    assert "- depths: -0.020 ± 0.050 (3 seeds): nothing seen" in text
    assert "the 2 intervals" in text


def test_no_verdict_is_stated_for_two_seeds():
    assert caption(2, against=[]).count("too few seeds to judge") == 2


def test_an_interval_beyond_what_a_gain_can_be_does_not_widen_the_axis():
    wide = pd.DataFrame({"seed": [0, 1, 2], "value": [0.0, 0.0, 1.0]})  # 1/3 +- 1.43
    rows = pd.concat([wide.assign(regularizer="recombination"), wide.assign(regularizer="none", value=0.0)])
    rows = rows.assign(task="two", model="net", split="test", metric="accuracy", **{"lambda": rows.regularizer.ne("none") * 1.0})
    chosen = {"methods": METHODS, "groups": {"depths": GROUPS["depths"]}}
    figure, text = reach.draw(rows, defaults("figures.reach") | chosen)
    plt.close(figure)
    assert "- depths: +0.333 ± 1.434" in text
    assert figure.axes[0].get_xlim() == (-1.03, 1.03)


def test_a_method_has_the_color_of_its_regularizer_unless_another_has_it_too():
    keys = {"swaps": "recombination", "longer": "none", "again": "recombination"}
    rows = {method: pd.DataFrame({"regularizer": [name]}) for method, name in keys.items()}
    apart = reach._shades({method: rows[method] for method in ("swaps", "longer")})
    assert apart == {"swaps": style.COLORS["recombination"], "longer": style.COLORS["none"]}
    assert len(set(reach._shades(rows).values())) == 3


def test_diverged_runs_are_counted():
    assert "- words: +0.310 ± 0.025 (3 seeds, 1 diverged): gains" in caption(4, diverged=3)


def test_a_metric_that_no_run_has_is_named_in_the_error():
    with pytest.raises(ValueError, match="reach: groups: words: no run of one has 'accuracy of gaps'"):
        caption(3, groups={"words": {"task": "one", "metric": "accuracy of gaps"}}, against=[])
