"""Figures are drawn from a table alone, with the same bytes every time and captions with the table's numbers."""

from __future__ import annotations

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from compositional.figures import ablation, comparison, regularized_salience
from compositional.figures.shared import style, words
from compositional.files import write_csv
from compositional.plugins import available, defaults
from compositional.stages.aggregate import aggregate
from compositional.stages.plot import plot

HEADER = ("task", "model", "regularizer", "lambda", "seed", "split", "metric", "value")


@pytest.fixture
def table(tmp_path):
    """Two tasks; entropy helps at 0.1; one run diverged."""
    rows = []
    for seed in range(3):
        for regularizer, strength, value in (("none", 0.0, 0.2), ("entropy", 0.1, 0.9), ("entropy", 1.0, 0.5)):
            for split in ("train", "test"):
                reached = value + 0.01 * seed if split == "test" else 1.0
                lost = split == "test" and strength == 1.0 and seed == 2
                rows.append(
                    ("scan_jump", "lstm_attention", regularizer, strength, seed, split, "accuracy", "nan" if lost else reached)
                )
        rows.append(("digits_concat", "cnn", "none", 0.0, seed, "test", "accuracy", 0.7))
        rows.append(("digits_concat", "cnn", "none", 0.0, seed, "validation", "accuracy", 0.8))
        rows.append(("digits_b", "cnn", "none", 0.0, seed, "test", "accuracy", 0.95))
        rows.append(("digits_b", "cnn", "entropy", 1.0, seed, "test", "accuracy", 0.15))  # not a ceiling
    write_csv(tmp_path / "table.csv", HEADER, rows)
    return tmp_path / "table.csv"


ROOT = Path(__file__).parents[3]
OPTIONS = defaults("figures.ablation") | {
    "ceilings": {"digits_concat": "digits_b"},
    "anchors": {"scan_jump": {"published": 0.98}},
}


def draw(table, folder):
    paths = {name: folder / f"figure.{name}" for name in ("pdf", "png", "caption")}
    plot("ablation", table, OPTIONS, **paths)
    return paths


def test_the_caption_takes_its_numbers_from_the_table(table, tmp_path):
    text = draw(table, tmp_path)["caption"].read_text()
    assert "scan_jump, lstm_attention: 0.210 at lambda = 0 (3 seeds; 3 settings compared)" in text
    assert "entropy: 0.910 at lambda 0.1, the oracle; gain +0.700 ± 0.000" in text
    # The diverged run is marked and not averaged: (0.50 + 0.51) / 2.
    assert "entropy: 0.505 at its largest lambda, 1 (training examples: 1.000)" in text
    noise = defaults("regularizers.entropy")
    powers = f"{noise['word_noise']:g} for word embeddings and {noise['feature_noise']:g} for the penultimate layer"
    assert f"by default with standard deviation {powers}" in text
    assert "1 run diverged (crosses), not averaged" in text
    assert "ceiling (digits_b): 0.950" in text
    rows = pd.read_csv(table)
    rows[rows.task != "digits_b"].to_csv(table, index=False)
    assert "ceiling" not in draw(table, tmp_path)["caption"].read_text()


def test_each_model_has_a_ceiling_of_its_own(table):
    rows = pd.read_csv(table)
    more = rows[rows.task == "digits_b"].assign(model="resnet18")
    more["value"] -= 0.25
    shown = rows[(rows.task == "digits_b") & (rows.regularizer == "entropy")].assign(task="digits_concat")
    figure, caption = ablation.draw(pd.concat([rows, more, shown]), OPTIONS)
    assert "  - ceiling (digits_b, cnn): 0.950" in caption
    assert "  - ceiling (digits_b, resnet18): 0.700" in caption
    drawn = {line.get_label(): line.get_ydata()[0] for line in figure.axes[0].lines if "ceiling" in str(line.get_label())}
    assert drawn == {
        f"ceiling: nothing redundant in training ({model})": pytest.approx(height)
        for model, height in (("CNN", 0.95), ("ResNet-18", 0.7))
    }


def test_regularizers_can_be_distinguished_without_colors(table):
    rows = pd.read_csv(table)
    figure, _ = ablation.draw(pd.concat([rows, rows.replace({"regularizer": {"entropy": "recombination"}})]), OPTIONS)
    lines = {bar.get_label(): bar[0] for axes in figure.axes for bar in axes.containers}
    plt.close(figure)
    assert lines["entropy"].get_marker() != lines["recombination"].get_marker()


def test_a_task_that_is_the_ceiling_of_no_other_has_panels(table):
    rows = pd.read_csv(table)
    figure, caption = ablation.draw(rows[rows.task == "digits_concat"].assign(task="digits_b"), OPTIONS)
    assert len(figure.axes) == 2
    assert "* digits_b, cnn" in caption


def test_a_model_that_has_only_plain_runs_is_drawn(table):
    rows = pd.read_csv(table)
    longer = rows[(rows.task == "scan_jump") & (rows.regularizer == "none")].assign(model="lstm_attention_annealed_longer")
    figure, caption = ablation.draw(pd.concat([rows, longer]), OPTIONS)
    scan = next(axes for axes in figure.axes if axes.get_title() == "SCAN: add jump")
    assert "plain (LSTM, three times the steps)" in scan.get_legend_handles_labels()[1]
    assert "plain (LSTM with attention)" not in scan.get_legend_handles_labels()[1]  # every line begins with these runs
    assert "* scan_jump, lstm_attention_annealed_longer" in caption


def test_the_figure_states_that_training_examples_are_shown_if_nothing_is_held_out(table):
    rows = pd.read_csv(table)
    figure, caption = ablation.draw(rows, OPTIONS)
    assert "bottom: training examples" in caption.split("* scan_jump")[1]
    assert "bottom: training examples" not in caption.split("* scan_jump")[0]
    assert [axes.get_title() for axes in figure.axes[2:]] == ["", "training examples\n(nothing is held out)"]


def test_a_task_whose_runs_all_diverged_is_drawn_empty_and_named():
    rows = [("train", "diverged", 1.0), *((split, "accuracy", np.nan) for split in ("train", "test"))]
    runs = [("digits_concat", "cnn", *method, seed) for method in (("none", 0.0), ("entropy", 1.0)) for seed in (0, 1)]
    table = pd.DataFrame([(*run, *row) for run in runs for row in rows], columns=HEADER)
    figure, caption = regularized_salience.draw(table, defaults("figures.regularized_salience"))
    assert "* digits_concat: every run diverged, so nothing is drawn" in caption
    assert not any(axes.lines or axes.collections for axes in figure.axes)


def test_the_ablation_states_where_all_runs_diverged(table):
    rows = pd.read_csv(table)
    rows.loc[rows["lambda"] == 1, "value"] = np.nan
    _, caption = ablation.draw(rows, OPTIONS)
    assert "entropy: all 3 runs diverged at its largest lambda, 1" in caption
    rows["value"] = np.nan
    _, caption = ablation.draw(rows, OPTIONS)
    assert "scan_jump, lstm_attention: all 3 runs diverged at lambda = 0" in caption
    assert "ceiling (digits_b): all 3 runs diverged" in caption
    assert "nan" not in caption


def test_the_ablation_states_the_difference_from_a_control_at_lambdas_of_both(table):
    rows = pd.read_csv(table)
    control = rows[(rows.regularizer == "entropy") & (rows["lambda"] == 0.1) & (rows.task == "scan_jump")]
    control = control.assign(regularizer="entropy_noise", value=control.value - 0.3 - 0.1 * control.seed)
    _, caption = ablation.draw(pd.concat([rows, control]), OPTIONS | {"controls": {"entropy": "entropy_noise"}})
    half = 4.302653 * 0.1 / np.sqrt(3)
    assert caption.count("  - entropy minus entropy_noise at lambda ") == 1
    assert f"  - entropy minus entropy_noise at lambda 0.1: +0.400 ± {half:.3f}" in caption


def test_the_ablation_draws_intervals_from_three_seeds_on(table):
    figure, caption = ablation.draw(pd.read_csv(table), OPTIONS)
    (bars,) = (part for part in figure.axes[1].collections if isinstance(part, LineCollection))  # at lambda 0, 0.1 and 1
    lengths = [end - begin for begin, end in (segment[:, 1] for segment in bars.get_segments() if len(segment))]
    assert lengths == pytest.approx([2 * style.interval(np.array([0.2, 0.21, 0.22]))] * 2)  # one run of the last diverged
    assert "three seeds or more, cut off at 0 and 1" in caption


def test_the_legend_is_below_the_panels_and_has_every_line_once(table):
    rows = pd.read_csv(table)
    more = rows[(rows.task == "digits_b") & (rows.regularizer == "entropy")].assign(task="digits_concat")
    figure, caption = ablation.draw(pd.concat([rows, more]), OPTIONS)
    assert all(axes.get_legend() is None for axes in figure.axes)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels[:3]) == ["ceiling: nothing redundant in training", "entropy", "published"]
    assert sorted(labels[3:]) == ["95 % interval of the mean", "a run", "a run that diverged"]
    assert "  - dotted: published 0.980" in caption


def test_captions_mention_swapped_words_if_words_are_swapped(table):
    rows = pd.read_csv(table)
    images = rows[rows.task == "digits_concat"]
    images = pd.concat([images, images.assign(metric="additivity"), images.assign(regularizer="recombination")])
    words = rows[rows.task == "scan_jump"].replace({"regularizer": {"entropy": "recombination_virtual"}})
    assert "augmentation" not in ablation.draw(pd.concat([rows, images]), OPTIONS)[1]
    assert "augmentation" not in comparison.draw(pd.concat([rows, images]), defaults("figures.comparison"))[1]
    assert "augmentation" in ablation.draw(pd.concat([rows, words]), OPTIONS)[1]
    assert "augmentation" in comparison.draw(pd.concat([rows, words]), defaults("figures.comparison"))[1]


def test_the_interval_is_students_t_interval():
    # Mean of 1, 2, 3: standard error 1/sqrt(3), t(0.975, 2) = 4.3027.
    assert style.interval(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert style.interval(np.array([1.0])) == 0


def test_error_bars_end_at_0_and_1():
    np.testing.assert_allclose(style.inside([0.1, 0.9], [0.3, 0.3]), [[0.1, 0.3], [0.3, 0.1]])
    np.testing.assert_allclose(style.inside([-0.1, 1.1], [0.3, 0.3]), [[0, 0.3], [0.3, 0]])  # means outside, as of a share


def test_a_claim_about_an_unknown_number_is_open():
    assert [style.verdict(holds) for holds in (True, False)] == ["holds", "DOES NOT HOLD"]
    assert style.verdict(True, of=[0.5, np.nan]) == "open, a number is unknown"
    assert style.verdict(False, "too few seeds to judge", of=[np.nan]) == "open, too few seeds to judge"


@pytest.mark.parametrize(("ticks", "named"), [(None, [0.1, 0.3, 1, 3, 10]), (2, [0.1, 3])])
def test_the_axis_of_lambda_is_linear_up_to_the_smallest_positive_one(ticks, named):
    _, axes = plt.subplots()
    assert style.lambda_axis(axes, [10, 0, 0.3, 0.1, 1, 3, 0.1], ticks=ticks) == 0.1
    assert axes.get_xticks().tolist() == [0, 0.1, 0.3, 1, 3, 10]
    assert [text.get_text() for text in axes.get_xticklabels() if text.get_text()] == ["0", *(f"{value:g}" for value in named)]
    assert style.lambda_axis(axes, [0]) == 1


def test_a_regularizers_effect_on_salience_is_stated_and_judged():
    gains = {"entropy": (0.1, 0.11, 0.12), "recombination": (0.3, 0.0, 0.0)}
    rows = []
    for seed in range(3):
        for name, strength in (("none", 0.0), ("entropy", 1.0), ("recombination", 1.0)):
            key = ("digits_concat", "cnn", name, strength, seed)
            gain = gains[name][seed] if strength else 0
            rows += [(*key, "test", "accuracy", 0.5 + gain), (*key, "train", "diverged", 0)]
            for component, value in (("left", 0.3 + gain), ("right", 0.2), ("left+right", 0.5 - gain)):
                rows.append((*key, "all", f"salience of {component} in penultimate", value))
            rows.append((*key, "initialization", "salience of left in penultimate", 0.25))
    table, options = pd.DataFrame(rows, columns=HEADER), defaults("figures.regularized_salience")
    _, caption = regularized_salience.draw(table, options)
    additive = table[table.metric == "accuracy"].assign(split="all", metric="additivity")
    assert "(recombination) show the network" in regularized_salience.draw(pd.concat([table, additive]), options)[1]
    # t(0.975, 2) = 4.3027 times 0.01 / sqrt(3), and times 0.1732 / sqrt(3).
    assert "entropy, at lambda 1, the oracle (best of these runs): accuracy 0.610 (+0.110 ± 0.025, helps)" in caption
    assert "accuracy 0.600 (+0.100 ± 0.430, does not help beyond the seeds' spread)" in caption
    assert "relevant 0.410 (+0.110 ± 0.025); redundant 0.200 (+0.000 ± 0.000); conjunction 0.390 (-0.110 ± 0.025)" in caption
    assert "mean of both components 0.305 (+0.055)" in caption
    assert "before training 0.250 (left)" in caption


def test_a_mean_is_stated_with_its_interval_or_as_a_single_value():
    assert style.summary(pd.Series([1.0, 2.0, 3.0, np.nan])) == "2.000 ± 2.484"
    assert style.summary(pd.Series([0.25, np.nan]), "+") == "+0.250 (1 seed)"
    assert style.summary(pd.Series([np.nan]), of="loop") == "unknown (no loop)"


def test_models_in_one_panel_have_different_line_styles(table):
    rows = pd.read_csv(table)
    scan = rows[rows.task == "scan_jump"]
    figure, _ = ablation.draw(pd.concat([scan, scan.assign(model="primitive_attention")]), defaults("figures.ablation"))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    looks = {
        label: (handle.lines[0].get_color(), handle.lines[0].get_linestyle())
        for handle, label in zip(handles, labels, strict=True)
        if not label.startswith((style.RUN, style.INTERVAL))
    }
    assert looks["entropy (LSTM with attention)"][0] == looks["entropy (two streams)"][0]
    assert looks["entropy (LSTM with attention)"][1] != looks["entropy (two streams)"][1]


def test_aggregate_refuses_a_grid_with_a_missing_run(tmp_path):
    folder = tmp_path / "scan_jump/lstm_attention/none/lambda=0/seed=0"
    folder.mkdir(parents=True)
    write_csv(folder / "metrics.csv", ("split", "metric", "value"), [("test", "accuracy", 0.5)])
    missing = folder.parent / "seed=1" / "metrics.csv"
    with pytest.raises(FileNotFoundError, match=r"seed=1/metrics\.csv"):
        aggregate([folder / "metrics.csv", missing], tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()
    aggregate([folder / "metrics.csv"], tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().splitlines() == [
        ",".join(HEADER),
        "scan_jump,lstm_attention,none,0.0,0,test,accuracy,0.5",
    ]


def test_a_comparison_states_gains_and_on_request_statistics_over_all_tasks():
    values = {
        ("scan_jump", "none"): (0.1, 0.2),
        ("scan_jump", "entropy"): (0.9, 0.8),
        ("scan_length", "none"): (0.5, 0.3),
        ("scan_length", "entropy"): (0.4, 0.4),
    }
    rows = [
        (task, "lstm_attention", name, float(name != "none"), seed, "test", "accuracy", value)
        for (task, name), seeds in values.items()
        for seed, value in enumerate(seeds)
    ]
    rows.append(("scan_jump", "transformer", "none", 0.0, 0, "test", "accuracy", 0.7))
    table, options = pd.DataFrame(rows, columns=HEADER), defaults("figures.comparison")
    figure, plain_caption = comparison.draw(table, options)
    assert "interquartile" not in plain_caption
    assert "5 cells are shown" in plain_caption
    assert "crosses" not in plain_caption
    assert "diamonds" not in plain_caption
    # Gains of 0.8 and 0.6: t(0.975, 1) = 12.706 times the standard error, 0.1.
    assert "lstm_attention + entropy 1: 0.850, median 0.850, from 0.800 to 0.900 (2 seeds); gain +0.700 ± 1.271" in plain_caption
    summed, caption = comparison.draw(table, options | {"summarize": True})
    assert len(summed.axes) == len(figure.axes) + 1
    # The middle half of .1, .2, .3, .5 is .2 and .3; that of .4, .4, .8, .9 is .4 and .8.
    assert "lstm_attention: 0.250 [" in caption
    # On SCAN jump every run is better; on length .4 beats .3, not .5: the mean of 1 and 1/2.
    assert "lstm_attention + entropy 1: 0.600 [" in caption
    assert "; better than lstm_attention with probability 0.75 [" in caption
    assert "not on every task: transformer" in caption
    single, caption = comparison.draw(table[table.seed == 0], options | {"summarize": True})
    # Of .9 and .4 the mean; better on the first task only.
    assert "lstm_attention + entropy 1: 0.650; better than lstm_attention with probability 0.50\n" in caption
    plt.close(single)
    plt.close(figure)
    plt.close(summed)


def test_titles_and_legends_have_words_which_an_option_can_replace(table):
    rows = pd.read_csv(table)
    figure, caption = ablation.draw(rows, OPTIONS)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["pairs of digits", "SCAN: add jump"]
    assert "* scan_jump, lstm_attention" in caption  # the configured names, so that they can be searched for
    figure, _ = ablation.draw(rows, OPTIONS | {"labels": {"scan_jump": "jumping", "entropy": "few bits"}})
    assert figure.axes[1].get_title() == "jumping"
    assert "few bits" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert words.of("a_new_task", {}) == "a new task"


def test_the_names_that_have_words_are_configured():
    known = set()
    for path in ROOT.glob("config/**/*.yaml"):
        config = yaml.safe_load(path.read_text())
        known |= {name for kind in ("tasks", "models", "regularizers") for name in config.get(kind) or {}}
    known |= {name for kind in ("tasks", "models", "regularizers") for name in available(kind)}
    assert set(words.WORDS) <= known | {"none"}


def test_a_new_regularizer_has_its_own_color():
    names = [f"my_term_{number}" for number in range(40)]
    found = [style.color(name) for name in names]
    assert found == [style.color(name) for name in names]
    assert len(set(found)) == len(names)
    for shade in found:
        far = [np.linalg.norm(np.subtract(to_rgb(shade), to_rgb(other))) for other in style.COLORS.values()]
        assert min(far) > 0.24


def test_new_regularizers_and_models_of_a_figure_have_different_colors():
    shades = style.distinct_colors(f"my_term_{number}" for number in range(8)) | style.COLORS
    between = [np.linalg.norm(np.subtract(to_rgb(a), to_rgb(b))) for a, b in itertools.combinations(shades.values(), 2)]
    assert min(between[: 8 * 7 // 2]) > 0.1  # the new ones come first
    assert len(set(shades.values())) == len(shades)
    assert shades == style.distinct_colors([f"my_term_{number}" for number in range(7, -1, -1)]) | style.COLORS
    both = style.distinct_colors(["smoothness", "smoothness_embeddings", "homomorphism_then"])
    assert (both["smoothness"], both["homomorphism_then"]) == (style.COLORS["smoothness"], style.COLORS["homomorphism"])
    assert style.color("smoothness_embeddings") == both["smoothness"] != both["smoothness_embeddings"]
    alike = style.distinct_colors(["homomorphism_then", "modifier_homomorphism"])
    assert len({*alike.values()}) == 2
    for look in (style.line_of, style.marker_of):
        assert len({look(index) for index in range(30)}) == 30


def test_no_two_models_or_regularizers_have_the_same_words():
    modules = {name for kind in ("models", "regularizers") for name in available(kind)}
    found = [words.WORDS[name] for name in words.WORDS if name in modules]
    assert len(set(found)) == len(found)
