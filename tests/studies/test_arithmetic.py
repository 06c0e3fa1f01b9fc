"""The study of the published attempt on arithmetic expressions: its data, its leak and its model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.trained import independent, train, weights_of
from torch import nn

from compositional import randomness
from compositional.datasets.arithmetic_expressions import Expression
from compositional.evaluation import metrics
from compositional.evaluation import smoothness as changes
from compositional.kinds.sequence_regression import SequenceRegressionSplit
from compositional.layers.tap import silent_tap
from compositional.plugins import defaults
from compositional.regularizers import Representation, Step, additivity, recombination, smoothness
from compositional.stages.shared.trained_runs import read_problem
from compositional.stages.split import audit, make_split
from compositional.tasks import arithmetic
from compositional.training.problem import Problem, initial_weights

TERMS = [
    ("smoothness", {"taken_of": "embeddings", "over_width": "mean"}),
    ("entropy", {}),
    ("recombination", {}),
    ("additivity", {}),
]


def build(**options):
    return arithmetic.build(None, defaults("tasks.arithmetic") | options)


@pytest.fixture
def problem(tmp_path):
    """Factory of small problems: problem(task options, model options, term, its options)."""

    def make(task: dict, model: dict | None = None, term: str | None = None, options: dict | None = None) -> Problem:
        parameters = defaults("tasks.arithmetic") | {"train_examples": 60, "test_examples": 24} | task
        make_split("small", "tasks.arithmetic", parameters, tmp_path, tmp_path / "split")
        settings = {"batch_size": 16, "steps": 6, "record_every": 3, "decay": 1.0, "clip": None, "loss": "squared"}
        family = {
            "task": "small",
            "model": "lstm_regressor",
            "model_module": "models.lstm_regressor",
            "model_parameters": defaults("models.lstm_regressor") | {"width": 32} | (model or {}),
            "settings": defaults("training.settings") | settings,
        }
        if term:
            family |= {"regularizer_module": f"regularizers.{term}"}
            family |= {"regularizer_parameters": defaults(f"regularizers.{term}") | (options or {})}
        return read_problem(tmp_path / "split", family, "cpu")

    return make


@pytest.mark.parametrize(
    ("numbers", "operators", "text", "value"),
    [
        ((3, 4), "+", "3+4", 7),
        ((3, 4), "/", "3/4", 0.75),
        ((2, 3, 4), "+*", "2+3*4", 14),
        ((2, 3, 4), "*+", "2*3+4", 10),
        ((8, 6, 4), "-/", "8-6/4", 6.5),
        ((8, 2, 4), "//", "8/2/4", 1),
        ((9, 2, 3), "--", "9-2-3", 4),
        ((2, 3, 4, 5, 6), "*+*-", "2*3+4*5-6", 20),
        ((12, 3, 10), "/*", "12/3*10", 40),
    ],
)
def test_products_and_quotients_come_first_and_all_else_from_left_to_right(numbers, operators, text, value):
    expression = Expression(numbers, operators)
    assert (str(expression), expression.value) == (text, value)


def test_sums_and_products_have_the_same_value_in_reverse_order():
    expression = Expression((12, 3, 4, 5), "+*+")
    assert str(expression.mirrored) == "5+4*3+12"
    assert expression.mirrored.value == expression.value == 29


def test_training_has_nearly_all_test_expressions_if_both_are_drawn_independently():
    """99.8 % are expected: 1 - (161/162)^1000. Of 200 draws 115 are distinct, 162 (1 - (161/162)^200): the review's 57 %."""
    shares, distinct = [], []
    for draw in range(20):
        members, about = build(draw=draw)
        (count,) = audit(members, about["disjoint"])
        references = about["references"]
        assert references["examples in training"] == count["share"]
        assert references["distinct inputs in training"] == count["distinct_share"]
        assert references["distinct inputs in training per example"] == count["distinct_in_training"] / 200
        assert (count["items"], count["by_design"]) == (200, "drawn independently of the training set, as published")
        shares.append(count["share"])
        distinct.append(count["distinct_items"] / count["items"])
        assert count["distinct_items"] == len(set(members["test"]["input"]))
    assert np.mean(shares) == pytest.approx(1 - (161 / 162) ** 1000, abs=0.003)
    assert np.mean(distinct) == pytest.approx(162 * (1 - (161 / 162) ** 200) / 200, abs=0.01)


def test_only_sums_and_products_fit_the_published_loss_before_training():
    """An untrained network predicts about 0, so its loss is the mean square of the values: about 520 to 560 in the paper."""
    numbers = range(1, 10)
    squares = {
        operator: np.mean([Expression(pair, operator).value ** 2 for pair in product(numbers, numbers)]) for operator in "+-*/"
    }
    means = {used: np.mean([squares[operator] for operator in used]) for used in ("+", "+-", "+*", "+-*", "+-*/")}
    assert {used: round(float(mean)) for used, mean in means.items()} == {"+": 113, "+-": 63, "+*": 558, "+-*": 376, "+-*/": 284}


def test_expressions_are_drawn_uniformly():
    members, about = build(train_examples=16200)
    counts = Counter(members["train"]["input"])
    assert len(counts) == 162
    assert 50 < min(counts.values()) < max(counts.values()) < 150  # 100 are expected, with standard deviation 10
    assert Counter(members["train"]["form"])["+"] == pytest.approx(8100, abs=5 * 64)
    assert about["in_distribution"] == "train"
    row = members["train"][0]
    first, operator, second = row["input"]
    assert row["target"] == {"+": int(first) + int(second), "*": int(first) * int(second)}[operator]
    lengths = Counter(map(len, build(chain=4, train_examples=4000)[0]["train"]["form"]))
    assert set(lengths) == {1, 2, 3, 4}
    assert max(abs(count - 1000) for count in lengths.values()) < 150


def steps(member) -> set:
    """Single-digit operands with their operator."""
    return {text[place : place + 3] for text in member["input"] for place in range(0, len(text) - 2, 2)}


def test_held_out_pairs_occur_in_no_training_expression():
    members, about = build(held_out="pairs")
    assert Counter(members["test"]["category"]) == {"sum": 16, "product": 16}  # a fifth of 81 pairs each
    assert not steps(members["test"]) & steps(members["train"])
    assert about["in_distribution"] == "in_distribution"
    leak, held_out = audit(members, about["disjoint"])
    assert (leak["member"], leak["items"]) == ("in_distribution", 200)
    assert leak["share"] > 0.97
    assert (held_out["items"], held_out["in_training"]) == (32, 0)
    mirrored = {text[::-1] for text in members["test"]["input"]}
    assert mirrored & set(members["train"]["input"])
    members, _ = build(held_out="unordered_pairs")
    mirrored = {text[::-1] for text in members["test"]["input"]}
    assert mirrored == set(members["test"]["input"])
    assert not mirrored & set(members["train"]["input"])


def test_held_out_pairs_occur_in_no_training_chain():
    members, _ = build(held_out="pairs", chain=3)
    withheld = set(build(held_out="pairs")[0]["test"]["input"])
    assert not withheld & steps(members["train"])
    assert len(members["test"]) == 200
    assert all(withheld & steps({"input": [text]}) for text in members["test"]["input"])


def test_recombinations_consist_of_numbers_and_operators_that_training_has():
    members, _ = build(held_out="recombination")
    first = {text[0] for text in members["test"]["input"]}
    assert sorted(members["test"]["input"]) == sorted(f"{own}*{other}" for own in first for other in range(1, 10))
    assert len(first) == 2
    shown = [text for text in members["train"]["input"] if text[0] in first]
    assert {text[1] for text in shown} == {"+"}
    assert first <= {text[2] for text in members["train"]["input"] if text[1] == "*"}


def test_test_chains_are_longer_than_training_chains():
    members, about = build(held_out="length", chain=2)
    assert {len(form) for form in members["train"]["form"]} == {1, 2}
    assert Counter(members["test"]["category"]).keys() == {"3 operators", "4 operators"}
    assert audit(members, about["disjoint"])[1]["in_training"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smallest": 5, "largest": 4}, "smallest must be at most largest \\(4\\); it is 5"),
        ({"held_out": "length", "chain": 4}, "chain must be below that; it is 4"),
        ({"held_out": "recombination", "operators": ["+"]}, "operators is \\['\\+'\\]"),
    ],
)
def test_impossible_tasks_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)


def test_different_draws_have_different_expressions_and_equal_draws_the_same():
    first, again, other = (build(draw=draw, held_out="pairs")[0] for draw in (3, 3, 4))
    for name in ("train", "in_distribution", "test"):
        assert first[name]["input"][:] == again[name]["input"][:]
        assert first[name]["input"][:] != other[name]["input"][:]


def small_split(*texts, width=1):
    expressions = [Expression(tuple(int(c) for c in text[::2]), text[1::2]) for text in texts]
    return SequenceRegressionSplit(
        list(texts),
        np.array([own.value for own in expressions]),
        [own.operators for own in expressions],
        "0123456789+-*/",
        width,
        "cpu",
        equivalents=[str(own.mirrored) for own in expressions],
    )


def decoded(batch):
    return [
        "".join("0123456789+-*/"[token] for token in row[:length])
        for row, length in zip(batch.inputs[0], batch.input_lengths[0], strict=True)
    ]


def test_rows_exchange_their_first_operand_with_a_partner_of_the_same_form():
    texts = ["1+2", "3+4", "5*6+7", "8*9+1", "2*3", "4+5"]
    batch = small_split(*texts).batch(torch.arange(6)[None])
    assert decoded(batch) == texts
    assert decoded(batch.recombine()) == ["1+4", "3+2", "5*9+1", "8*6+7", "2*3", "4+5"]
    assert decoded(batch.exchanged()) == ["2+1", "4+3", "7+6*5", "1+9*8", "3*2", "5+4"]
    assert batch.correct(torch.tensor([[3.49, 7.51, 37, 73.4, 6.6, 8.4]])[..., None]).tolist() == [[1, 0, 1, 1, 0, 0]]
    with pytest.raises(ValueError, match="smallest and largest must have equally many digits"):
        small_split(*texts, width=None).batch(torch.arange(6)[None]).recombine()


def test_every_epoch_has_all_examples_and_draws_do_not_depend_on_the_first_step():
    split = small_split(*build(train_examples=40)[0]["train"]["input"])
    drawn = split.draw(7, range(6), 16)  # two epochs of three batches
    for epoch in (drawn[:3], drawn[3:]):
        assert set(epoch.ravel()) == set(range(40))
        assert max(Counter(epoch.ravel().tolist()).values()) == 2  # 48 places for 40 examples
    assert not np.array_equal(drawn[:3], drawn[3:])
    assert np.array_equal(drawn, np.concatenate([split.draw(7, range(2), 16), split.draw(7, range(2, 6), 16)]))
    forms = split.sorted_forms[drawn]
    assert (np.diff(forms) >= 0).all()


def reference(parameters: dict, weights: dict, split: SequenceRegressionSplit) -> torch.Tensor:
    """Outputs of `lstm_regressor` made of PyTorch's modules, example by example: (n,)."""
    width, own = parameters["width"], {name: tensor[0] for name, tensor in weights.items()}
    embedding = nn.Embedding.from_pretrained(own["embedding"])
    cell = (nn.LSTM if parameters["cell"] == "lstm" else nn.RNN)(width, width, batch_first=True)
    if parameters["cell"] == "lstm":
        into, keep, out, candidate = torch.arange(4 * width).chunk(4)
        order = torch.cat([into, keep, candidate, out])
        values = {"weight_ih_l0": own["cell.input"].T[order], "weight_hh_l0": own["cell.recurrent"].T[order]}
        values["bias_ih_l0"] = own["cell.bias"][order]
    else:
        values = {"weight_ih_l0": own["cell.input.weight"].T, "weight_hh_l0": own["cell.recurrent"].T}
        values["bias_ih_l0"] = own["cell.input.bias"]
    cell.load_state_dict(values | {"bias_hh_l0": torch.zeros_like(values["bias_ih_l0"])})

    def linear(name: str, values: torch.Tensor) -> torch.Tensor:
        return values @ own[f"{name}.weight"] + own[f"{name}.bias"]

    outputs = []
    for tokens, length in zip(split.inputs, split.lengths.tolist(), strict=True):
        states, _ = cell(embedding(tokens[None, :length]))
        read = states[0, -1]
        if parameters["attention"] == "pooling":
            read = (linear("score", states[0]).softmax(0) * states[0]).sum(0)
        elif parameters["attention"] == "self_attention":
            asked = [linear("query", states[:, -1:]), linear("key", states), linear("value", states)]
            read = nn.functional.scaled_dot_product_attention(*asked)[0, 0]
        outputs.append(linear("output", read))
    return torch.cat(outputs)


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
@pytest.mark.parametrize("attention", ["none", "pooling", "self_attention"])
def test_the_model_equals_pytorchs_modules(problem, cell, attention):
    case = problem({"chain": 3}, {"cell": cell, "attention": attention})
    runs = [{name: tensor[None] for name, tensor in initial_weights(case, seed).items()} for seed in (0, 1)]
    packed = {name: torch.cat([one[name] for one in runs]) for name in runs[0]}
    split = case.splits["train"]
    outputs = case.model.forward(case.model_parameters, packed, split.batch(torch.arange(60).expand(2, -1)), silent_tap)
    assert outputs.shape == (2, 60, 1)
    with torch.no_grad():
        for own, weights in zip(outputs, runs, strict=True):
            torch.testing.assert_close(own[:, 0], reference(case.model_parameters, weights, split))
    assert (outputs[0] - outputs[1]).abs().min() > 0


MODELS = [
    {},
    {"cell": "rnn"},
    {"attention": "pooling", "dropout": 0.5},
    {"attention": "self_attention", "width": 16},
    {"cell": "rnn", "attention": "pooling"},
]


@pytest.mark.parametrize(
    ("task", "model", "term", "options"),
    [({"held_out": "pairs"}, model, None, None) for model in MODELS]
    + [({"held_out": "length", "chain": 2}, {"dropout": 0.2}, *term) for term in TERMS],
)
def test_a_run_does_not_depend_on_its_neighbors(problem, task, model, term, options):
    case = problem(task, model, term, options)
    together = independent(case, [(0, 0.1), (1, 0.1), (0, 1.0), (2, 0.3), (5, 10.0)], alone=(0, 3))
    assert not torch.equal(together[0].tensors["weights"], together[1].tensors["weights"])


@pytest.mark.parametrize(("term", "options"), TERMS)
def test_lambda_zero_of_any_term_equals_none(problem, term, options):
    (plain,) = train(problem({}), [(0, 0.0)])
    zero, _ = train(problem({}, None, term, options), [(0, 0.0), (0, 0.5)])
    assert torch.equal(zero.tensors["weights"], plain.tensors["weights"])


def test_steps_equal_those_of_the_published_training(problem):
    """With squared error, Adam, no clipping and no decay, the weights after six steps equal those of PyTorch's optimizer."""
    case = problem({}, {"width": 16})
    (state,) = train(case, [(3, 0.0)])
    weights = {name: tensor[None].clone().requires_grad_() for name, tensor in initial_weights(case, 3).items()}
    optimizer = torch.optim.Adam(weights.values(), lr=case.settings["learning_rate"])
    for rows in case.splits["train"].draw(randomness.derive("small", "lstm_regressor", 3, "batches"), range(6), 16):
        optimizer.zero_grad()
        batch = case.splits["train"].batch(torch.from_numpy(rows)[None])
        outputs = case.model.forward(case.model_parameters, weights, batch, silent_tap)
        nn.functional.mse_loss(outputs[..., 0], batch.targets).backward()
        optimizer.step()
    trained = weights_of(case, [state])
    for name, tensor in weights.items():
        torch.testing.assert_close(trained[name], tensor.detach(), rtol=1e-4, atol=1e-5)


def step_of(batch, shown, again=None, outputs=None, **options):
    return Step(
        parameters=options,
        batch=batch,
        active=torch.ones(1),
        normal=torch.zeros,
        again=again,
        outputs=outputs,
        representations=[Representation(name, values, batch.input_mask) for name, values in shown.items()],
    )


def test_smoothness_is_the_mean_square_of_changes_of_the_chosen_representation():
    """Two expressions of 3 and 5 symbols have 2 and 4 steps. Embeddings rise by 1 per step, states by 2; both have width 4."""
    batch = small_split("1+2", "1+2*3").batch(torch.arange(2)[None])
    rise = torch.arange(5.0)[:, None].expand(1, 2, 5, 4)
    shown = {"word_embedding": rise, "encoder_states": 2 * rise}
    for taken_of, over_width, value in (
        ("embeddings", "mean", 1),
        ("embeddings", "sum", 4),
        ("states", "mean", 4),
        ("states", "sum", 16),
    ):
        step = step_of(batch, shown, taken_of=taken_of, over_width=over_width)
        assert smoothness.penalty(step).tolist() == [value]


def test_smoothness_of_a_representation_that_the_model_lacks_is_refused():
    batch = small_split("1+2").batch(torch.arange(1)[None])
    step = step_of(batch, {"penultimate": torch.zeros(1, 1, 3, 4)}, taken_of="embeddings", over_width="mean")
    with pytest.raises(ValueError, match="needs a model with word_embedding, this one has penultimate"):
        smoothness.penalty(step)


def test_smoothness_is_measured_in_plain_runs_too(problem):
    case = problem({"chain": 2})
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    (found,) = changes.measure(case, weights)
    table, split = weights["embedding"][0].double(), case.splits["train"]
    squares = [
        (table[row[place + 1]] - table[row[place]]).square().mean().item()
        for row, length in zip(split.inputs, split.lengths.tolist(), strict=True)
        for place in range(length - 1)
    ]
    assert found["train", "change of word_embedding"] == pytest.approx(np.mean(squares), rel=1e-6)
    assert found.keys() == {("train", "change of word_embedding"), ("train", "change of encoder_states")}
    constant = replace(case.model, calibrate=lambda parameters, weights, batches: {"embedding": torch.ones(1, *table.shape)})
    (calibrated,) = changes.measure(replace(case, model=constant), weights)
    assert calibrated["train", "change of word_embedding"] == 0


def test_recombination_is_zero_for_a_function_that_ignores_the_order():
    batch = small_split("1+2", "3*4", "2*3+4").batch(torch.arange(3)[None])

    def order_blind(other):
        return (other.inputs * other.input_mask).sum(-1, keepdim=True).float(), []

    def first_symbol(other):
        return other.inputs[..., :1].float(), []

    for function, value in ((order_blind, 0), (first_symbol, (1 + 1 + 4) / 3)):
        step = step_of(batch, {}, again=function, outputs=function(batch)[0], exchange="lexicon")
        assert recombination.penalty(step).item() == pytest.approx(value)


def test_additivity_is_zero_for_a_sum_of_parts_but_not_for_a_product():
    batch = small_split("1*2", "3*4").batch(torch.arange(2)[None])

    def shown(function):
        def again(other):
            first, second = other.inputs[..., 0].float(), other.inputs[..., 2].float()
            return None, [Representation("penultimate", function(first, second)[..., None], None)]

        return SimpleNamespace(again=again)

    for function, value in (((lambda a, b: a + 5 * b), 0), ((lambda a, b: a * b), (1 * 2 + 3 * 4 - 1 * 4 - 3 * 2) ** 2)):
        again = shown(function).again
        step = step_of(batch, {}, again=again)
        step.representations = again(batch)[1]
        assert additivity.penalty(step).tolist() == [value]


def test_metrics_of_a_trained_run_show_on_which_operator_it_fails(problem):
    case = problem({"held_out": "pairs"})
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    (found,) = metrics.measure(case, weights)
    assert {metric for split, metric in found if split == "test"} == {
        "loss",
        "accuracy",
        "accuracy of sum",
        "accuracy of product",
    }
    assert json.dumps(case.about["component_width"]) == "1"
