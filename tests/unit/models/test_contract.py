"""What every model must do, alone and with every compatible regularizer, on small problems (support/small.yaml)."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest
import torch
from support import small
from support.trained import same, train, unguarded, untrained

from compositional.evaluation import learning_curves
from compositional.evaluation.decoding import next_symbols
from compositional.training.loop import train_runs
from compositional.training.problem import initial_weights, width_of
from compositional.training.state import State, fresh_state

MODELS = small.names("models")
COMBINATIONS = list(small.combinations())
GUARDED = small.of_each_kind()
STRENGTH = 0.1
RUNS = [(0, STRENGTH), (1, STRENGTH), (0, 5 * STRENGTH), (0, 0.0)]


@cache
def together(model: str, regularizer: str | None) -> list[State]:
    """RUNS trained as one pack; without a regularizer the first, third and fourth run are the same. Every model passes the guards
    here, and every regularizer with a model of each kind."""
    with nullcontext() if regularizer is None or (model, regularizer) in GUARDED else unguarded():
        return train(small.problem(model, regularizer), RUNS)


@pytest.mark.parametrize(("model", "regularizer"), [*((model, None) for model in MODELS), *COMBINATIONS])
def test_a_run_does_not_depend_on_its_neighbors(model, regularizer):
    beside = together(model, regularizer)[1]
    with unguarded():
        (alone,) = train(small.problem(model, regularizer), RUNS[1:2])
    assert same(alone, beside)
    assert alone.diverged_at is None


@pytest.mark.parametrize("model", MODELS)
def test_runs_differ_if_and_only_if_their_seeds_differ(model):
    """Fitted models have no randomness, so their runs are all equal."""
    first, second, again, _ = together(model, None)
    assert same(first, again)
    fitted = small.problem(model).model.fit is not None
    assert torch.equal(first.tensors["weights"], second.tensors["weights"]) == fitted


@pytest.mark.parametrize("model", MODELS)
def test_the_seed_and_the_task_decide_the_weights_that_a_run_begins_with(model):
    case = small.problem(model)
    if case.model.fit is not None:
        pytest.skip("a fitted model has no initial weights")
    drawn = [initial_weights(one, seed) for one, seed in ((case, 0), (case, 0), (case, 1), (replace(case, task="other"), 0))]
    first, again, *others = (torch.cat([values.flatten() for values in own.values()]) for own in drawn)
    assert torch.equal(first, again)
    assert not any(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("model", MODELS)
def test_training_changes_the_weights_and_records_the_loss(model):
    state = together(model, None)[0]
    assert not torch.equal(state.tensors["weights"], fresh_state(small.problem(model), 0, STRENGTH).tensors["weights"])
    assert "loss" in {metric for _, _, metric, _ in state.history}


@pytest.mark.parametrize("model", MODELS)
def test_a_run_resumed_from_a_checkpoint_has_the_same_bits(model):
    """One of two runs is killed after its first record; the other one catches up, and both continue together."""
    case, uninterrupted = small.problem(model), together(model, None)

    class KilledError(Exception):
        pass

    def kill(members):
        raise KilledError

    states = [fresh_state(case, seed, STRENGTH) for seed in (0, 1)]
    with unguarded():
        with pytest.raises(KilledError):
            train_runs(case, states[:1], learning_curves.measure, kill)
        train_runs(case, states := copy.deepcopy(states), learning_curves.measure)
    assert all(same(left, right) for left, right in zip(uninterrupted, states, strict=False))


@pytest.mark.parametrize(("model", "regularizer"), COMBINATIONS)
def test_lambda_zero_of_any_regularizer_equals_none_and_a_positive_lambda_does_not(model, regularizer):
    plain, runs = together(model, None)[0], together(model, regularizer)
    assert torch.equal(plain.tensors["weights"], runs[3].tensors["weights"])
    assert not torch.equal(plain.tensors["weights"], runs[0].tensors["weights"])
    assert not torch.equal(runs[0].tensors["weights"], runs[2].tensors["weights"])


@pytest.mark.parametrize("model", [model for model in MODELS if small.computes_many_runs(model)])
def test_a_step_stays_on_the_device_and_computes_the_same(model, assert_stays):
    assert_stays(small.problem(model))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_passes_its_declared_representations_through_the_tap(model):
    """Each activation has a declared name and the run axis first, and the model continues with the values from the tap."""
    case = small.problem(model)
    runs = width_of(case) or 2
    split = case.splits["train"]
    size = case.settings["batch_size"]
    rows = torch.from_numpy(split.draw(0, range(runs), size).copy())
    batch = split.training_batches(size)(rows)
    weights = untrained(case, range(runs))
    shown = {}

    def tap(name, values, mask, factor=1.0):
        shown[name] = values
        return factor * values

    outputs = case.model.forward(case.model_parameters, weights, batch, tap)
    assert set(shown) == set(case.model.REPRESENTATIONS)
    assert outputs.shape[0] == runs
    assert all(values.shape[0] == runs for values in shown.values())
    if shown:
        changed = case.model.forward(case.model_parameters, weights, batch, lambda *seen: tap(*seen, factor=2.0))
        assert not torch.equal(outputs, changed)


@pytest.mark.parametrize(
    "model", [model for model in MODELS if small.configuration().declared("models", model)["KIND"] == "sequence"]
)
def test_symbols_decoded_one_by_one_follow_from_everything_before_them(model):
    """A model may keep what it computed for earlier symbols, and then must predict the same as from all of them."""
    case = small.problem(model)
    runs = width_of(case) or 2
    weights = untrained(case, range(runs))
    ((_, batch), *_) = case.splits["test"].evaluation_batches(runs, 16)
    onward, decoded = replace(batch, kept={}, past={}), batch.inputs[..., :0]
    for _ in range(5):
        expected = next_symbols(case, weights, batch, decoded)
        torch.testing.assert_close(next_symbols(case, weights, onward, decoded), expected, atol=1e-4, rtol=1e-4)
        decoded = torch.cat([decoded, expected.argmax(-1, keepdim=True)], 2)


def test_a_plugin_without_an_entry_fails():
    with pytest.raises(pytest.fail.Exception, match=r"models/other.py has no entry .* add one under models: in small.yaml"):
        small.entry("models", "other")
