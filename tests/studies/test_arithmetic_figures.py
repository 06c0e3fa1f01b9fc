"""Captions of the figures about arithmetic expressions, made from small tables."""

from __future__ import annotations

from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from support.configurations import STUDIES, read

from compositional.configuration.configuration import Configuration
from compositional.figures import arithmetic_ablation, paired_gains, published_bars
from compositional.tasks import arithmetic

CONFIGURATION = Configuration(read("config.yaml", *STUDIES))
FIGURES = CONFIGURATION.figures
SEEDS = (-0.01, 0.0, 0.01)  # deviations of three seeds from the mean


def run(task, regularizer, strength, seed, values, model="lstm_regressor"):
    """Rows of one run. values: {(split, metric): value}."""
    return [(task, model, regularizer, strength, seed, *key, value) for key, value in values.items()]


def table(rows):
    return pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])


def lines_of(module, rows, name, options=None):
    """The lines of a figure's caption, with the configured options or others."""
    figure, caption = module.draw(table(rows), FIGURES[name]["options"] | (options or {}))
    plt.close(figure)
    return caption.splitlines()


def only(lines, *parts):
    (found,) = [line for line in lines if all(part in line for part in parts)]
    return found


TERMS = {"smoothness_embeddings": "word_embedding", "smoothness_states": "encoder_states"}
SHARES = {
    "examples in training": 0.995,
    "distinct inputs in training": 0.99,
    "distinct inputs in training per example": 0.575,
}


def ablation(accuracy, held_out, change):
    """A table of both tasks, each {lambda: value}, with the same values for both terms."""
    rows = []
    for seed, beside in enumerate(SEEDS):
        for term, representation in TERMS.items():
            for strength in accuracy:
                if strength == 0 and term != "smoothness_embeddings":
                    continue
                shown = TERMS.values() if strength == 0 else [representation]
                common = {
                    (split, f"change of {name}"): change[strength] for name in shown for split in ("train", "initialization")
                }
                common |= {("reference", name): value for name, value in SHARES.items()}
                name = term if strength else "none"
                rows += run("arithmetic", name, strength, seed, common | {("test", "accuracy"): accuracy[strength] + beside})
                tested = {("test", "accuracy"): held_out[strength] + beside, ("in_distribution", "accuracy"): 0.8}
                rows += run("arithmetic_pairs", name, strength, seed, common | tested)
    return rows


def test_the_ablation_states_the_recorded_claim_and_whether_it_holds():
    rows = ablation(
        {0: 0.85, 0.5: 0.84, 1: 0.82, 10: 0.5}, {0: 0.6, 0.5: 0.6, 1: 0.55, 10: 0.7}, {0: 2.2, 0.5: 2.0, 1: 1.7, 10: 0.6}
    )
    lines = lines_of(arithmetic_ablation, rows, "arithmetic_ablation")
    assert "All seeds share one draw of examples" in lines[0]
    leak = only(lines, "not seen during training")
    assert "training has 99.5% of the test examples and 99.0% of the distinct ones: DOES NOT HOLD" in leak
    assert "are 57.5%" in leak
    assert "reported: plain accuracy 0.84. Measured in the same way: 0.850 ± 0.025 (3 seeds), within 0.05: holds" in only(
        lines, "plain accuracy 0.84"
    )
    # For both terms, up to lambda 1.
    assert sum("at most 0.030, at lambda 1 (-0.030 ± 0.000): holds" in line for line in lines) == 2
    falls = [line for line in lines if "R falls with lambda" in line]
    assert len(falls) == 2
    assert all("2.20 at 0, 2.00 at 0.5, 1.70 at 1, 0.60 at 10: holds" in line for line in falls)
    # All seeds are shifted equally, so that paired differences have no spread.
    gains = [line for line in lines if line.startswith("  - held out")]
    assert len(gains) == 2
    for line in gains:
        assert "-0.050 ± 0.000 at 1; +0.100 ± 0.000 at 10" in line
        assert "The interval is above 0 at 10, below 0 at 1" in line


def test_the_ablation_can_contradict_the_recorded_claim():
    rows = ablation({0: 0.7, 1: 0.6, 10: 0.7}, {0: 0.6, 1: 0.6, 10: 0.6}, {0: 2.0, 1: 2.1, 10: 0.6})
    lines = lines_of(arithmetic_ablation, rows, "arithmetic_ablation")
    assert "within 0.05: DOES NOT HOLD" in only(lines, "plain accuracy 0.84")
    assert sum("at most 0.100, at lambda 1 (-0.100 ± 0.000): DOES NOT HOLD" in line for line in lines) == 2
    assert sum("2.10 at 1, 0.60 at 10: DOES NOT HOLD" in line for line in lines) == 2
    assert sum("The interval is above 0 at no lambda, below 0 at no lambda" in line for line in lines) == 2


def test_the_recorded_claims_are_open_within_the_spread_of_the_seeds():
    rows = ablation({0: 0.87, 1: 0.83, 10: 0.7}, {0: 0.6, 1: 0.6, 10: 0.6}, {0: 2.0, 1: 1.9, 10: 0.6})
    spread = {("accuracy", "arithmetic"): (0.03, 0.0, -0.03), ("change", "arithmetic"): (0.3, 0.0, -0.3)}
    rows = [
        (
            *row[:-1],
            row[-1] + spread.get((row[6].split(" ")[0], row[0]), (0, 0, 0))[row[4]] * (row[3] == 1 and row[5] != "reference"),
        )
        for row in rows
    ]
    lines = lines_of(arithmetic_ablation, rows, "arithmetic_ablation")
    assert "0.870 ± 0.025 (3 seeds), within 0.05: open, the interval includes the bound" in only(lines, "plain accuracy 0.84")
    # 4.303 * 0.03 / sqrt 3
    assert sum("at lambda 1 (-0.040 ± 0.075): open, the interval includes the bound: 1" in line for line in lines) == 2
    assert sum("1.90 at 1, 0.60 at 10: open, the interval includes the bound: 0 to 1" in line for line in lines) == 2


def bars(values):
    """A table of three seeds; values: {(task, model): (metric, in distribution, held out)}."""
    rows = []
    for (task, model), measured in values.items():
        for seed, beside in enumerate(SEEDS):
            for metric, known, new in measured:
                own = {("in_distribution", metric): known + beside, ("test", metric): new + beside}
                rows += run(task, "none", 0.0, seed, own, model)
    return rows


def test_variants_are_judged_in_distribution_and_on_held_out_expressions():
    groups = FIGURES["arithmetic_variants"]["options"]["groups"]
    models = {(line["task"], line["model"]): [("accuracy", 0.8, 0.5)] for group in groups.values() for line in group.values()}
    models["arithmetic_pairs", "rnn_regressor"] = [("accuracy", 0.7, 0.48)]
    models["arithmetic_two_digits", "lstm_regressor"] = [("accuracy", 0.0, 0.0)]
    lines = lines_of(published_bars, bars(models), "arithmetic_variants")
    claim = lines.index(only(lines, "a simple RNN is worse"))
    assert "accuracy, simple RNN minus LSTM of width 64, at most -0.05" in lines[claim]
    assert lines[claim + 2] == "  - test expressions occur in training: -0.100 ± 0.000: holds"
    assert lines[claim + 3] == "  - test expressions held out of training: -0.020 ± 0.000: DOES NOT HOLD"
    claim = lines.index(only(lines, "reported: attention reaches 100 %"))
    assert lines[claim + 2] == "  - test expressions occur in training: 0.800 ± 0.025: DOES NOT HOLD"
    assert only(lines, "simple RNN: accuracy").strip() == (
        "- simple RNN: accuracy 0.700 ± 0.025 on examples in training, published 0.73, 0.480 ± 0.025 held out (3 seeds)"
    )


def test_a_published_value_of_zero_is_a_line_and_not_hidden_by_the_axis():
    line = {"task": "arithmetic_two_digits", "model": "lstm_regressor", "published": {"accuracy": 0}}
    rows = bars({("arithmetic_two_digits", "lstm_regressor"): [("accuracy", 0.5, 0.5)]})
    options = FIGURES["arithmetic_variants"]["options"] | {"groups": {"": {"LSTM": line}}, "claims": []}
    figure, _ = published_bars.draw(table(rows), options)
    (axes,) = (axes for axes in figure.axes if axes.patches)
    zero = axes.patches[0]
    width = 72 * figure.get_size_inches()[0] * axes.get_position().width / 1.04  # in points, of an accuracy of 1
    assert (zero.get_width(), zero.get_linewidth()) == (0, 1.5)
    assert -axes.get_xlim()[0] * width > 1.5
    plt.close(figure)


def test_operators_are_judged_by_the_loss_that_the_paper_shows():
    losses = {"arithmetic_sum": 0.1, "arithmetic_sum_difference": 0.2, "arithmetic_no_quotient": 15, "arithmetic_all": 10}
    values = {(task, "lstm_regressor"): [("loss", loss, 2 * loss), ("accuracy", 0.9, 0.5)] for task, loss in losses.items()}
    lines = lines_of(published_bars, bars(values), "arithmetic_operators")
    claim = lines.index(only(lines, "loss 18 against 0"))
    assert lines[claim + 2].endswith("+14.800 ± 0.000: holds")
    claim = lines.index(only(lines, "loss 34 against 18"))
    assert lines[claim + 2].endswith("-5.000 ± 0.000: DOES NOT HOLD")


def test_a_claim_about_a_line_that_is_not_shown_is_refused():
    rows = bars({("arithmetic_sum", "lstm_regressor"): [("loss", 1, 1)]})
    options = {
        "groups": {"one": {"+": {"task": "arithmetic_sum", "model": "lstm_regressor"}}},
        "claims": [{"claim": "more", "of": "+", "than": "*", "metric": "loss", "at_least": 0}],
    }
    with pytest.raises(ValueError, match=r"claims name \*, the lines are \+"):
        lines_of(published_bars, rows, "arithmetic_operators", options)


@pytest.mark.parametrize(
    ("bound", "diverged", "said"),
    [
        (0.97, 0, "1.000 ± 0.025: holds"),
        (0.99, 0, "1.000 ± 0.025: open, the interval includes the bound"),
        (1.03, 0, "1.000 ± 0.025: DOES NOT HOLD"),
        (0.97, 1, "0.995 ± 0.064: open, too few seeds to judge"),
        (0.97, 2, "0.990 (1 seed): open, too few seeds to judge"),
        (0.97, 3, "unknown (no seed): open, too few seeds to judge"),
    ],
)
def test_a_claim_is_judged_by_the_interval_over_the_seeds_that_did_not_diverge(bound, diverged, said):
    """Of three seeds, the interval is 1 ± 4.303 * 0.01 / sqrt(3), of two 0.995 ± 12.706 * 0.005, too few to judge."""
    rows = bars({("arithmetic_sum", "lstm_regressor"): [("loss", 1, 1)]})
    rows = [(*row[:-1], float("nan") if row[4] >= 3 - diverged else row[-1]) for row in rows]
    options = {
        "groups": {"one": {"+": {"task": "arithmetic_sum", "model": "lstm_regressor"}}},
        "claims": [{"claim": "more", "of": "+", "metric": "loss", "at_least": bound}],
    }
    lines = lines_of(published_bars, rows, "arithmetic_operators", options)
    assert sum(line.endswith(f": {said}") for line in lines) == 2, lines


def test_the_ablation_judges_no_fall_if_all_runs_diverged():
    strengths = (0, 1, 10)
    rows = ablation(dict.fromkeys(strengths, 0.8), dict.fromkeys(strengths, 0.6), dict.fromkeys(strengths, float("nan")))
    lines = lines_of(arithmetic_ablation, rows, "arithmetic_ablation")
    assert sum("R falls with lambda" in line and line.endswith("open, fewer than two lambdas are known") for line in lines) == 2


def test_gains_are_paired_by_seed_and_exposure_is_stated():
    rows = []
    for seed, beside in enumerate((-0.1, 0.0, 0.1)):
        values = {"none": (0.5, 0.8), "recombination": (0.7, 0.8), "additivity": (0.45, 0.6), "entropy": (0.5 - beside, 0.8)}
        for term, (new, known) in values.items():
            own = {("test", "accuracy"): new + beside, ("in_distribution", "accuracy"): known}
            own |= {("test", "accuracy of sum"): new + 0.1}
            rows += run("arithmetic_pairs", term, 0.0 if term == "none" else 1.0, seed, own)
    options = {"tasks": {"arithmetic_pairs": "pairs"}, "exposing": {"arithmetic_pairs": ["recombination"]}}
    lines = lines_of(paired_gains, rows, "arithmetic_terms", options)
    assert "All seeds of a task share its examples" in lines[0]
    assert only(lines, "- recombination 1").strip() == (
        "- recombination 1: +0.200 ± 0.000 held out, helps (its exchanges make test inputs); sum +0.200 ± 0.000; in distribution "
        "+0.000 ± 0.000"
    )
    assert "-0.050 ± 0.000 held out, hurts; sum" in only(lines, "- additivity 1")
    assert "-0.200 ± 0.000" in only(lines, "- additivity 1")
    # The differences between entropy and plain runs, -0.1, 0 and 0.1, are no effect.
    assert "+0.000 ± 0.248 held out, no effect seen" in only(lines, "- entropy 1")
    assert "plain 0.500 ± 0.248 held out" in only(lines, "* pairs")


@pytest.mark.parametrize("name", ["arithmetic_ablation", "arithmetic_operators", "arithmetic_variants", "arithmetic_terms"])
def test_every_line_of_the_figures_is_trained(name):
    """The runs that options name are in the grids, with ten seeds."""
    figure = FIGURES[name]
    trained = {(grid["task"], grid["model"]): grid["seeds"] for grid in figure["grids"]}
    options = figure["options"]
    named = {(line["task"], line["model"]) for group in options.get("groups", {}).values() for line in group.values()}
    named |= {(task, "lstm_regressor") for task in options.get("tasks", [])}
    named |= {(options[key], "lstm_regressor") for key in ("leak", "held_out") if key in options}
    assert named
    assert all(trained[line] == list(range(10)) for line in named)


def test_terms_whose_exchanges_make_test_inputs_are_named():
    """`recombination` reverses an expression; `additivity` joins its first operand and the rest of one of the same form."""
    options = FIGURES["arithmetic_terms"]["options"]
    for task in options["tasks"]:
        members, _ = arithmetic.build(None, CONFIGURATION.parameters("tasks", task))
        train, tested = members["train"], set(members["test"]["input"])
        made = {"recombination": set(train["equivalent"] if "equivalent" in train.column_names else [])}
        made["additivity"] = {
            first[0] + rest[1:]
            for form in set(train["form"])
            for first, rest in product([row["input"] for row in train if row["form"] == form], repeat=2)
        }
        assert {term for term, inputs in made.items() if inputs & tested} == set(options["exposing"].get(task, [])), task
