"""The study "gradient descent resists compositionality": its tasks, its optimizer, what it records, and its figures."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from support.configurations import STUDIES, read
from support.trained import independent, problem_of, train_plain, weights_of

from compositional import randomness
from compositional.configuration.configuration import Configuration
from compositional.datasets import scan
from compositional.evaluation import learning_curves
from compositional.figures import boundaries, influence, quadrant_shares, setting_curves
from compositional.figures.shared import quadrants
from compositional.kinds import image, point, sequence
from compositional.kinds.shared.labelled import Labelled
from compositional.language.vocabulary import Vocabulary
from compositional.layers.tap import silent_tap
from compositional.models import cnn, lstm_attention, multilayer_perceptron
from compositional.plugins import defaults
from compositional.stages.plot import drawn
from compositional.stages.split import audit, make_split
from compositional.training.problem import Problem, initial_weights

torch.set_num_threads(1)
FIGURES = {
    name: figure
    for name, figure in Configuration(read("config.yaml", *STUDIES)).figures.items()
    if figure["study"] == "gradient_resists"
}


@cache
def built(task: str, **options):
    """Members and description of a task with the given options."""
    return import_module(f"compositional.tasks.{task}").build(None, defaults(f"tasks.{task}") | options)


def problem(model: dict | None = None, task: dict | None = None, **settings) -> Problem:
    """A small version of the toy problem."""
    members, about = built("quadrants", **({"train_points": 300} | (task or {})))
    base = {"batch_size": 10, "steps": 8, "record_every": 4, "clip": None, "decay": 1.0, "curve_examples": 10000}
    splits = {name: point.PointSplit(member["point"], member["label"], "cpu") for name, member in members.items()}
    return problem_of("multilayer_perceptron", about, splits, base | settings, model, task="quadrants")


# SCAN: the distributions of setting B are exact.


def test_setting_b_of_scan_draws_every_action_word_uniformly():
    published, _ = built("scan_jump")
    members, _ = built("scan_jump", setting="B")
    probability = Counter()
    for command in published["train"]["input"]:
        slots = [list(scan.ACTIONS) if word in scan.ACTIONS else [word] for word in command.split()]
        variants = [" ".join(words) for words in product(*slots)]
        for variant in variants:
            probability[variant] += 1 / len(variants) / len(published["train"])
    counts, total = Counter(members["train"]["input"]), len(members["train"])
    assert counts.keys() == probability.keys()
    assert all(count / total == pytest.approx(probability[command], rel=1e-9) for command, count in counts.items())
    actions = dict(scan.commands())
    assert all(actions[row["input"]] == row["output"] for row in members["train"].select(range(0, total, 97)))
    assert members["test"].to_dict() == published["test"].to_dict()


def test_setting_b_of_scan_leaves_no_trace_of_the_command_in_its_action_word():
    members, _ = built("scan_jump", setting="B")
    contexts = {word: Counter() for word in scan.ACTIONS}
    for command in members["train"]["input"]:
        words = command.split()
        for place, word in enumerate(words):
            if word in scan.ACTIONS:
                contexts[word][tuple(words[:place]), tuple(words[place + 1 :])] += 1
    assert contexts["jump"] == contexts["walk"] == contexts["look"] == contexts["run"]


def test_setting_b_of_scan_in_the_appendix_reading_replaces_only_jump():
    published, _ = built("scan_jump")
    members, about = built("scan_jump", setting="B", reading="appendix")
    counts, before = Counter(members["train"]["input"]), Counter(published["train"]["input"])
    assert counts["jump"] == 0
    assert len(members["train"]) == 3 * len(published["train"])
    for command in before.keys() - {"jump"}:
        assert counts[command] == 3 * before[command] + (before["jump"] if command in ("walk", "look", "run") else 0)
    assert audit(members, about["disjoint"])[0]["in_training"] == 0


def test_the_audit_states_the_intended_overlap_of_setting_b():
    assert "by_design" not in built("scan_jump")[1]["disjoint"][0]
    members, about = built("scan_jump", setting="B")
    (count,) = audit(members, about["disjoint"])
    assert (count["items"], count["in_training"]) == (7706, 7706)
    assert "setting B" in count["by_design"]


# The networks, the settings, and the test sets.


@pytest.mark.parametrize(("convolutions", "dense", "expected"), [(2, 64 * 11 * 25, 1_145_930), (3, 64 * 9 * 23, 904_330)])
def test_the_image_network_has_the_papers_layers_and_keras_initialization(convolutions, dense, expected):
    """28 x 56 pixels, 26 x 54 after the first convolution, 13 x 27 after pooling, then two rows and columns less each time."""
    options = defaults("models.cnn") | {"convolutions": convolutions}
    weights = cnn.initialize(options, {"image_shape": (1, 28, 56), "classes": 10}, np.random.default_rng(0))
    assert sum(tensor.numel() for tensor in weights.values()) == expected
    assert not any(tensor.any() for name, tensor in weights.items() if name.endswith("bias"))
    for name, fans in (("convolution1", (32 + 64) * 9), ("dense", dense + 64), ("output", 64 + 10)):  # Glorot, uniform
        assert weights[f"{name}.weight"].abs().max().item() == pytest.approx(math.sqrt(6 / fans), rel=0.02)


def test_the_sequence_network_has_the_papers_widths():
    about = {"source_words": ["word"] * 16, "target_words": ["action"] * 9}
    weights = lstm_attention.initialize(defaults("models.lstm_attention"), about, np.random.default_rng(0))
    widths = {name: tuple(weights[name].shape) for name in weights if "embedding" in name or name.endswith("recurrent")}
    assert widths == {
        "input_embedding": (16, 32),
        "output_embedding": (9, 32),
        "encoder.forward.recurrent": (16, 4 * 16),
        "encoder.backward.recurrent": (16, 4 * 16),
        "decoder.recurrent": (64, 4 * 64),
    }


def test_the_toy_network_has_three_hidden_layers_of_8():
    weights = multilayer_perceptron.initialize(
        defaults("models.multilayer_perceptron"), {"inputs": 2, "classes": 2}, np.random.default_rng(0)
    )
    shapes = [tuple(tensor.shape) for name, tensor in weights.items() if name.endswith("weight")]
    assert shapes == [(2, 8), (8, 8), (8, 8), (8, 2)]


@pytest.mark.parametrize(
    ("task", "model", "expected"),
    [
        ("resists_mnist_a", "cnn", (200, 64, "adam", 0.001, 1.0, "hinge")),
        ("resists_scan_b", "lstm_attention", (2000, 256, "adam", 0.01, 0.96, "cross_entropy")),
        ("quadrants", "multilayer_perceptron", (1024, 10, "sgd", 0.1, 1.0, "cross_entropy")),
    ],
)
def test_trainings_have_the_papers_settings(task, model, expected):
    settings = Configuration(read("config.yaml", *STUDIES, "paper/gradient_resists.yaml")).settings(task, model)
    names = ("steps", "batch_size", "optimizer", "learning_rate", "decay", "loss")
    assert tuple(settings[name] for name in names) == expected
    assert settings["clip"] is None
    # The standard error of an accuracy on the curves is below 1 %.
    assert 0.5 / math.sqrt(settings["curve_examples"]) < 0.01


@pytest.mark.parametrize("task", ["digits_concat", "quadrants"])
def test_both_settings_have_the_same_test_set(task):
    a, b = (built(task, setting=setting)[0] for setting in "AB")
    assert a["test"].to_dict() == b["test"].to_dict()
    assert a["train"].to_dict() != b["train"].to_dict()


@pytest.mark.parametrize("setting", ["A", "B"])
def test_digits_are_uniform_and_so_are_the_images_of_a_digit(setting):
    members, _ = built("digits_concat", setting=setting)
    for member in members.values():
        for labels, images in (("label", "left_index"), ("right_label", "right_index")):
            counts = np.bincount(np.array(member[labels]), minlength=10)
            assert abs(counts - len(member) / 10).max() < 5 * math.sqrt(len(member) / 10)
            own = np.array(member[images])[np.array(member[labels]) == 3]
            _, each = np.unique(own, return_counts=True)
            assert abs(each - len(own) / len(each)).max() < 5 * math.sqrt(len(own) / len(each))


# The toy problem.


@pytest.mark.parametrize("setting", ["A", "B"])
def test_quadrants_have_the_distribution_of_their_setting(setting):
    members, _ = built("quadrants", setting=setting, train_points=6000)
    place = np.array(members["train"]["point"])
    assert np.array_equal(place[:, 0] > 0, np.array(members["train"]["label"]) == 1)
    counts = Counter(map(tuple, (place > 0).tolist()))
    seen = set(product((False, True), repeat=2)) - ({(True, True)} if setting == "A" else set())
    assert counts.keys() == seen
    assert all(abs(count - 6000 / len(seen)) < 5 * np.sqrt(6000 / len(seen)) for count in counts.values())
    inside = place - np.floor(place)  # positions within the quadrants are uniform
    assert np.abs(inside.mean(0) - 0.5).max() < 0.02
    assert np.abs(inside.var(0) - 1 / 12).max() < 0.005
    assert np.abs(place).max() <= 1


def test_the_test_quadrant_is_covered_evenly_and_belongs_to_class_1():
    members, _ = built("quadrants", grid_side=5)
    test = np.array(members["test"]["point"])
    assert len(np.unique(test, axis=0)) == 100 * 100
    assert set(members["test"]["label"]) == {1}
    np.testing.assert_allclose(test[:500].mean(0), 0.5, atol=0.06)  # curves are measured on the first points
    assert len(members["grid"]) == 25


def test_a_split_of_points_is_read_back_unchanged(tmp_path):
    options = defaults("tasks.quadrants") | {"train_points": 20}
    make_split("toy", "tasks.quadrants", options, tmp_path / "raw", tmp_path / "split")
    about = json.loads((tmp_path / "split" / "task.json").read_text())
    assert about["items"] == {"train": 20, "validation": 20, "test": 10000}
    read = point.load(tmp_path / "split", "cpu")["train"]
    members, _ = built("quadrants", train_points=20)
    torch.testing.assert_close(read.points, torch.tensor(members["train"]["point"]))
    assert read.describe(torch.tensor([3])) == ["{:.4f} {:.4f}".format(*members["train"]["point"][3])]


def test_the_share_of_the_quadrant_is_right_for_a_known_boundary():
    case = problem(model={"hidden_layers": 1, "width": 1})
    # With one hidden unit, x_1 - x_2 / 2 - 1 / 4, class 1 wins where the unit is active.
    weights = {
        "hidden0.weight": torch.tensor([[[1.0], [-0.5]]]),
        "hidden0.bias": torch.tensor([[-0.25]]),
        "output.weight": torch.tensor([[[0.0, 1.0]]]),
        "output.bias": torch.tensor([[1e-6, 0.0]]),
    }
    (values,) = learning_curves.measure(case, weights, 10000)
    # The part x_1 > 1/4 + x_2 / 2 of the unit square has area 1/2.
    assert values["test", "accuracy"] == pytest.approx(0.5, abs=0.005)


# Training and what it records.


def test_losses_equal_hand_computed_values():
    scores, labels = torch.tensor([[[0.2, 0.5, 0.9]] * 3 + [[0.0, 0.0, 3.0]]]), torch.tensor([[0, 1, 2, 2]])
    batch = point.Batch(torch.zeros(1, 4, 2), labels)
    found = {loss: batch.losses(scores, loss)[0] for loss in ("hinge", "squared", "cross_entropy")}
    torch.testing.assert_close(found["hinge"], torch.tensor([1 + 0.9 - 0.2, 1 + 0.9 - 0.5, 1 + 0.5 - 0.9, 0.0]))
    low = torch.tensor([[[-2.0, -3.0, -1.0], [-2.0, 0.5, -1.0]]])
    hinges = {
        name: point.Batch(torch.zeros(1, 2, 2), labels[:, :2]).losses(low, name)[0] for name in ("hinge", "categorical_hinge")
    }
    # Keras takes the maximum of s (1 - y), which is 0 at the label: the largest other score counts as at least 0.
    torch.testing.assert_close(hinges["hinge"], torch.tensor([1 - 1.0 + 2.0, 0.0]))
    torch.testing.assert_close(hinges["categorical_hinge"], torch.tensor([1 + 0.0 + 2.0, 0.5]))
    torch.testing.assert_close(found["squared"][:1], torch.tensor([(0.8**2 + 1.5**2 + 1.9**2) / 2]))
    torch.testing.assert_close(
        found["cross_entropy"][:1], torch.tensor([math.log(math.exp(0.2) + math.exp(0.5) + math.exp(0.9)) - 0.2])
    )


def test_sgd_steps_equal_hand_computed_values():
    playground = {"output": "tanh", "initialization": "playground"}
    case = problem(optimizer="sgd", learning_rate=0.1, steps=4, loss="squared", model=playground)
    (state,) = train_plain(case, [3])
    weights = {name: tensor.clone().requires_grad_() for name, tensor in initial_weights(case, 3).items()}
    assert all((tensor == 0.1).all() for name, tensor in weights.items() if name.endswith("bias"))
    assert all(tensor.abs().max() <= 0.5 for tensor in weights.values())
    train = case.splits["train"]
    key = randomness.derive("quadrants", "multilayer_perceptron", 3, "batches")
    for batch in train.draw(key, range(4), 10):
        hidden = train.points[batch]
        for layer in ("hidden0", "hidden1", "hidden2"):
            hidden = (hidden @ weights[f"{layer}.weight"] + weights[f"{layer}.bias"]).relu()
        scores = (hidden @ weights["output.weight"] + weights["output.bias"]).tanh()
        wanted = torch.tensor([[-1.0, 1.0] if label else [1.0, -1.0] for label in train.labels[batch]])
        loss = ((scores - wanted) ** 2).sum() / 2 / 10
        gradients = torch.autograd.grad(loss, list(weights.values()))
        for tensor, gradient in zip(weights.values(), gradients, strict=True):
            tensor.data -= 0.1 * gradient
    ours = weights_of(case, [state])
    for name, tensor in weights.items():
        torch.testing.assert_close(ours[name][0], tensor.detach(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_toy_run_does_not_depend_on_its_neighbors(optimizer):
    case = problem(optimizer=optimizer, learning_rate=0.1, record_steps=[0, 1, 2], influence_examples=300)
    independent(case, [(seed, 0.0) for seed in range(100)], alone=(0, 57))


def test_curves_are_recorded_at_the_configured_steps_without_changing_weights():
    (plain,) = train_plain(problem(steps=10), [0])
    asked = {"record_steps": [0, 1, 2, 5], "influence_examples": 300, "record_outputs": ["grid"]}
    (recorded,) = train_plain(problem(steps=10, task={"grid_side": 3}, **asked), [0])
    assert torch.equal(plain.tensors["weights"], recorded.tensors["weights"])
    rows = pd.DataFrame(recorded.history, columns=["step", "split", "metric", "value"])
    test = rows[(rows.split == "test") & (rows.metric == "accuracy")]
    assert list(test.step) == [0, 1, 2, 4, 5, 8, 10]
    grid = rows[(rows.split == "grid") & (rows.step == 10)].set_index("metric").value
    margins = grid[grid.index.str.startswith("margin at")]
    assert len(margins) == 9
    assert "margin at -1.0000 0.0000" in margins
    assert (margins > 0).mean() == pytest.approx(grid["accuracy"])


# Influence.


@dataclass(frozen=True)
class Linear:
    """A linear model: the gradients of its scores are its weights."""

    weight: torch.Tensor  # (features, classes)

    def __call__(self, batch: Labelled, tap) -> torch.Tensor:
        return getattr(batch, batch.content).flatten(2) @ self.weight


def test_influence_in_a_linear_model_equals_its_weights():
    batch = point.Batch(torch.rand(1, 3, 2), torch.tensor([[0, 1, 1]]))
    relevant, redundant = batch.influence(Linear(torch.tensor([[3.0, -1.0], [0.5, -2.0]])), {})
    torch.testing.assert_close(relevant, torch.tensor([[3.0, 1.0, 1.0]]))
    torch.testing.assert_close(redundant, torch.tensor([[0.5, 2.0, 2.0]]))
    weight = torch.arange(16.0).reshape(8, 2)  # images of 2 x 4 pixels: 0, 1, 4, 5 are the left component
    pictures = image.Batch(torch.rand(1, 2, 1, 2, 4), torch.tensor([[0, 1]]), 2)
    relevant, redundant = pictures.influence(Linear(weight), {})
    torch.testing.assert_close(relevant, weight[[0, 1, 4, 5]].norm(dim=0)[None])
    torch.testing.assert_close(redundant, weight[[2, 3, 6, 7]].norm(dim=0)[None])


def test_influence_in_a_network_equals_finite_differences():
    case = problem()
    weights = {name: tensor[None].double() for name, tensor in initial_weights(case, 1).items()}

    def forward(batch, tap=silent_tap):
        return multilayer_perceptron.forward(case.model_parameters, weights, batch, tap)

    batch = point.Batch(torch.tensor([[[0.3, -0.6], [-0.2, 0.7]]], dtype=torch.float64), torch.tensor([[1, 0]]))
    for component, norms in enumerate(batch.influence(forward, {})):
        change = torch.zeros(2, dtype=torch.float64)
        change[component] = 1e-6
        above, below = (forward(point.Batch(batch.points + sign * change, batch.labels)) for sign in (1, -1))
        slope = (above - below).gather(2, batch.labels.unsqueeze(-1)).squeeze(-1) / 2e-6
        torch.testing.assert_close(norms, slope.abs(), atol=1e-7, rtol=1e-6)


def test_influence_in_a_sequence_model_equals_finite_differences():
    actions = dict(scan.commands())
    source, target = (Vocabulary.of([pair[side] for pair in actions.items()]) for side in (0, 1))
    texts = ["jump around left", "turn right", "walk and look twice", "jump"] * 4
    split = sequence.SequenceSplit(texts, [actions[text] for text in texts], source, target, "cpu")
    ((_, batch),) = split.evaluation_batches(1, 16)
    options = defaults("models.lstm_attention") | {"embedding_width": 4, "encoder_width": 4}
    about = {"source_words": source.words, "target_words": target.words, "primitives": scan.ACTIONS}
    initial = lstm_attention.initialize(options, about, np.random.default_rng(0))
    weights = {name: tensor[None].double() for name, tensor in initial.items()}
    symbols = torch.tensor([target.words.index(symbol) for symbol in scan.ACTIONS.values()])
    structural = (batch.target_mask & ~torch.isin(batch.targets, symbols)).double()

    def structure(shift: torch.Tensor) -> torch.Tensor:
        """Mean logit of each example's turns and end symbol, with `shift` added to the word embeddings."""
        logits = lstm_attention.forward(
            options, weights, batch, lambda name, values, mask: values + shift if name == "word_embedding" else values
        )
        own = logits.gather(2, batch.targets.unsqueeze(-1)).squeeze(-1)
        return (batch.example_losses(own * structural) / batch.example_losses(structural))[0]

    relevant, redundant = batch.influence(lambda *arguments: lstm_attention.forward(options, weights, *arguments), about)
    sentences = split.input_sentences()
    for text in set(texts):
        row = sentences.index(text)
        squares = {True: 0.0, False: 0.0}
        for place, word in enumerate([*text.split(), "<end>"]):
            for dimension in range(4):
                shift = torch.zeros(*batch.inputs.shape, 4, dtype=torch.float64)
                shift[0, row, place, dimension] = 1e-5
                squares[word in scan.ACTIONS] += ((structure(shift) - structure(-shift))[row].item() / 2e-5) ** 2
        assert relevant[0, row].item() == pytest.approx(squares[False] ** 0.5, rel=1e-5)
        assert redundant[0, row].item() == pytest.approx(squares[True] ** 0.5, rel=1e-5, abs=1e-9)


# Figures.


HISTORY = ["task", "model", "regularizer", "lambda", "seed", "step", "split", "metric", "value"]


def rows_of(task: str, model: str, seed: int, values: dict, step: int | None = None) -> list[dict]:
    """Rows of a table; `values` by (split, metric)."""
    key = {"task": task, "model": model, "regularizer": "none", "lambda": 0.0, "seed": seed}
    key |= {} if step is None else {"step": step}
    return [key | {"split": split, "metric": metric, "value": value} for (split, metric), value in values.items()]


def small_table(figure: dict) -> pd.DataFrame:
    """A table for a figure of the study, with at most three seeds and made-up values."""
    (source,) = figure["sources"]
    numbers = np.random.default_rng(0)
    table = []
    for grid in figure["grids"]:
        for seed, step in product(grid["seeds"][:3], [None] if source == "metrics.csv" else [0, 25, 50, 100]):
            values = {(split, "accuracy"): numbers.random() for split in ("train", "test", "validation")}
            for split, component in product(("train", "test"), ("relevant", "redundant")):
                values[split, f"influence_{component}"] = numbers.random()
            for split, first, second in product(("train", "test", "grid"), np.linspace(-1, 1, 4), np.linspace(-1, 1, 4)):
                values[split, f"margin at {first:.4f} {second:.4f}"] = numbers.normal()
            table += rows_of(grid["task"], grid["model"], seed, values, step)
    return pd.DataFrame(table)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figures_draw_from_a_small_table(name):
    figure = FIGURES[name]
    with drawn(figure["module"], small_table(figure), figure["options"]) as (_, caption):
        assert "nan" not in caption


def test_captions_contradict_the_claim_if_the_table_does():
    table = []
    for setting, test in (("A", 0.85), ("B", 0.89)):
        for seed, step in product((0, 1, 2), (0, 25, 50)):
            table += rows_of(f"task_{setting}", "cnn", seed, {("train", "accuracy"): 0.9, ("test", "accuracy"): test}, step)
    options = defaults("figures.setting_curves") | {
        "settings": {"A": "task_A", "B": "task_B"},
        "early_steps": [25, 30],
        "expectations": [
            {"setting": "A", "quantity": "gap", "at_least": 0.15},
            {"setting": "B", "quantity": "gap", "at_most": 0.05},
        ],
    }
    _, caption = setting_curves.draw(pd.DataFrame(table), options)
    known = "(95 % interval {0} to {0})".format
    assert f"setting A, final train - test gap 0.0500 {known('0.0500')}, expected at least 0.15: DOES NOT HOLD" in caption
    assert f"setting B, final train - test gap 0.0100 {known('0.0100')}, expected at most 0.05: holds" in caption
    equal = f"A is ahead in 0 of 3 pairs of independent runs, by 0.000 {known('0.000')}: DOES NOT HOLD"
    assert f"step 25: train accuracy A 0.900, B 0.900; {equal}" in caption
    assert "step 30 was not recorded" in caption
    table = pd.DataFrame(table)
    table.loc[(table.task == "task_A") & (table.seed == 1) & (table.step == 50), "value"] = float("nan")
    _, caption = setting_curves.draw(table, options)
    assert "* cnn, 3 seeds, 1 of A diverged" in caption
    assert "final train - test gap 0.0500, expected at least 0.15: open, too few seeds to judge" in caption
    table.loc[(table.task == "task_A") & (table.seed == 2) & (table.step == 50), "value"] = float("nan")
    _, caption = setting_curves.draw(table, options)
    assert "setting A at the end: test 0.850, train 0.900" in caption  # one seed has no spread
    assert "setting B at the end: test 0.890 ± 0.000" in caption


def test_the_caption_separates_the_gaps_for_new_images_and_new_combinations():
    ends = {"train": (0.9, 0.9), "validation": (0.8, 0.8), "test": (0.4, 0.6)}
    rows = [
        (f"task_{setting}", "cnn", "none", 0.0, seed, step, split, "accuracy", values[seed])
        for setting in "AB"
        for seed in (0, 1)
        for step in (0, 50)
        for split, values in ends.items()
    ]
    settings = {"settings": {"A": "task_A", "B": "task_B"}, "early_steps": [], "expectations": []}
    _, caption = setting_curves.draw(pd.DataFrame(rows, columns=HISTORY), defaults("figures.setting_curves") | settings)
    assert "setting A: 0.100 of the gap arises on new images paired as in training, 0.300 on new combinations" in caption
    assert "setting A at the end: test 0.500 ± 0.141 (median 0.500)" in caption  # sqrt(2 x 0.1^2 / (2 - 1))


def test_the_caption_of_influences_has_medians_of_their_ratios():
    rows = []
    ends = {"A": ([2, 4, 5], [1, 1, 1], [1, 1, 1], [1, 0.5, 0.7]), "B": ([1, 1, 1], [0.2] * 3, [1, 1, 1], [0.6] * 3)}
    for setting, (relevant, redundant, relevant_end, redundant_end) in ends.items():
        for seed in range(3):
            for step, own in ((0, (relevant, redundant)), (10, (relevant_end, redundant_end))):
                for split in ("train", "test"):
                    key = (f"t_{setting}", "m", "none", 0.0, seed, step, split)
                    rows += [(*key, "influence_relevant", own[0][seed]), (*key, "influence_redundant", own[1][seed])]
                    rows += [(*key, "accuracy", 0.5)]
    options = defaults("figures.influence") | {"problems": {"p": {"A": "t_A", "B": "t_B"}}}
    _, caption = influence.draw(pd.DataFrame(rows, columns=HISTORY), options)
    # Ratios in setting A: 1/2, 1/4, 1/5, then 1, 0.5, 0.7; in setting B: 0.2, then 0.6.
    assert (
        "test examples, ratio redundant / relevant at step 0, at its maximum, at step 10: A 0.250, 0.700 (step 10), 0.700; "
        "B 0.200, 0.600 (step 10), 0.600. 2 of 3 seeds of A end above B's median; mean of A minus B's 0.133 (95 % interval "
        "-0.492 to 0.758): open, the interval includes the bound"
    ) in caption
    assert "A 1 at step 0, 0.7 at step 10; times B's: 5.00 at step 0, at most 5.00 (step 0), 1.17 at step 10" in caption
    assert "diverged" not in caption
    for number in (1, 3):
        lost = [(*row[:-1], np.nan) if row[0] == "t_A" and row[4] < number else row for row in rows]
        _, caption = influence.draw(pd.DataFrame(lost, columns=HISTORY), options)
        assert f"setting A: {3 - number} seeds, {number} diverged" in caption
        assert "setting B:" not in caption
        assert caption.count(": open, too few seeds to judge") == 2


def test_the_toy_problems_captions_judge_the_papers_claim():
    figure = FIGURES["resists_toy_seeds"]
    table = small_table(figure)
    ends = (table.split == "test") & (table.metric == "accuracy") & (table.step == table.step.max())
    for share, count in ((0.9, 0), (0.1, 3)):
        table.loc[ends, "value"] = share
        _, caption = boundaries.draw(table, figure["options"])
        assert caption.count(f"less than half at the end in {count} of 3 seeds (95 % interval ") == 2
        assert caption.count("): open, the interval includes the bound") == 2  # 0.025 ** (1 / 3) is less than one half
    steps = FIGURES["resists_toy_steps"]  # one seed
    _, caption = boundaries.draw(small_table(steps), steps["options"])
    assert "holds" not in caption.lower()
    assert "DOES NOT HOLD" not in caption
    table.loc[table.seed == 0, "value"] = np.nan
    drawn, caption = boundaries.draw(table, figure["options"])
    assert caption.count("\n  - 0: diverged") == 2
    assert "nan" not in caption
    assert caption.count("3 of 3 seeds") == 0
    assert caption.count("less than half at the end in 2 of 2 seeds (1 more diverged): open, too few seeds to judge") == 2
    assert drawn.axes[0].get_title() == "seed 0: diverged"
    # It diverged in one of the two models, halfway through training.
    lost = (table.seed == 0) & (table.model == table.model.iloc[0])
    drawn, caption = boundaries.draw(table[~lost | (table.step < table.step.max())], figure["options"])
    assert caption.count("less than half at the end in 2 of 2 seeds (1 more diverged): open, too few seeds to judge") == 2
    assert drawn.axes[0].get_title() == "seed 0: diverged"


def test_a_margin_is_that_of_the_right_class():
    rows = [("grid", "margin at -0.5000 0.2500", 2.0), ("grid", "margin at 0.5000 -1.0000", 3.0), ("grid", "accuracy", 0.5)]
    found = quadrants.coordinates(pd.DataFrame(rows, columns=["split", "metric", "value"]))
    # The margin is that of the right class: Y_1 = 0 to the left of the vertical axis.
    assert found[["first", "second", "score"]].to_numpy().tolist() == [[-0.5, 0.25, -2.0], [0.5, -1.0, 3.0]]


def test_diverged_seeds_are_not_part_of_the_distribution():
    figure = FIGURES["resists_toy_distribution"]
    table = small_table(figure)
    test = (table.split == "test") & (table.metric == "accuracy")
    table.loc[test, "value"] = np.where(table.task[test] == "quadrants", 0.9, 1.0)
    several = pd.concat([table, table.assign(seed=table.seed + 3)])
    _, caption = quadrant_shares.draw(several, figure["options"])
    degree, kind = "(95 % interval 0.351 to 1.000): holds", "(95 % interval 0.000 to 0.459): DOES NOT HOLD"
    assert caption.count(f"the claim in degree, B's fraction minus A's {degree}; in kind, A's fraction {kind}") == 2
    table.loc[(table.task == "quadrants") & (table.seed == 2), "value"] = np.nan
    drawn, caption = quadrant_shares.draw(table, figure["options"])
    assert list(drawn.axes[0].lines[0].get_ydata()) == [0, 0.5, 1, 1]
    assert caption.count("setting A, 2 seeds, 1 diverged: share mean 0.900") == 2
    few = "open, too few seeds to judge"
    assert caption.count(f"in degree, B's fraction minus A's: {few}; in kind, A's fraction: {few}") == 2
    table.loc[table.task == "quadrants", "value"] = np.nan
    _, caption = quadrant_shares.draw(table, figure["options"])
    assert caption.count("setting A: all 3 runs diverged") == 2
    assert "nan" not in caption
    assert "the claim in degree" not in caption
