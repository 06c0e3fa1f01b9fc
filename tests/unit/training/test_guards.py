"""Bugs of plug-ins that would otherwise pass unnoticed are refused before the first step, with the plug-in's name."""

from __future__ import annotations

import inspect
import random
import re
from copy import copy, deepcopy
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch
from support import elsewhere, small

from compositional.evaluation import metrics
from compositional.models import cnn, lstm_attention, lstm_regressor
from compositional.regularizers import smoothness
from compositional.training.effects import same_settings
from compositional.training.guards import check_evaluation, check_training
from compositional.training.loop import train_runs
from compositional.training.plugin_errors import PluginError
from compositional.training.problem import prepare, weight_layout
from compositional.training.state import fresh_state

HERE = inspect.getsourcefile(inspect.currentframe())


def with_penalty(problem, penalty, **functions):
    """A problem whose regularizer has these functions."""
    case = problem("lstm_attention", "smoothness")
    return replace(case, regularizer=replace(case.regularizer, penalty=penalty, **functions))


def with_forward(problem, forward, model=lstm_attention, regularizer=None):
    case = problem(model.__name__.rpartition(".")[2], regularizer)
    return replace(case, model=replace(case.model, forward=forward))


def refusal(case, seeds=(0, 1)):
    """The message with which training of these runs is refused; it must name this file."""
    states = [fresh_state(case, seed, 0.1) for seed in seeds]
    with pytest.raises(PluginError) as caught:
        train_runs(case, states, metrics.measure)
    assert all(state.step == 0 for state in states)
    return str(caught.value)


def distances(step):
    (shown,) = step.named(("encoder_states", "command_states"))
    change, valid = (shown.values[:, :, 1:] - shown.values[:, :, :-1]).square().sum(-1), shown.mask[:, :, 1:]
    return change * valid, valid


def sums_over_runs(step):
    distance, valid = distances(step)
    return distance.sum() / valid.sum((1, 2))


def sums_everything(step):
    distance, valid = distances(step)
    return (distance.sum() / valid.sum()).expand(len(distance))


def counts_over_runs(step):
    distance, valid = distances(step)
    return distance.sum((1, 2)) / valid.sum()


def detached_mean(step):
    distance, valid = distances(step)
    return distance.sum((1, 2)) / valid.sum((1, 2)) * (1 + distance.mean().detach())


def lambda_of_the_first_run(step):
    return smoothness.penalty(step) * step.strength[0]


def largest_of_all_runs(step):
    value = smoothness.penalty(step)
    return value / value.detach().max()


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["alone", "pack"])
@pytest.mark.parametrize(
    "penalty",
    [sums_over_runs, sums_everything, counts_over_runs, detached_mean, lambda_of_the_first_run, largest_of_all_runs],
)
def test_a_penalty_that_mixes_runs_is_refused(problem, penalty, seeds):
    message = refusal(with_penalty(problem, penalty), seeds)
    line = inspect.getsourcelines(penalty)[1]
    assert message.startswith(
        f"{HERE}, line {line}, {penalty.__name__}: the penalty of a run changes when another run is computed"
    )
    assert "values.sum((1, 2))" in message


HEAD = torch.nn.Linear(4, 4)


def test_a_penalty_of_a_layer_that_is_not_the_run_s_is_refused(problem):
    def penalty(step):
        return smoothness.penalty(step) + HEAD.weight.square().sum()

    message = refusal(with_penalty(problem, penalty))
    assert "penalty: its result depends on parameters of shape (4, 4) that do not belong to the run. They are neither" in message


def test_a_penalty_without_a_gradient_is_refused(problem):
    message = refusal(with_penalty(problem, lambda step: smoothness.penalty(step).detach()))
    assert "its result has no gradient. It could not change any weight" in message


def test_a_penalty_in_double_precision_is_refused(problem):
    message = refusal(with_penalty(problem, lambda step: smoothness.penalty(step).double()))
    assert "must be of dtype torch.float32, it is of torch.float64" in message


def test_a_perturbation_that_mixes_runs_is_refused(problem):
    def perturb(step, shown):
        return shown.values + 0.1 * shown.values.mean() * step.normal(shown.values.shape[1:])

    message = refusal(with_penalty(problem, smoothness.penalty, perturb=perturb))
    assert "perturb: the perturbed representation 'word_embedding' of a run changes when another run" in message


def test_runs_that_mix_in_a_perturbed_representation_are_the_models_fault(problem):
    def forward(parameters, weights, batch, tap):
        return cnn.forward(parameters, weights, batch, lambda name, values, mask: tap(name, values - values.mean(), mask))

    message = refusal(with_forward(problem, forward, cnn, "entropy"))
    assert "forward: the representation 'penultimate' of a run changes when another run" in message


def mixing(how):
    """The forward pass of a model that applies `how` to its representations."""

    def forward(parameters, weights, batch, tap):
        def other(name, values, mask):
            return how(tap(name, values, mask))

        other.noise = getattr(tap, "noise", None)
        return lstm_attention.forward(parameters, weights, batch, other)

    return forward


@pytest.mark.parametrize(
    "how",
    [
        lambda values: values - values.mean(),
        lambda values: (values - values.mean((0, 1, 2))) / values.std((0, 1, 2)),  # batch normalization over all runs
        lambda values: values + 0.1 * values.log_softmax(0),
        lambda values: values + 0.1 * values.sum(0, keepdim=True).detach(),
        lambda values: values - values[:1].detach().mean((1, 2), keepdim=True),  # every run reads the first one
    ],
)
def test_a_model_that_mixes_runs_is_refused(problem, how):
    message = refusal(with_forward(problem, mixing(how)))
    assert message.startswith(f"{HERE}, line {inspect.getsourcelines(mixing)[1] + 3}, forward: the output of a run changes when")
    assert "Runs mix" in message


@pytest.mark.parametrize("mixed", [lambda scores: scores, lambda scores: scores[:1]], ids=["all", "the first"])
def test_a_model_that_mixes_runs_only_in_evaluation_is_refused(problem, mixed):
    def forward(parameters, weights, batch, tap):
        scores = cnn.forward(parameters, weights, batch, tap)
        return scores if hasattr(tap, "noise") else scores - mixed(scores).mean()

    case = with_forward(problem, forward, cnn)
    assert "forward: the output in evaluation of a run changes when another run" in refusal(case)
    views = weight_layout(case).views(torch.stack([fresh_state(case, seed, 0).tensors["weights"] for seed in (0, 1)]))
    for runs in (1, 2):
        with pytest.raises(PluginError, match="the output in evaluation of a run changes when another run"):
            check_evaluation(case, {name: values[:runs] for name, values in views.items()}, diverged=False)


def test_a_model_that_reads_the_labels_is_refused(problem):
    def forward(parameters, weights, batch, tap):
        scores = cnn.forward(parameters, weights, batch, tap)
        return scores + torch.nn.functional.one_hot(batch.labels, scores.shape[-1]).to(scores.dtype)

    assert "its output changes with the targets of the batch" in refusal(with_forward(problem, forward, cnn))


def test_a_model_that_reads_numbers_that_it_is_to_predict_is_refused():
    def forward(parameters, weights, batch, tap):
        outputs = lstm_regressor.forward(parameters, weights, batch, tap)
        return outputs + batch.targets.view(outputs.shape)

    case = small.problem("lstm_regressor", None)
    case = replace(case, model=replace(case.model, forward=forward))
    assert "its output changes with the targets of the batch" in refusal(case)


def test_a_decoder_that_copies_the_symbol_that_it_is_to_predict_is_refused(problem):
    def forward(parameters, weights, batch, tap):
        logits = lstm_attention.forward(parameters, weights, batch, tap)
        return logits + torch.nn.functional.one_hot(batch.targets, logits.shape[-1]).to(logits.dtype)

    assert "its output at a step changes with later target symbols" in refusal(with_forward(problem, forward))


def test_outputs_that_depend_on_more_than_the_weights_are_refused(problem):
    passes = count()
    message = refusal(with_forward(problem, mixing(lambda values: values * (1 + 0.001 * next(passes)))))
    assert "forward: the output of a run changes when the same is computed again" in message
    assert "a counter, a running average" in message


@pytest.mark.parametrize("draw", [random.random, np.random.random, lambda: torch.rand(())], ids=["random", "numpy", "torch"])
def test_draws_from_a_global_generator_are_refused_even_if_nothing_changes(problem, draw):
    """As in LayerDrop: comparing two passes would notice them only now and then."""

    def penalty(step):
        return smoothness.penalty(step) * (1 + (draw() < 1e-9))

    for case, name in (
        (with_forward(problem, mixing(lambda values: values * (1 + (draw() < 1e-9)))), "forward"),
        (with_penalty(problem, penalty), "penalty"),
    ):
        assert f"{name}: it draws random numbers from a global generator of Python, NumPy or PyTorch" in refusal(case)


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        (np.random.random, "it draws random numbers from a global generator of Python, NumPy or PyTorch"),
        (np.random.default_rng(None).random, "bias differs when it is called twice with one seed"),
    ],
)
@pytest.mark.parametrize("function", ["initialize", "buffers"])
def test_weights_and_buffers_that_no_seed_determines_are_refused(problem, function, draw, complaint):
    case = problem("cnn")

    def drawn(*given):
        return getattr(case.model, function)(*given) | {"bias": torch.tensor([draw()], dtype=torch.float32)}

    message = refusal(replace(case, model=replace(case.model, **{function: drawn})))
    assert f"{HERE}, line {inspect.getsourcelines(drawn)[1]}, drawn: {complaint}. No seed determines them" in message


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (lambda value, step: value[:, None].expand(-1, 64), r"must be of shape \(1,\), it is of shape \(1, 64\)"),
        (lambda value, step: value.sum(), r"must be of shape \(1,\), it is of shape \(\)"),
        (lambda value, step: value.sum().item(), r"must be a tensor of shape \(1,\), it is of type float"),
        (lambda value, step: value * float("nan"), "has numbers that are not finite"),
        (lambda value, step: (value - value).log(), "has numbers that are not finite"),
        (lambda value, step: value.to("meta"), "must be on cpu, it is on meta"),
    ],
)
def test_wrong_return_values_of_a_penalty_are_refused(problem, returned, complaint):
    def penalty(step):
        return returned(smoothness.penalty(step), step)

    message = refusal(with_penalty(problem, penalty))
    assert re.search(f"penalty: its result, one number per run, {complaint}.*Usual cause", message)


def changes_weights(step):
    for weight in step.weights.values():
        weight.data.mul_(0.9)
    return smoothness.penalty(step)


def changes_options(step):
    step.parameters["calls"] = step.parameters.get("calls", 0) + 1
    return smoothness.penalty(step)


def changes_states(step):
    step.representations[0].values.data.mul_(0.5)
    return smoothness.penalty(step)


def changes_outputs(step):
    step.outputs.data.mul_(0.5)
    return smoothness.penalty(step)


def changes_the_batch(step):
    value = smoothness.penalty(step)
    step.batch.inputs.zero_()
    return value


def counts_on_itself(step):
    counts_on_itself.steps = getattr(counts_on_itself, "steps", 0) + 1
    return smoothness.penalty(step) * (2 if counts_on_itself.steps > 1000 else 1)


CALLS = 0


def changes_globals(step):
    global CALLS
    CALLS += 1
    return smoothness.penalty(step)


@pytest.mark.parametrize(
    ("penalty", "complaint"),
    [
        (changes_weights, "it changes .*output.bias.* of its run. Only the optimizer"),
        (changes_options, "it changes calls. A resumed run"),
        (changes_globals, "it changes CALLS. A resumed run"),
        (changes_states, "it changes .* of its step"),
        (changes_outputs, "it changes outputs of its step"),
        (changes_the_batch, "it changes inputs of its batch"),
        (counts_on_itself, "it changes steps. A resumed run"),
    ],
)
def test_a_penalty_that_changes_what_a_run_consists_of_is_refused(problem, penalty, complaint):
    assert re.search(f"{penalty.__name__}: {complaint}", refusal(with_penalty(problem, penalty)))


@pytest.mark.parametrize(
    ("name", "change", "value"),
    [
        ("get_num_threads", torch.set_num_threads, 3),
        ("get_default_dtype", torch.set_default_dtype, torch.float64),
        ("get_float32_matmul_precision", torch.set_float32_matmul_precision, "medium"),
        ("are_deterministic_algorithms_enabled", torch.use_deterministic_algorithms, True),
        ("is_grad_enabled", torch.set_grad_enabled, False),
    ],
)
def test_a_plug_in_that_changes_a_setting_of_the_process_is_refused(problem, name, change, value):
    before = getattr(torch, name)()
    assert before != value
    try:
        with (
            pytest.raises(PluginError, match=rf"changes torch\.{name}\(\) from {before} to {value}"),
            same_settings(problem("cnn")),
        ):
            change(value)
    finally:
        change(before)


def test_a_regularizer_that_changes_the_training_set_is_refused(problem):
    def prepares(parameters, split):
        split.input_lengths.sub_(1)

    case = with_penalty(problem, smoothness.penalty, prepare=prepares)
    case = replace(case, splits=deepcopy(case.splits))  # other tests use the same data
    with pytest.raises(PluginError, match="prepares: it changes input_lengths of its training set"):
        prepare(case)


def test_a_regularizer_that_shows_fewer_examples_is_refused(problem):
    """The loss would be divided by the number that there should be."""

    case = problem("cnn", "additivity")

    def fewer(batch):
        return case.splits["train"].batch(torch.zeros(len(batch.images), 2, dtype=torch.int64))

    message = refusal(replace(case, regularizer=replace(case.regularizer, watch=fewer)))
    assert re.search(r"fewer: the outputs of its batch have the sizes \(2, ", message)


def test_a_regularizer_that_shows_no_batch_is_refused(problem):
    case = problem("cnn", "additivity")
    message = refusal(replace(case, regularizer=replace(case.regularizer, watch=lambda batch: None)))
    assert "its result must be a batch, it is of type NoneType. Write return replace(batch, images=...)" in message


def test_a_gradient_that_is_not_finite_is_refused(problem):
    """The norm of zeros is 0 and its gradient is NaN: the run would diverge at its first step without stating why."""

    def penalty(step):
        distance, _ = distances(step)
        return (distance * 0).sum((1, 2)).sqrt()

    # It names the penalty, and the model only if the gradient of the task's loss is the wrong one.
    assert f"{HERE}, line" in (said := refusal(with_penalty(problem, penalty)))
    assert "penalty: the gradient through it has numbers that are not finite" in said

    def forward(parameters, weights, batch, tap):
        logits = lstm_attention.forward(parameters, weights, batch, tap)
        return logits + (logits * 0).square().sum().sqrt()

    said = refusal(with_forward(problem, forward, regularizer="smoothness"))
    assert "forward: the gradient through it has numbers that are not finite" in said


@pytest.mark.parametrize("frozen", [False, True])
def test_a_perturbation_that_the_model_does_not_use_is_refused(problem, frozen):
    """The term would train as the plain run does."""

    def forward(parameters, weights, batch, tap):
        def unused(name, values, mask):
            tap(name, values.detach() if frozen else values, mask)
            return values

        return cnn.forward(parameters, weights, batch, unused)

    said = refusal(with_forward(problem, forward, cnn, "entropy"))
    assert "forward: its result does not depend on what the regularizer makes of penultimate" in said


def test_a_perturbation_of_numbers_without_a_gradient_is_allowed(problem):
    """As of frozen word vectors."""

    def forward(parameters, weights, batch, tap):
        return cnn.forward(parameters, weights, batch, lambda name, values, mask: tap(name, values.detach(), mask))

    case = with_forward(problem, forward, cnn, "entropy")
    check_training(case, [fresh_state(case, 0, 0.1)], None)


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (lambda logits: logits[0], r"must be of shape \(1, \d+, \d+\), it is of shape \(\d+, \d+\)"),
        (lambda logits: logits[..., :-1], "must be of shape"),
        (lambda logits: logits.log(), "has numbers that are not finite"),
        (lambda logits: logits.to("meta"), "must be on cpu, it is on meta"),
        (lambda logits: (logits, None), "must be a tensor .* it is of type tuple"),
    ],
)
def test_wrong_return_values_of_a_model_are_refused(problem, returned, complaint):
    def forward(parameters, weights, batch, tap):
        return returned(lstm_attention.forward(parameters, weights, batch, tap))

    assert re.search(f"forward: its result {complaint}", refusal(with_forward(problem, forward)))


def test_wrong_representations_of_a_model_are_refused(problem):
    def renamed(parameters, weights, batch, tap):
        return cnn.forward(parameters, weights, batch, lambda name, values, mask: tap(f"{name}s", values, mask))

    def without_runs(parameters, weights, batch, tap):
        tap("penultimate", torch.zeros(3, 64, 5), None)
        return cnn.forward(parameters, weights, batch, tap)

    for forward, complaint in ((renamed, "does not show"), (without_runs, r"the representation 'penultimate' must be of shape")):
        assert re.search(f"{forward.__name__}: .*{complaint}", refusal(with_forward(problem, forward, cnn, "entropy")))


def test_wrong_draws_and_losses_of_a_kind_are_refused(problem, monkeypatch):
    case = problem("cnn")
    split = type(case.splits["train"])
    draws = {
        "must give row numbers": lambda self, key, steps, size: np.zeros(size, dtype=np.int64),
        "it gives float64 (3, 64) from 0.0": lambda self, key, steps, size: np.zeros((len(steps), size)),
        "it gives int64 (3, 64) from -1": lambda self, key, steps, size: np.full((len(steps), size), -1),
        "draws other rows for step 2": lambda self, key, steps, size: np.arange(len(steps) * size).reshape(-1, size) % 7,
    }
    for complaint, draw in draws.items():
        monkeypatch.setattr(split, "draw", draw)
        assert complaint in refusal(case)
    monkeypatch.undo()
    batch = type(case.splits["train"].batch(torch.zeros(1, 2, dtype=torch.int64)))
    losses = batch.losses
    monkeypatch.setattr(
        batch, "losses", lambda self, scores, loss: losses(self, scores, loss) / losses(self, scores, loss).mean()
    )
    assert "the task loss of a run changes when another run is computed next to it" in refusal(case)
    monkeypatch.setattr(batch, "losses", lambda self, scores, loss: losses(self, scores, loss).double())
    assert "its result must be of dtype torch.float32, it is of torch.float64" in refusal(case)
    monkeypatch.undo()
    monkeypatch.setattr(batch, "example_losses", lambda self, losses: losses.mean(1, keepdim=True))
    assert "its result must be one value per run and example" in refusal(case)


@pytest.mark.parametrize(
    ("metrics_of", "complaint"),
    [
        (
            lambda self, scores: {"right": self.correct(scores).float().mean(1, keepdim=True)},
            "its 'right' must be one value per run",
        ),
        (
            lambda self, scores: {"right": self.correct(scores).float().mean()},
            "its 'right' must be one value per run and example",
        ),
        (lambda self, scores: {"loss": self.correct(scores).float()}, "it gives 'loss'"),
    ],
)
def test_wrong_metrics_of_a_kind_are_refused(problem, monkeypatch, metrics_of, complaint):
    case = problem("cnn")
    batch = type(case.splits["train"].batch(torch.zeros(1, 2, dtype=torch.int64)))
    monkeypatch.setattr(batch, "metrics", metrics_of)
    assert complaint in refusal(case)


@pytest.mark.parametrize(("examples", "cause"), [(5, "an even number of training examples"), (6, "no multiple of 16")])
def test_an_odd_number_of_training_examples_is_not_blamed_on_the_model(problem, examples, cause):
    def rounds(parameters, weights, batch, tap):
        """Other last bits next to other runs in evaluation, as some processors compute them for an odd number of examples."""
        result = cnn.forward(parameters, weights, batch, tap)
        return result if torch.is_grad_enabled() or len(result) == 1 else result * (1 + 2e-7)

    case = with_forward(problem, rounds, cnn)
    few = copy(case.splits["train"])
    for name, values in vars(few).items():
        if isinstance(values, torch.Tensor) and len(values) == len(few):
            setattr(few, name, values[:examples])
    message = refusal(replace(case, splits=case.splits | {"train": few}))
    assert ("in a batch of all 5 training examples" in message) == (examples == 5)
    assert cause in message


def test_a_diverged_run_or_an_infinite_lambda_is_not_blamed_on_a_plugin(problem):
    case = problem("cnn", "additivity")
    check_training(case, [fresh_state(case, 0, 1e39)], None)
    lost = fresh_state(case, 0, 0.1)
    lost.step, lost.tensors["weights"] = 4, lost.tensors["weights"] * float("inf")
    check_training(case, [lost], None)
    weights = weight_layout(case).views(lost.tensors["weights"][None])
    check_evaluation(case, weights, diverged=True)
    with pytest.raises(PluginError, match="not finite"):
        check_evaluation(case, weights, diverged=False)


@pytest.mark.parametrize("width", [1, 3])
def test_runs_that_are_computed_one_after_the_other_are_checked_too(problem, width):
    """They cannot mix, but their results must be right and repeatable."""
    case = problem("cnn", "entropy")
    case.model, passes = replace(case.model, WIDTH={"cpu": width}), count(1)
    check_training(case, [fresh_state(case, seed, 0.1) for seed in range(4)], None)
    for forward, complaint in (
        (lambda *given: cnn.forward(*given) * float("nan"), "not finite"),
        (lambda *given: cnn.forward(*given) * next(passes), "changes when the same is computed again"),
    ):
        broken = replace(case, model=replace(case.model, forward=forward))
        with pytest.raises(PluginError, match=complaint):
            check_training(broken, [fresh_state(case, 0, 0.1)], None)


@pytest.mark.parametrize(("model", "regularizer"), [("lstm_attention", "smoothness"), ("cnn", "entropy")])
def test_on_a_device_correct_plugins_pass_and_tensors_of_the_host_are_refused(problem, device, model, regularizer):
    case = problem(model, regularizer)
    with elsewhere.there():
        case = device(case)
        check_training(case, [fresh_state(case, seed, 0.1) for seed in (0, 1)], None)
        left = replace(case.regularizer, penalty=lambda step: case.regularizer.penalty(step).cpu())
        with pytest.raises(PluginError, match=r"its result, one number per run, must be on elsewhere:0, it is on cpu"):
            check_training(replace(case, regularizer=left), [fresh_state(case, 0, 0.1)], None)
