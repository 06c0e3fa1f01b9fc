"""The figures of representations and methods, drawn from small tables: numbers in captions, bytes, and errors."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from support.project import ROOT

from compositional.configuration.configuration import configuration
from compositional.figures import comparison, embeddings, measure_against_accuracy, metrics, per_category, tradeoff
from compositional.figures.shared import style
from compositional.plugins import defaults

HEADER = ("task", "model", "regularizer", "lambda", "seed", "split", "metric", "value")


def options(figure: str, **given) -> dict:
    return defaults(f"figures.{figure}") | given


def table(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=HEADER)


@pytest.fixture
def runs() -> pd.DataFrame:
    """Entropy gains at 0.1 and loses everything at 10, where one run has diverged; three seeds; 20 steps."""
    rows = []
    for seed in range(3):
        for regularizer, strength, test, own, seconds in (
            ("none", 0.0, 0.1, 1.0, 2.0),
            ("entropy", 0.1, 0.9, 0.98, 3.0),
            ("entropy", 10.0, 0.0, 0.0, 5.0),
        ):
            key = ("scan_jump", "lstm_attention", regularizer, strength, seed)
            lost = strength == 10 and seed == 2
            rows += [
                (*key, "test", "accuracy", np.nan if lost else test + 0.01 * seed),
                (*key, "train", "accuracy", np.nan if lost else own),
                (*key, "train", "steps", 20),
                (*key, "train", "wall_seconds", seconds),
                (*key, "probe", "ccgp in encoder_states", np.nan if lost else test / 2),
                (*key, "probe", "ccgp in encoder_states (shuffled)", 0.25),
                (*key, "probe", "ccgp in encoder_states (2.5 %)", 0.2),
                (*key, "probe", "ccgp in encoder_states (97.5 %)", 0.3),
            ]
    return table(rows)


def test_tradeoff_pairs_runs_with_the_plain_run_of_their_seed(runs):
    _, caption = tradeoff.draw(runs, options("tradeoff"))
    assert "* scan_jump, lstm_attention" in caption
    # The gain is 0.8 and the loss 0.02 for every seed; times are 3 / 2 and 5 / 2.
    assert "entropy: largest gain +0.800 ± 0.000 at lambda 0.1, with a loss of +0.020" in caption
    assert "a step takes 2.00 times the plain run's" in caption
    assert "entropy: 1 run diverged" in caption
    assert "plain:" not in caption
    # The table has no other rows.
    assert "* scan_jump, lstm_attention\n  - no examples of its distribution are held out" in caption
    figure, caption = tradeoff.draw(runs.replace({"split": {"train": "validation"}}), options("tradeoff"))
    assert "held out" not in caption
    assert figure.axes[0].get_xlabel() == "loss in distribution"


def test_tradeoff_has_intervals_of_gain_and_loss_and_none_of_time(runs):
    runs.loc[(runs.metric == "wall_seconds") & (runs.regularizer == "entropy"), "value"] += runs.seed  # three packs
    figure, caption = tradeoff.draw(runs, options("tradeoff"))
    bars = [[part for part in axes.collections if isinstance(part, LineCollection)] for axes in figure.axes]
    assert [len(own) for own in bars] == [2, 1]  # both directions, and only the vertical one
    drawn = [segment for segment in bars[1][0].get_segments() if len(segment)]  # those of two seeds are empty
    assert drawn
    assert all(np.ptp(segment[:, 0]) == 0 for segment in drawn)
    assert "gain and loss with 95 % intervals" in caption
    assert "it has no interval" in caption


def test_tradeoff_shows_every_seed_of_gain_and_loss(runs):
    figure, _ = tradeoff.draw(runs, options("tradeoff"))
    dots, none = ([part.get_offsets() for part in axes.collections if isinstance(part, PathCollection)] for axes in figure.axes)
    assert not none
    # Three seeds at 0.1, two at 10, where one has diverged.
    np.testing.assert_allclose(dots[0], [[0.02, 0.8], [1, -0.1], [0.02, 0.8], [1, -0.1], [0.02, 0.8], [np.nan] * 2])


def test_tradeoff_does_not_count_a_run_as_diverged_if_only_its_plain_partner_has(runs):
    runs.loc[(runs.regularizer == "none") & (runs.seed == 2) & (runs.metric == "accuracy"), "value"] = np.nan
    _, caption = tradeoff.draw(runs, options("tradeoff"))
    assert "entropy: 1 run diverged" in caption
    assert "plain: 1 run diverged" in caption
    _, caption = tradeoff.draw(runs[runs.seed == 0], options("tradeoff"))
    assert "entropy: largest gain +0.800 (1 seed) at lambda 0.1" in caption


def test_comparison_names_another_metric_and_refuses_a_missing_one(runs):
    translated = runs[runs.metric == "accuracy"].assign(metric="bleu", value=lambda rows: 30 * rows.value)
    figure, caption = comparison.draw(translated, options("comparison", metric="bleu"))
    assert caption.startswith("bleu on the test set")
    assert "lstm_attention + entropy 0.1: 27.300" in caption
    assert figure.axes[0].get_xlim()[1] > 27
    assert "lstm_attention + entropy 10: 0.150, median 0.150, from 0.000 to 0.300 (2 seeds, 1 diverged)" in caption
    best = np.array([27.0, 27.3, 27.6])
    bars = [bar.get_segments()[0] for axes in figure.axes for bar in axes.collections if isinstance(bar, LineCollection)]
    half = style.interval(best)
    assert any(
        len(bar) and np.allclose(bar[:, 0], [best.mean() - half, best.mean() + half]) for bar in bars
    )  # not cut at 1, unlike shares
    with pytest.raises(ValueError, match="no run has 'bleu' on its test set"):
        comparison.draw(runs, options("comparison", metric="bleu"))


def test_every_figure_has_the_same_published_number_of_a_system_on_a_task():
    found = defaultdict(set)
    paper = (ROOT / "config" / "paper.yaml", *(ROOT / "config" / "paper").glob("*.yaml"))
    for overlays, option in product(((), paper), ("published", "anchors")):
        for figure in configuration(*overlays).figures.values():
            given = figure["options"].get(option)
            for task, systems in given.items() if isinstance(given, dict) else ():
                for system, value in systems.items() if isinstance(systems, dict) else ():
                    mean = value.get("mean") if isinstance(value, dict) else value
                    if isinstance(mean, int | float):
                        found[task, system.removesuffix(", published")].add(mean)
    assert {place: means for place, means in found.items() if len(means) > 1} == {}
    assert found["scan_jump", "CGPS"] == {0.988}


def test_a_published_number_keeps_its_digits(runs):
    published = {"scan_jump": {"theirs": {"mean": 0.9995, "deviation": 0.1}}}
    _, caption = comparison.draw(runs, options("comparison", published=published))
    assert "published, theirs: 0.9995, standard deviation 0.100 (as commonly reported)" in caption


def test_comparison_has_every_method_in_the_configured_order_and_published_numbers(runs):
    published = {"scan_jump": {"CGPS": {"mean": 0.988, "deviation": 0.014, "median": 0.99, "source": "Li et al. 2019"}}}
    methods = {"LSTM + entropy": "lstm_attention/entropy/lambda=0.1", "LSTM": "lstm_attention/none/lambda=0"}
    figure, caption = comparison.draw(runs, options("comparison", methods=methods, published=published))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["LSTM + entropy", "LSTM", "CGPS (published)"]
    half = style.interval(np.array([0.9, 0.91, 0.92]))
    assert f"LSTM + entropy (lambda 0.1): 0.910 ± {half:.3f}, median 0.910, from 0.900 to 0.920 (3 seeds)" in caption
    assert "published, CGPS: 0.988, standard deviation 0.014, median 0.990 (Li et al. 2019)" in caption
    # The interval is cut at 1: 0.974 to 1.002 would leave the axes.
    bars = [bar.get_segments()[0][:, 0] for bar in figure.axes[0].collections if isinstance(bar, LineCollection)]
    np.testing.assert_allclose(bars[-1], [0.974, 1])
    assert "cut off at 0 and 1" in caption
    _, everything = comparison.draw(runs, options("comparison"))
    assert "lstm_attention + entropy 10: 0.005" in everything
    assert "(2 seeds, 1 diverged)" in everything


def test_a_method_without_a_path_is_left_out(runs):
    methods = {"LSTM + entropy": None, "LSTM": "lstm_attention/none/lambda=0"}
    figure, caption = comparison.draw(runs, options("comparison", methods=methods))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["LSTM"]
    assert "entropy" not in caption


def test_methods_with_tiny_lambdas_are_distinguished(runs):
    tiny = pd.concat([runs[runs["lambda"] == 0.1].assign(**{"lambda": strength}) for strength in (1e-10, 1e-9)])
    assert {name: rows["lambda"].unique().tolist() for name, rows in style.methods(tiny, {}).items()} == {
        "lstm_attention + entropy 1e-10": [1e-10],
        "lstm_attention + entropy 1e-09": [1e-9],
    }


def test_a_method_without_rows_is_left_out(runs):
    wanted = {"LSTM": "lstm_attention/none/lambda=0", "on other tasks": "lstm_attention/entropy/lambda=7"}
    assert [*style.methods(runs, wanted)] == ["LSTM"]


def test_metrics_caption_has_values_null_and_correlation(runs):
    wanted = {"CCGP": ["ccgp in penultimate", "ccgp in encoder_states"]}
    figure, caption = metrics.draw(runs, options("metrics", measures=wanted))
    assert "0.050 at lambda = 0, shuffled 0.250" in caption
    assert "entropy 0.450 at 0.1, its most accurate lambda (range 0.000 to 0.450)" in caption
    assert "rho with accuracy +0.9" in caption
    assert "(8 runs)" in caption
    assert "  - scan_jump, lstm_attention, ccgp in encoder_states: 0.050" in caption
    assert "after shuffling which vector belongs to which input; shown are their mean" in caption
    assert figure.axes[0].get_title() == "CCGP"


def test_metrics_caption_states_each_models_representation_and_null(runs):
    """This covers a panel with several representations, and a measure that does not shuffle inputs."""
    measured = runs.metric.str.startswith("ccgp")
    ours = "relative_distance of jump in word_embedding"
    runs.loc[measured, "metric"] = runs.metric.str.replace("ccgp in encoder_states", ours)
    second = runs.assign(model="primitive_attention", metric=runs.metric.str.replace("word_embedding", "word_embedding_2"))
    wanted = {"distance": [f"{ours}_2", ours]}
    _, caption = metrics.draw(pd.concat([runs, second]), options("metrics", measures=wanted))
    assert "lstm_attention, relative_distance of jump in word_embedding: 0.050" in caption
    assert "primitive_attention, relative_distance of jump in word_embedding_2: 0.050" in caption
    assert "which input; for relative_distance it is the distance to equally many other words drawn at random; shown" in caption


def test_the_null_of_a_measure_is_that_of_its_own_line(runs):
    measured = runs.metric.str.startswith("ccgp")
    more = runs[runs.regularizer == "entropy"].assign(regularizer="recombination")
    runs.loc[measured & (runs.regularizer == "entropy") & (runs.metric != "ccgp in encoder_states"), "value"] += 0.5
    figure, caption = metrics.draw(pd.concat([runs, more]), options("metrics", measures={"CCGP": ["ccgp in encoder_states"]}))
    assert "0.050 at lambda = 0, shuffled 0.250" in caption  # the values of the plain runs, not of all runs
    dotted = {line.get_color(): list(line.get_ydata()) for line in figure.axes[0].lines if line.get_linestyle() == ":"}
    assert dotted[style.color("entropy")] == pytest.approx([0.25, 0.75, 0.75])
    assert dotted[style.color("recombination")] == pytest.approx([0.25, 0.25, 0.25])
    bands = [part.get_paths()[0].vertices[:, 1] for part in figure.axes[0].collections if isinstance(part, PolyCollection)]
    assert [(band.min(), band.max()) for band in bands] == [pytest.approx((0.2, 0.8)), pytest.approx((0.2, 0.3))]


def test_metrics_shows_only_trained_networks(runs):
    measured = runs[runs.metric == "ccgp in encoder_states"]
    before = measured.assign(split="initialization", value=0.9)
    wanted = {"CCGP": ["ccgp in encoder_states"]}
    _, caption = metrics.draw(pd.concat([runs, before]), options("metrics", measures=wanted))
    assert "0.050 at lambda = 0" in caption


def test_metrics_marks_and_counts_runs_without_a_value(runs):
    wanted = {"CCGP": ["ccgp in encoder_states"]}
    figure, caption = metrics.draw(runs, options("metrics", measures=wanted))
    assert "(8 runs); 1 of 9 runs without a value" in caption
    top = figure.axes[0]
    at_bottom = [part for part in top.collections if part.get_offset_transform() == top.get_xaxis_transform()]
    assert np.concatenate([part.get_offsets() for part in at_bottom]).tolist() == [[10, 0]]
    # A single seed cannot be compared with others: nothing is shown, and this is not an error.
    none = runs[runs.seed == 0].copy()
    none.loc[none.metric == "ccgp in encoder_states", "value"] = np.nan
    _, caption = metrics.draw(none, options("metrics", measures=wanted))
    assert "ccgp in encoder_states: rho undefined; 3 of 3 runs without a value" in caption


def test_metrics_refuses_missing_measures(runs):
    with pytest.raises(ValueError, match="no run has 'salience'"):
        metrics.draw(runs, options("metrics", measures={"salience": ["salience"]}))
    other = runs.assign(task="digits_concat")
    with pytest.raises(ValueError, match=r"'accuracy' is in several splits \(test, train\)"):
        metrics.draw(runs, options("metrics", measures={"accuracy": ["accuracy"]}))
    with pytest.raises(ValueError, match="digits_concat, scan_jump; make one figure per task"):
        metrics.draw(pd.concat([runs, other]), options("metrics", measures={"CCGP": ["ccgp in encoder_states"]}))


@pytest.fixture
def vectors() -> pd.DataFrame:
    """Four words on a rectangle in three dimensions; in the regularized model they vary only along the plain one's third axis."""
    plain = np.array([[-2.0, -1.0, 0.0], [-2.0, 1.0, 0.0], [2.0, -1.0, 0.0], [2.0, 1.0, 0.0]])
    other = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    rows = []
    for regularizer, strength, values in (("none", 0.0, plain), ("entropy", 0.1, other), ("entropy", 1.0, plain / 10 + 5)):
        for item, vector in zip(("jump", "walk", "look", "run"), values, strict=True):
            rows += [
                ("scan_jump", "lstm_attention", regularizer, strength, 0, "word_embedding", item, dimension, value)
                for dimension, value in enumerate(vector)
            ]
    return pd.DataFrame(
        rows, columns=["task", "model", "regularizer", "lambda", "seed", "representation", "item", "dimension", "value"]
    )


def test_embeddings_have_the_plain_models_axes(vectors):
    figure, caption = embeddings.draw(vectors, options("embeddings", groups={"jump": ["jump"]}))
    assert "plain, lambda 0: share 1.000, root mean square distance from the center 2.236" in caption
    assert "entropy, lambda 0.1: share 0.000" in caption
    assert "entropy, lambda 1: share 1.000, root mean square distance from the center 0.224" in caption
    drawn = [np.concatenate([part.get_offsets() for part in axes.collections]) for axes in figure.axes]
    # The same shape, ten times smaller, whatever constant is added.
    np.testing.assert_allclose(drawn[2], drawn[0] / 10, atol=1e-9)
    assert sorted(np.abs(drawn[0][:, 0])) == pytest.approx([2, 2, 2, 2])


def test_embeddings_caption_describes_the_axes(vectors):
    figure, caption = embeddings.draw(vectors, options("embeddings"))
    assert figure.axes[0].get_ylabel() == "word_embedding\nPC 2 of the plain model"
    assert {axes.get_xlabel() for axes in figure.axes} == {"PC 1 of the plain model"}
    assert "Each panel has its own scale" in caption
    assert "Commands" not in caption
    commands = vectors.assign(representation="encoder_states")
    assert "Commands are shown by the mean" in embeddings.draw(commands, options("embeddings"))[1]


def test_embeddings_needs_one_seed_and_the_plain_run(vectors):
    with pytest.raises(ValueError, match="lacks the plain run"):
        embeddings.draw(vectors[vectors.regularizer != "none"], options("embeddings"))
    with pytest.raises(ValueError, match="one task, model and seed"):
        embeddings.draw(pd.concat([vectors, vectors.assign(seed=1)]), options("embeddings"))
    with pytest.raises(ValueError, match="the table has no 'penultimate'"):
        embeddings.draw(vectors, options("embeddings", representations={"penultimate": "last"}))
    lost = vectors.assign(value=vectors.value.where(vectors.regularizer != "none"))
    with pytest.raises(ValueError, match="the plain run of scan_jump, lstm_attention, seed 0 diverged"):
        embeddings.draw(lost, options("embeddings"))


@pytest.fixture
def categories() -> pd.DataFrame:
    rows = []
    for regularizer, strength, gain in (("none", 0.0, 0.0), ("consistency", 1.0, 0.2)):
        for seed in range(2):
            key = ("cogs", "transformer", regularizer, strength, seed, "test")
            rows += [
                (*key, "accuracy", 0.5),
                (*key, "accuracy of lexical/active_to_passive", 0.7 + gain + 0.02 * seed),
                (*key, "accuracy of structural/cp_recursion", 0.0),
                (*key, "accuracy of length 9", 0.4),
                (*key, "accuracy of length 10", 0.3),
            ]
    return table(rows)


def test_per_category_finds_categories_in_the_names_of_metrics(categories):
    groups = {"first": ["structural/cp_recursion"]}
    figure, caption = per_category.draw(categories, options("per_category", groups=groups))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    # Groups come first; numbers in names are sorted numerically.
    assert labels == ["structural: CP recursion", "length 9", "length 10", "lexical: active to passive"]
    expected = "structural/cp_recursion 0.000, length 9 0.400, length 10 0.300, lexical/active_to_passive 0.710"
    assert f"transformer (2 seeds): {expected}" in caption
    assert "transformer + consistency 1 (2 seeds): structural/cp_recursion 0.000, length 9 0.400" in caption
    assert figure.legends[0].get_texts()[0].get_text() == "transformer (2 seeds)"
    published = {"cogs": {"theirs": {"length 9": 0.25, "not here": 1.0}}}
    figure, caption = per_category.draw(categories, options("per_category", groups=groups, published=published))
    assert "  - published, theirs: length 9 0.250" in caption
    (marks,) = (line for line in figure.axes[0].lines if line.get_label() == "theirs (published)")
    assert list(zip(*marks.get_data(), strict=True)) == [(0.25, 1)]  # the second line
    other = categories[categories.seed == 0].assign(task="cogs_100")
    lost = categories.assign(value=categories.value.where((categories.seed == 0) | (categories.regularizer != "none")))
    figure, caption = per_category.draw(pd.concat([lost, other]), options("per_category"))
    assert "transformer (1 seed, 1 diverged): length 9 0.400" in caption
    assert figure.legends[0].get_texts()[0].get_text() == "transformer (1 to 2 seeds)"
    with pytest.raises(ValueError, match="no metric of the test set begins with 'accuracy of '"):
        per_category.draw(categories.assign(split="validation"), options("per_category"))


def test_per_category_colors_by_term_and_marks_by_model(categories):
    several = pd.concat([categories, categories.assign(model="lstm")])
    figure, _ = per_category.draw(several, options("per_category"))
    drawn = {
        words: (to_hex(handle[0].get_color()), handle[0].get_marker())
        for handle, words in zip(*figure.axes[0].get_legend_handles_labels(), strict=True)
        if "seeds" in words
    }
    plain, term = to_hex(style.color("none")), to_hex(style.color("consistency"))
    assert [shade for shade, _ in drawn.values()] == [plain, term] * 2
    (first, _), (second, _) = (
        [mark for words, (_, mark) in drawn.items() if words.startswith(model)] for model in ("lstm", "trans")
    )
    assert first != second
    # Two lambdas of a term would look the same: then every method has a color of its own.
    lambdas = pd.concat([categories, categories[categories.regularizer != "none"].assign(**{"lambda": 10.0})])
    figure, _ = per_category.draw(lambdas, options("per_category"))
    handles, _ = figure.axes[0].get_legend_handles_labels()
    assert len({to_hex(handle[0].get_color()) for handle in handles if hasattr(handle, "lines")}) == 3


def test_categories_are_drawn_in_blocks():
    names, begins = per_category._order(["b/y", "b", "length 10", "a/x", "length 9", "b/x"], {"first": ["b/x"]})
    assert names == ["b/x", "a/x", "b", "b/y", "length 9", "length 10"]
    assert begins == [1, 2, 4]


def test_in_distribution_is_the_member_of_that_name_then_validation_then_train():
    rows = [("a", name) for name in ("train", "validation", "in_distribution", "test")] + [("b", "train"), ("b", "test")]
    own = table([(task, "m", "none", 0.0, 0, split, "accuracy", 0.5) for task, split in rows])
    found = style.accuracies(own, "in_distribution")
    assert list(zip(found.task, found.split, strict=True)) == [("a", "in_distribution"), ("b", "train")]
    assert [style.holds_nothing_out(own, task) for task in ("a", "b")] == [False, True]


def test_every_caption_about_exchanges_states_which_inputs_they_show(runs, categories):
    drawn = {
        "measure_against_accuracy": (measure_against_accuracy, runs, {"measure": ["ccgp in encoder_states"]}),
        "metrics": (metrics, runs, {"measures": {"CCGP": ["ccgp in encoder_states"]}}),
        "per_category": (per_category, categories, {}),
        "tradeoff": (tradeoff, runs, {}),
    }
    for name, (module, rows, given) in drawn.items():
        swapped = rows.replace({"regularizer": dict.fromkeys(("entropy", "consistency"), "recombination")})
        images = pd.concat([swapped, swapped[swapped.metric == "accuracy"].assign(split="all", metric="additivity")])
        seen = images.replace({"regularizer": {"recombination": "recombination_seen"}})
        others = [images.replace({"regularizer": {"recombination": term}}) for term in ("additivity", "interaction")]
        captions = [module.draw(own, options(name, **given))[1] for own in (rows, swapped, images, seen, *others)]
        plt.close("all")
        assert ["augmentation in disguise" in caption for caption in captions] == [False, True, *[False] * 4], name
        shown = ["the inputs of test combinations" in caption for caption in captions]
        assert shown == [False, False, True, False, True, True], name
        assert "terms that exchange halves (interaction) show" in captions[-1], name
