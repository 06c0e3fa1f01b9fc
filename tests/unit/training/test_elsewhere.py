"""Training and evaluation on a device that is not the host: no tensor stays on the host, and a step can be recorded as a graph.

No GPU is needed (support/elsewhere.py). These tests do not cover CUDA's kernels, but show that their tensors are on one device.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from support import elsewhere

from compositional.evaluation import decoding, metrics
from compositional.kinds.sequence import SequenceSplit
from compositional.training.model_guards import evaluated
from compositional.training.pack import Pack
from compositional.training.problem import weight_layout
from compositional.training.state import fresh_state


def test_the_simulated_device_forbids_mixing_and_copying():
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


@pytest.mark.parametrize("regularizer", [None, "recombination"])
def test_a_step_with_many_words_stays_on_the_device(problem, monkeypatch, assert_stays, regularizer):
    for module in ("layers.functional", "kinds.sequence"):
        monkeypatch.setattr(f"compositional.{module}.SMALL_VOCABULARY", 2)
    assert_stays(problem("transformer", regularizer))


def test_nothing_comes_from_the_host_from_step_to_step(problem, device, weights_of):
    """The number of copies to and from the device does not grow with the number of steps."""
    counts = []
    for steps in (2, 6):
        case = problem("cnn", "entropy", steps=steps, record_every=6)
        with elsewhere.there():
            case = device(case)
            elsewhere.crossings.clear()
            weights_of(case)
        counts.append(len(elsewhere.crossings))
    assert counts[0] == counts[1] > 0


def test_no_earlier_graph_is_freed_while_a_step_is_recorded(problem, monkeypatch):
    """CUDA refuses that. A plug-in can put a pack into a reference cycle, which Python frees at any later moment."""
    graphs, alive = [], []

    class Graph:
        def replay(self):
            """A stand-in, which records nothing."""

    @contextmanager
    def recording(graph, stream):
        alive.append([one() is not None for one in graphs])
        graphs.append(weakref.ref(graph))
        yield

    stand_ins = {"CUDAGraph": Graph, "graph": recording, "current_stream": Mock(), "stream": lambda _: nullcontext()}
    for name, value in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr("compositional.training.pack._side_stream", Mock())
    case = problem("cnn", "entropy")
    for seed in range(3):
        pack = Pack(case, [fresh_state(case, seed, 0.1)], None)
        pack.problem, pack.cycle = replace(case, device="cuda"), pack
        pack._run_step()
    assert alive == [[], [False], [False, False]]


def test_what_a_recorded_step_reads_is_never_freed(problem, device):
    """A graph reads the same addresses again, whatever was computed between two of its replays."""
    case = problem("transformer")
    with elsewhere.there():
        case = device(case)
        pack = Pack(case, [fresh_state(case, seed, 0.1) for seed in range(2)], None)
        with elsewhere.noted() as read:
            pack._step()
        vocabularies = case.splits["test"].source, case.splits["test"].target
        for length in range(1, 70):
            sentences = (" ".join(vocabulary.words[-1:] * length) for vocabulary in vocabularies)
            split = SequenceSplit(*([sentence] for sentence in sentences), *vocabularies, elsewhere.DEVICE)
            ((_, batch),) = split.evaluation_batches(2, 16)
            evaluated(case, case.model, pack.tensors, batch)
    assert len(read) > 20
    assert all(memory() is not None for memory in read)


@pytest.mark.parametrize(("model", "beam"), [("lstm_attention", 2), ("transformer", 1), ("cnn", None)])
def test_evaluation_gives_the_same_results_on_the_device(problem, device, model, beam):
    def evaluated(case):
        flat = fresh_state(case, 0, 0.0).tensors["weights"][None].to(case.device)
        weights = weight_layout(case).views(flat)
        written = decoding.predictions(case, weights, "test", 4, beam) if beam else None
        return metrics.measure(case, weights, 32), written

    case = problem(model)
    (here,), written_here = evaluated(case)
    with elsewhere.there():
        (found,), written_there = evaluated(device(case))
    assert found == pytest.approx(here, rel=1e-5)
    assert written_there == written_here
