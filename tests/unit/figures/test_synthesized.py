"""Figures of synthesized networks, made from tables of made-up accuracies."""

from __future__ import annotations

import itertools
from importlib import import_module

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy import stats
from support.programs import FN_0

from compositional.figures import synthesized_correlation, synthesized_ranks
from compositional.figures.shared import synthesized as tables
from compositional.plugins import defaults


def table(baseline: int = 8, loops: int = 2) -> pd.DataFrame:
    """A table of made-up accuracies: a baseline and two generations of four programs."""
    source = np.random.default_rng(0)
    programs = ["(fn_0 identity)", "(fn_0 (next_port (fn_0 identity)))", "(fn_0 (next_port (connect identity)))"]
    programs += ["(fn_0 (next_port (add (connect identity))))"]
    rows = []

    def add(task, seed, entries):
        rows.extend((task, "m", "none", 0.0, seed, *entry) for entry in entries)

    def both(train, validation):
        loss = ("train", "loss", 1 - train)
        return [("train", "accuracy", train), loss, ("validation", "accuracy", validation), ("train", "diverged", 0)]

    reference = [("reference", "majority class", 0.58), ("reference", "shape in shape", 0.73)]
    for seed in range(baseline):
        add("raven", seed, [*both(0.9 + 0.01 * seed, 0.67 + 0.01 * (seed % 2)), *reference])
    for loop, generation, seed in itertools.product(range(loops), (1, 2), range(4)):
        train = 0.7 + 0.05 * seed + 0.01 * source.random()
        numbers = {
            "size": 2,
            "mass": 4,
            "nodes": 2 + seed,
            "edges": 1 + seed,
            "origin": seed - 2 if generation == 2 and seed > 1 else -1,
            "changed": int(loop == 1 and generation == 2 and seed == 3),
        }
        entries = [("program", name, value) for name, value in numbers.items()] + [("program", f"is {programs[seed]}", 1)]
        add(
            f"raven_evolved_loop{loop}_generation{generation}",
            seed,
            [*both(train, train - 0.1), *reference, *entries, ("library", f"fn_0 = {FN_0}", 0)],
        )
    return pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])


def test_captions_state_the_numbers_of_the_table():

    matplotlib.use("Agg")
    captions = {}
    for name in ("ranks", "correlation", "library", "programs"):
        module = import_module(f"compositional.figures.synthesized_{name}")
        figure, captions[name] = module.draw(table(), defaults(f"figures.synthesized_{name}"))
        matplotlib.pyplot.close(figure)
    assert "majority class 0.580, shape in shape 0.730" in captions["ranks"]
    assert "baseline, 8 runs: train 0.935 (sd 0.024), validation 0.675 (sd 0.005), greatest 0.680" in captions["ranks"]
    rows = table().query("split == 'validation'").set_index("task").value
    before, after = rows["raven"], pd.concat([rows[f"raven_evolved_loop{loop}_generation1"] for loop in (0, 1)])
    test = stats.ttest_ind(after, before, equal_var=False)
    assert (
        f"{after.mean() - 0.675:.3f} against the baseline's mean (Welch's test over networks, p = {test.pvalue:.2g})"
        in captions["ranks"]
    )
    assert "train minus validation 0.260; selected" in captions["ranks"]
    # Two loops of 4 networks have 3 + 3 degrees of freedom, the baseline has 7.
    within = after.groupby(level=0).var().mean()
    assert f"F = {within / before.var():.2f} (6 and 7 degrees of freedom, one-sided p = " in captions["ranks"]
    above = "8 of 8 networks are above majority class; 2 of 8 networks are above shape in shape"
    assert captions["ranks"].count(above) == 2
    assert "generation 1: r = 1.000" in captions["correlation"]
    assert "kept graphs trained again, 3 pairs of trainings (3 graphs; 1 others are left out" in captions["correlation"]
    assert "times the baseline's, taken as given" in captions["ranks"]
    assert "minus the baseline's mean, taken as given, " in captions["ranks"]
    assert f"loop 0: fn_0 = {FN_0}" in captions["library"]
    assert captions["programs"].count("* loop 1") == 4
    # Seeds 0 to 7 and whether they are odd: r = 2 / sqrt(42 * 2); tanh(0.2218 -+ 1.96 / sqrt(5)).
    assert "* baseline, 8 runs: r = 0.22, 95 % interval -0.57 to 0.80 (Fisher)" in captions["correlation"]


def test_correlations_are_undefined_for_two_pairs_and_without_variation():
    x, y = pd.Series([1.0, 2.0, 3.0]), pd.Series([1.0, 2.0, 2.0])
    assert tables.correlation(x, y) == pytest.approx(np.sqrt(3) / 2)  # 1 / sqrt(2 * 2/3)
    assert np.isnan(tables.correlation(x[:2], y[:2]))
    assert np.isnan(tables.correlation(x, pd.Series([0.1, 0.1, 0.1])))


@pytest.mark.parametrize("name", ["ranks", "correlation"])
def test_no_correlation_and_no_spread_are_stated_for_a_single_seed(name):
    one = table()
    module = import_module(f"compositional.figures.synthesized_{name}")
    figure, caption = module.draw(one[one.seed == 0], defaults(f"figures.synthesized_{name}"))
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert not [text for text in (caption, *shown) if "nan" in text]


def test_a_graph_that_is_kept_twice_is_counted_once():
    columns = ["loop", "generation", "seed", "before", "origin"]
    pairs = pd.DataFrame([(0, 2, 0, 1, 5.0), (0, 3, 1, 2, 0.0), (0, 3, 2, 2, 7.0), (1, 3, 1, 2, 0.0)], columns=columns)
    assert synthesized_correlation._graphs(pairs) == 3  # seed 0 of loop 0's generation 2 survives as seed 1 of generation 3


def test_kept_graphs_are_correlated_within_their_loop():
    kept = table(loops=3)
    later = kept.task.str.endswith("generation2")
    kept.loc[later & (kept.metric == "origin"), "value"] = kept.seed[later]
    kept.loc[kept.metric == "changed", "value"] = 0
    loop = kept.task.str.extract(r"loop(\d)", expand=False).astype(float)
    kept.loc[later & (kept.metric == "accuracy"), "value"] -= 0.1 * loop[later]  # r over all loops is lower
    _, caption = synthesized_correlation.draw(kept, {})
    assert "12 pairs of trainings (12 graphs; 0 others" in caption
    assert "within a loop: training accuracy 0.99" in caption


def test_kept_graphs_show_the_effect_of_training_again():
    kept = table()
    for split, less in (("train", 0), ("validation", 0.1)):
        own = (kept.split == split) & (kept.metric == "accuracy") & (kept.task != "raven")
        kept.loc[own, "value"] = 0.7 + 0.05 * kept.seed[own] - less
    _, caption = synthesized_correlation.draw(kept, {})
    # Seeds 2 and 3 are the former seeds 0 and 1, with 0.1 more. Seeds 0 and 1 are new graphs: 0.6 and 0.65.
    assert "training accuracy changes by 0.100 ± 0.000, validation accuracy by 0.100 ± 0.000 (means over loops)" in caption
    assert "new graphs of the same generations 0.625 ± 0.000" in caption
    # Kept graphs reach 0.725 in loop 0 and, because one of them is left out, 0.7 in loop 1.
    assert "difference 0.088 ± 0.159" in caption or "difference 0.087 ± 0.159" in caption


def test_the_selected_half_is_the_one_that_the_loop_selects():
    group = pd.DataFrame({"train": [0.9, 0.8, 0.8, 0.7], "train_loss": [0.1, 0.5, 0.3, 0.6], "seed": range(4)})
    assert synthesized_ranks._half(group, 0.5).seed.tolist() == [0, 2]  # a tie goes to the smaller loss, as in `rank`


def test_accuracies_of_the_same_graph_in_two_loops_are_correlated():
    found = pd.DataFrame(
        {
            "generation": [1] * 8 + [2],
            "loop": [0, 0, 0, 0, 1, 1, 1, 1, 0],
            "program": [*"abcd", *"dcbx", "a"],
            "train": [0.9, 0.8, 0.7, 0.6, 0.5, 0.6, 0.7, 0.1, 0.2],
        }
    )
    assert synthesized_correlation._between_loops(found, "train") == [pytest.approx(1)]  # the correlation over b, c and d
    assert synthesized_correlation._between_loops(found[found.loop == 0], "train") == []
