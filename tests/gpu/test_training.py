"""Training on a GPU gives the same numbers as on the CPU, and the same bytes every time, whatever trains next to a run."""

from __future__ import annotations

import gc
import math

import pytest
import torch
from gpu import problems
from gpu.problems import EACH, PACKED, TRAINED
from support.trained import same, train

from compositional.evaluation import activations, decoding, learning_curves, metrics
from compositional.plugins import defaults, is_network
from compositional.training import noise
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.problem import buffers, prepare, weight_layout, width_of
from compositional.training.state import State, fresh_state


@pytest.fixture(autouse=True)
def memory() -> None:
    """Free the memory that the previous test has kept."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@pytest.mark.parametrize(("model", "regularizer"), EACH)
def test_every_plug_in_has_a_problem_to_be_tried_on(model, regularizer):
    """This runs on any machine's CPU, so a plug-in without a problem is noticed before there is a GPU."""
    case = problems.problem(model, regularizer, "cpu")
    pack = Pack(case, [fresh_state(case, 0, 0.1)], prepare(case))
    pack.rows.copy_(torch.tensor(pack.train.draw(0, range(1), problems.BATCH)))
    assert pack.gradient()[2].abs().sum() > 0


@pytest.mark.parametrize(("model", "regularizer"), TRAINED)
def test_steps_equal_the_cpus(device, monkeypatch, model, regularizer):
    """Weights agree within 1e-4 after a step of gradient descent with rate 0.1: other kernels sum in another order.

    Adam is not used, because it would turn pure rounding errors, such as the gradient of a key's bias, into full steps. Every
    device has its own random numbers, so here both get the CPU's; a Network draws its own, so it has no dropout here.
    """
    fill = noise.fill

    def filled(numbers, seed):
        here = numbers.cpu()
        fill(here, seed)
        numbers.copy_(here)

    monkeypatch.setattr(noise, "fill", filled)
    network = is_network(f"models.{model}") and "dropout" in defaults(f"models.{model}")
    settings = {"steps": 1, "record_every": 1, "optimizer": "sgd", "learning_rate": 0.1}
    cases = [
        problems.problem(model, regularizer, where, {"dropout": 0.0} if network else {}, **settings) for where in ("cpu", device)
    ]
    (here,), (found,) = (train(case, [(0, 0.1)]) for case in cases)
    before = fresh_state(cases[0], 0, 0.1)
    assert not torch.equal(here.tensors["weights"], before.tensors["weights"])
    torch.testing.assert_close(found.tensors["weights"], here.tensors["weights"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("model", "regularizer"), EACH)
def test_a_run_depends_neither_on_its_neighbors_nor_on_the_packs_filling(device, model, regularizer):
    case = problems.problem(model, regularizer, device)
    runs = [(0, 0.1), (1, 0.1), (0, 1.0), (2, 0.3), (5, 10.0)]
    together = train(case, runs)
    assert not torch.equal(together[0].tensors["weights"], together[1].tensors["weights"])
    for index in (0, 3):
        (alone,) = train(case, [runs[index]])
        assert same(alone, together[index])


@pytest.mark.parametrize(("model", "regularizer"), EACH)
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
@pytest.mark.parametrize(("model", "regularizer"), PACKED)
def test_a_replayed_graph_equals_eager_steps(device, monkeypatch, model, regularizer):
    case = problems.problem(model, regularizer, device)
    (replayed,) = train(case, [(0, 0.1)])
    monkeypatch.setattr(Pack, "_run_step", Pack._step)
    (eager,) = train(case, [(0, 0.1)])
    assert same(replayed, eager)


@pytest.mark.cuda
@pytest.mark.parametrize(("model", "regularizer"), PACKED)
def test_no_step_waits_for_the_device(device, model, regularizer):
    """Nothing is copied to or from the host, so that all steps of a pack can be queued."""
    case = problems.problem(model, regularizer, device)
    width = width_of(case) or 1
    pack = Pack(case, [fresh_state(case, 0, 0.1) for _ in range(width)], prepare(case))
    rows = pack.rows.clone()

    def step(number: int) -> None:
        """A step like in `Pack.advance`, without the graph."""
        pack.rows.copy_(rows)
        pack.now.fill_(number)
        pack.noise.draw(number)
        pack.dropout.draw(number)
        pack._step()

    step(0)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            step(1)
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


@pytest.mark.cuda
def test_a_pack_gives_its_memory_back(device):
    """pytest -s prints how much memory a run takes."""
    case = problems.problem("cnn", "entropy", device)
    train(case, [(0, 0.1)])  # after this, the libraries have allocated what they keep for themselves
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    train(case, [(0, 0.1), (1, 0.1)])
    gc.collect()
    needed = torch.cuda.max_memory_allocated() - before
    print(f"{needed / 2**20 / width_of(case):.2f} MiB per run")
    assert needed > 0
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("model", problems.MODELS)
def test_evaluation_equals_the_cpus(device, model):
    """Accuracies and decoded sentences are equal; losses and representations agree within 1e-4."""
    found = []
    (state,) = train(problems.problem(model, None, "cpu"), [(0, 0.0)])
    for where in ("cpu", device):
        case = problems.problem(model, None, where)
        runs = width_of(case) or 1
        weights = weight_layout(case).views(state.tensors["weights"].expand(runs, -1).contiguous().to(where))
        weights |= {name: torch.stack([tensor] * runs).to(where) for name, tensor in buffers(case, 0).items()}
        written = decoding.predictions(case, weights, "test", 8, 1)[0] if problems.kind_of(model) == "sequence" else []
        _, batch = case.splits["test"].evaluation_batches(runs, 16)[0]
        shown = activations.shown(case, metrics.calibrated(case, weights), batch)[1]
        vectors = {name: activations.by_example(*one)[0].cpu() for name, one in shown.items()}
        found.append((metrics.measure(case, weights)[0], written, vectors))
    (here, written_here, shown_here), (there, written_there, shown_there) = found
    assert there == pytest.approx(here, rel=1e-4, abs=1e-6)
    assert written_there == written_here
    assert shown_there.keys() == shown_here.keys()
    for name, values in shown_here.items():
        torch.testing.assert_close(shown_there[name], values, rtol=1e-4, atol=1e-4)
