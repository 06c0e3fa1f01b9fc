"""Training on a GPU: the same numbers as on the CPU, the same bytes every time, whatever trains beside a run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from gpu import problems

from compositional.evaluation import decoding, learning_curves, metrics
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.problem import Problem, prepare, width_of
from compositional.training.state import State, fresh_state

FITTED = [model for model in problems.MODELS if model == "kernel_machine"]
TRAINED = [pair for pair in problems.COMBINATIONS if pair[0] not in FITTED]


def train(case: Problem, runs: list[tuple[int, float]], **kwargs) -> list[State]:
    """Train (seed, lambda) pairs together and return their states."""
    states = [fresh_state(case, seed, strength) for seed, strength in runs]
    train_runs(case, states, learning_curves.measure, **kwargs)
    return states


def same(left: State, right: State) -> bool:
    """Equal to the bit in weights, optimizer state and curves."""
    tensors = all(torch.equal(left.tensors[name], right.tensors[name]) for name in left.tensors)
    return tensors and repr(left.history) == repr(right.history)


@pytest.fixture(autouse=True)
def memory() -> None:
    """What a test before this one kept is given back."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_steps_equal_the_cpus(device, model, regularizer):
    """Within 1e-4 of a weight after two steps of gradient descent with rate 0.1: other kernels sum in another order.

    Not Adam: it makes whole steps of what is nothing but rounding, such as the gradient of a key's bias.
    """
    options = {"steps": 2, "record_every": 2, "optimizer": "sgd", "learning_rate": 0.1}
    (here,) = train(problems.problem(model, regularizer, "cpu", **options), [(0, 0.0)])
    (found,) = train(problems.problem(model, regularizer, device, **options), [(0, 0.0)])
    before = fresh_state(problems.problem(model, regularizer, "cpu", **options), 0, 0.0)
    assert not torch.equal(here.tensors["weights"], before.tensors["weights"])
    torch.testing.assert_close(found.tensors["weights"], here.tensors["weights"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_a_run_depends_neither_on_its_neighbors_nor_on_the_packs_filling(device, model, regularizer):
    case = problems.problem(model, regularizer, device)
    runs = [(0, 0.1), (1, 0.1), (0, 1.0), (2, 0.3), (5, 10.0)]
    together = train(case, runs)
    assert not torch.equal(together[0].tensors["weights"], together[1].tensors["weights"])
    for index in (0, 3):
        (alone,) = train(case, [runs[index]])
        assert same(alone, together[index])


@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_a_run_resumed_from_a_checkpoint_and_a_run_repeated_have_the_same_bytes(device, model, regularizer):
    case = problems.problem(model, regularizer, device)
    (whole,), (again,) = train(case, [(0, 0.1)]), train(case, [(0, 0.1)])
    assert same(whole, again)

    class KilledError(Exception):
        pass

    def kill(members: list[State]) -> None:
        raise KilledError

    state = fresh_state(case, 0, 0.1)
    with pytest.raises(KilledError):
        train_runs(case, [state], learning_curves.measure, kill)
    assert 0 < state.step < whole.step
    train_runs(case, [state], learning_curves.measure)
    assert same(state, whole)


@pytest.mark.cuda
@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_a_replayed_graph_equals_eager_steps(device, monkeypatch, model, regularizer):
    case = problems.problem(model, regularizer, device)
    (replayed,) = train(case, [(0, 0.1)])
    monkeypatch.setattr(Pack, "_run_step", Pack._step)
    (eager,) = train(case, [(0, 0.1)])
    assert same(replayed, eager)


@pytest.mark.cuda
@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_no_step_waits_for_the_device(device, model, regularizer):
    """Nothing is read back, nothing is copied from the host: a pack's steps are queued at once."""
    case = problems.problem(model, regularizer, device)
    width = width_of(case) or 1
    pack = Pack(case, [fresh_state(case, 0, 0.1) for _ in range(width)], prepare(case))
    pack._step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            pack._step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    copies = [row.key for row in profile.key_averages() if "HtoD" in row.key or "DtoH" in row.key]
    assert copies == []


def test_a_run_that_diverges_leaves_the_others_alone(device):
    case = problems.problem("cnn", "additivity", device, steps=12)
    healthy, sick = train(case, [(0, 0.1), (1, 1e39)])  # infinite in float32
    assert sick.diverged_at == 0
    assert torch.isfinite(sick.tensors["weights"]).all()
    assert all(math.isnan(value) for _, split, _, value in sick.history if split != "batches")
    assert (healthy.diverged_at, healthy.step) == (None, 12)
    (alone,) = train(case, [(0, 0.1)])
    assert same(alone, healthy)


@pytest.mark.parametrize("model", [model for model in problems.MODELS if model not in FITTED])
def test_evaluation_equals_the_cpus(device, model):
    """Accuracies exactly, losses within 1e-4 of theirs; decoded sentences to the letter."""
    found = []
    for where in ("cpu", device):
        case = problems.problem(model, None, where)
        (state,) = train(problems.problem(model, None, "cpu"), [(0, 0.0)])
        pack = Pack(case, [replace(state)] * (width_of(case) or 1), None)
        (measured, *_) = metrics.measure(case, {name: tensor.detach() for name, tensor in pack.tensors.items()})
        written = []
        if problems.kind_of(model) == "sequence":
            weights = {name: tensor.detach() for name, tensor in pack.tensors.items()}
            written = decoding.predictions(case, weights, "test", 8, 1)[0]
        found.append((measured, written))
    (here, written_here), (there, written_there) = found
    assert there == pytest.approx(here, rel=1e-4, abs=1e-6)
    assert written_there == written_here
