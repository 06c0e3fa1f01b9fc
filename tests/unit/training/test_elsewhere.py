"""Training and evaluation on a device that is not the host: nothing is left behind, and a step can be recorded as a graph.

No GPU is needed (elsewhere.py), so this says nothing of CUDA's kernels; it says that the right tensors meet in them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support import elsewhere
from support.combinations import COMBINATIONS, MODELS

from compositional import randomness
from compositional.evaluation import decoding
from compositional.evaluation import metrics as evaluation
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.problem import WIDTH, weight_layout
from compositional.training.state import fresh_state


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """Packs of two runs, and the device's generator of noise, which does not exist, replaced by the host's."""
    draw = randomness.normal

    def normal(keys, step, size, out):
        draw(keys, step, size, out.here if out.device.type == elsewhere.DEVICE else out)
        return out

    def step(pack):
        with elsewhere.sealed():
            pack._step()

    monkeypatch.setattr(randomness, "normal", normal)
    monkeypatch.setattr(Pack, "_run_step", step)
    monkeypatch.setitem(WIDTH, elsewhere.DEVICE, 2)


def moved(case):
    """The same problem on the device; `elsewhere.there` must hold."""
    return replace(case, device=elsewhere.DEVICE, splits={name: elsewhere.moved(split) for name, split in case.splits.items()})


def trained(case):
    """A run's weights after training; the second of its pack is filling, on the device."""
    state = fresh_state(case, 0, 0.1)
    train_runs(case, [state], lambda *_: [{}])
    return state.tensors["weights"]


def test_what_the_device_forbids():
    with elsewhere.there():
        values = torch.arange(6.0).to(elsewhere.DEVICE)
        assert values.device.type == elsewhere.DEVICE
        assert torch.zeros(3, device=elsewhere.DEVICE).device == torch.tensor([1.0], device=elsewhere.DEVICE).device
        assert (2 * values[1:]).sum().item() == 30
        with pytest.raises(AssertionError, match="of the host"):
            values + torch.ones(6)
        same, other = torch.tensor([1, 1], device=elsewhere.DEVICE), torch.tensor([1, 0], device=elsewhere.DEVICE)
        with elsewhere.sealed():
            values.index_add(0, other, values[:2])
            with pytest.raises(AssertionError, match="same place"):
                values.index_add(0, same, values[:2])
            with pytest.raises(AssertionError, match="reads values"):
                values.sum().item()
            with pytest.raises(AssertionError, match="reads values"):
                values[values > 2]
            with pytest.raises(AssertionError, match="copies"):
                torch.tensor([1.0], device=elsewhere.DEVICE)
            with pytest.raises(AssertionError, match="copies"):
                values.cpu()


def assert_stays(problem, *which):
    # Plain gradient descent: Adam would make steps of what is nothing but rounding, such as the gradient of a key's bias.
    case = problem(*which, steps=2, record_every=2, optimizer="sgd", learning_rate=0.1)
    before = fresh_state(case, 0, 0.1).tensors["weights"]
    here = trained(case)
    with elsewhere.there():
        found = trained(moved(case))
    assert not torch.equal(here, before)
    # LSTMs and pooling have code of their own for the host: the same formulas, other last bits.
    torch.testing.assert_close(found, here, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("model", "regularizer"), [*((model, None) for model in MODELS), *COMBINATIONS])
def test_a_step_stays_on_the_device_and_computes_the_same(problem, model, regularizer):
    assert_stays(problem, model, regularizer)


@pytest.mark.parametrize("regularizer", [None, "recombination"])
def test_so_does_a_step_with_many_words(problem, monkeypatch, regularizer):
    for module in ("layers.functional", "kinds.sequence"):
        monkeypatch.setattr(f"compositional.{module}.SMALL_VOCABULARY", 2)
    assert_stays(problem, "transformer", regularizer)


def test_so_does_a_step_with_swapped_terms(problem, question_splits):
    assert_stays(problem, "lstm_input_feeding", "recombination", {"exchange": "terms"}, question_splits)


def test_nothing_comes_from_the_host_from_step_to_step(problem):
    """What is copied to the device or back does not grow with the number of steps."""
    counts = []
    for steps in (2, 6):
        case = problem("cnn", "entropy", steps=steps, record_every=6)
        with elsewhere.there():
            case = moved(case)
            elsewhere.crossings.clear()
            trained(case)
        counts.append(len(elsewhere.crossings))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(("model", "beam"), [("lstm_attention", 2), ("transformer", 1), ("cnn", None)])
def test_evaluation_finds_the_same_on_the_device(problem, model, beam):
    def evaluated(case):
        flat = fresh_state(case, 0, 0.0).tensors["weights"][None].to(case.device)
        weights = weight_layout(case).views(flat)
        written = decoding.predictions(case, weights, "test", 4, beam) if beam else None
        return evaluation.measure(case, weights, 32), written

    case = problem(model)
    (here,), written_here = evaluated(case)
    with elsewhere.there():
        (found,), written_there = evaluated(moved(case))
    assert found == pytest.approx(here, rel=1e-5)
    assert written_there == written_here
