"""Training of a pack of runs. models/test_contract.py tests what every model must do."""

from __future__ import annotations

import gc
import math
import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from support.told import told
from support.trained import independent, same, train, unguarded

from compositional import randomness
from compositional.layers.tap import silent_tap
from compositional.records import integrity, provenance
from compositional.records.entries import entries, name_of, stored
from compositional.records.store import Store
from compositional.runs import Run
from compositional.stages import train as stage
from compositional.stages.shared import devices
from compositional.training.pack import Pack
from compositional.training.problem import WIDTH, buffers, initial_weights, prepare, weight_layout
from compositional.training.state import fresh_state


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("primitive_attention", {"primitive_width": 12, "function_width": 4, "encoder_width": 20}),
        ("cgps", {"primitive_width": 12, "function_width": 4, "encoder_width": 20, "positions": 11}),
        ("lstm_attention", {"embedding_width": 20, "encoder_width": 12, "copying": True}),
        ("lstm_input_feeding", {"embedding_width": 20, "width": 12}),
        ("pointer_generator", {"embedding_width": 20, "width": 24}),
        ("syntactic_attention", {"semantic_width": 4, "width": 24}),
        ("meta_sequence_to_sequence", {"width": 24}),
    ],
)
def test_a_run_of_a_network_with_unusual_widths_does_not_depend_on_its_neighbors(problem, model, options):
    """Widths must be multiples of 4; with other widths, the alignment in memory would differ from run to run."""
    case = problem(model, "entropy")
    case = replace(case, model_parameters=case.model_parameters | options)
    independent(case, [(seed, 0.1) for seed in range(5)])


def copying(problem, model, regularizer=None):
    """A model with dropout and copying, on a task in which some words are also symbols."""
    case = problem(model, regularizer)
    about = case.about | {"target_words": [*case.about["target_words"][:5], *case.about["source_words"][5:9]]}
    options = {"dropout": 0.3} | ({"copying": True} if model == "lstm_attention" else {})
    return replace(case, about=about, model_parameters=case.model_parameters | options)


@pytest.mark.parametrize("model", ["lstm_input_feeding", "transformer"])
def test_a_run_with_swapped_terms_does_not_depend_on_its_neighbors(problem, question_splits, model):
    case = problem(model, "recombination", {"exchange": "terms"}, question_splits, batch_size=16)
    independent(case, [(0, 0.1), (1, 0.1), (0, 1.0)])


@pytest.mark.parametrize("model", ["lstm_attention", "pointer_generator", "lstm_input_feeding"])
def test_copying_writes_the_attended_words(problem, model):
    """With zero weights all words get equal attention. A bias of log 3 makes copying 3 times as likely as generating any symbol.

    This is relative to all symbols together in a mixture (the first two models), and to each symbol in the single distribution
    (lstm_input_feeding), in which symbols that occur in the input can only be copied.
    """
    case = copying(problem, model)
    batch = case.splits["train"].batch(torch.arange(16)[None], case.splits["train"].training_layout(16))
    weights = {name: torch.zeros_like(tensor)[None] for name, tensor in initial_weights(case, 0).items()}
    weights |= {name: tensor[None] for name, tensor in buffers(case, 0).items()}
    weights["output.bias" if model == "lstm_input_feeding" else "copied.bias"][..., -1] = math.log(3)
    logits = case.model.forward(case.model_parameters, weights, batch, silent_tap)
    symbols = case.about["target_words"]
    seen = set()
    beginnings = torch.cat([chunk[0, :, 0] for chunk in batch.layout.chunks(logits)])
    for row, (words, first) in enumerate(zip(batch.inputs[0], beginnings, strict=True)):
        words = [case.about["source_words"][word] for word in words[: batch.input_lengths[0, row]]]
        copied = set(words[:-1]) & set(symbols)  # the end symbol is never copied
        looked_at = torch.tensor([words.count(symbol) / len(words) if symbol in copied else 0.0 for symbol in symbols])
        if model != "lstm_attention":
            looked_at[0] = 1 - looked_at.sum()  # words that are not symbols stand for padding
        if model == "lstm_input_feeding":
            written = torch.tensor([float(symbol not in copied) for symbol in symbols])
            written[0] = 0  # padding cannot be generated
            expected = (written + 3 * looked_at) / (written.sum() + 3)
        else:
            expected = 0.25 / len(symbols) + 0.75 * looked_at
        torch.testing.assert_close(first.exp(), expected)
        seen |= copied
    assert seen


def test_copying_weight_multiplies_the_gradient_of_the_attention_at_copied_symbols(problem):
    """The loss does not change."""
    case = copying(problem, "lstm_input_feeding")
    batch = case.splits["train"].batch(torch.arange(16)[None], case.splits["train"].training_layout(16))
    tensors = initial_weights(case, 0) | buffers(case, 0)
    tensors["combined.weight"] = torch.zeros_like(tensors["combined.weight"])
    symbols, row = case.about["target_words"], batch.layout.positions[:, 0]

    def loss_and_gradient(weight, word):
        """The loss and its gradient when a source word is the target wherever its row contains it."""
        weights = {name: tensor[None] for name, tensor in tensors.items()}
        key = weights["key.weight"].requires_grad_()
        logits = case.model.forward(case.model_parameters | {"copying_weight": weight}, weights, batch, silent_tap)
        here = (batch.inputs == word).any(2)[:, row]
        assert here.any()
        targets = torch.full_like(batch.targets, symbols.index(case.about["source_words"][word]))
        loss = (replace(batch, targets=targets).losses(logits, "cross_entropy") * here).sum()
        return loss.detach(), torch.autograd.grad(loss, key)[0]

    (loss, gradient), (same_loss, larger) = loss_and_gradient(1, 5), loss_and_gradient(3, 5)
    assert loss == same_loss
    assert gradient.abs().max() > 1e-3
    torch.testing.assert_close(larger, 3 * gradient)


def test_seeded_as_gives_the_runs_of_the_named_task(problem):
    """With the same data and settings they are equal to the bit; a seed's meaning depends on no other property of the task."""
    own = problem("cnn", "entropy")
    (theirs,) = train(own, [(3, 0.5)])
    (alone,) = train(replace(own, task="another"), [(3, 0.5)])
    (shared,) = train(replace(own, task="another", settings=own.settings | {"seeded_as": "test"}), [(3, 0.5)])
    assert torch.equal(shared.tensors["weights"], theirs.tensors["weights"])
    assert not torch.equal(alone.tensors["weights"], theirs.tensors["weights"])


@pytest.mark.parametrize(("model", "regularizer"), [("lstm_attention", "smoothness"), ("cnn", "entropy")])
def test_a_larger_lambda_makes_the_penalty_smaller(problem, model, regularizer):
    """The penalty is added to the loss, not subtracted."""
    case = problem(model, regularizer, steps=20, record_every=20, optimizer="sgd", learning_rate=0.05, decay=1.0)
    case.regularizer_parameters |= dict.fromkeys(("word_noise", "feature_noise"), 0.0)
    runs = train(case, [(0, 0.0), (0, 1.0), (0, 10.0)])
    penalties = [value for run in runs for _, split, metric, value in run.history if (split, metric) == ("batches", "penalty")]
    assert penalties[0] > penalties[1] > penalties[2]


def test_a_run_whose_gradient_is_not_finite_has_diverged_though_its_loss_is_finite(problem):
    """The square root of 0 has no finite gradient; the other run is not affected."""
    case = problem("cnn", "entropy")
    case.regularizer = replace(case.regularizer, penalty=lambda step: (step.outputs * 0).sum((1, 2)).sqrt())
    pack = Pack(case, [fresh_state(case, 0, 0.1), fresh_state(case, 1, 0.0)], None)
    pack.now.fill_(3)
    task_loss, penalty, _, norm, healthy = pack.gradient()
    assert torch.isfinite(task_loss + penalty).all()
    assert not norm[0].isfinite()
    assert not healthy[0]
    assert pack.diverged_at[0] == 3


def test_a_diverging_run_is_marked_and_leaves_its_neighbors_alone(problem):
    case = problem("cnn", "additivity", steps=12)
    healthy, sick = train(case, [(0, 0.1), (1, 1e39)])  # infinite in float32
    assert sick.diverged_at == 0
    assert torch.isfinite(sick.tensors["weights"]).all()
    assert {step for step, *_ in sick.history} == {4}  # it leaves the pack at the first record after its divergence
    assert all(math.isnan(value) for _, split, _, value in sick.history if split != "batches")
    assert healthy.diverged_at is None
    assert healthy.step == 12
    (alone,) = train(case, [(0, 0.1)])
    assert same(alone, healthy)


def test_a_run_that_diverges_in_its_last_step_is_marked(problem):
    cases = [problem("cnn", "additivity", steps=steps, optimizer="sgd", clip=None) for steps in (1, 2)]
    runs = [(0, 0.1), (1, 1e18)]
    for healthy, sick in (train(case, runs) for case in cases):
        assert (healthy.diverged_at, sick.diverged_at) == (None, 1)
        assert torch.isfinite(sick.tensors["weights"]).all()  # but their loss is not finite
        assert all(math.isnan(value) for _, split, _, value in sick.history if split != "batches")
    assert same(train(cases[1], runs[:1])[0], healthy)


def job_of(case, monkeypatch, tmp_path, runs):
    """The folders of plain runs, and the content of the job that trains them, which finds this problem."""
    case.about |= {"content_sha256": "data", "raw_sha256": {}}
    monkeypatch.setattr(stage, "load_problem", lambda *_: case)
    folders = [tmp_path / f"runs/digits_concat/cnn/none/lambda=0/seed={seed}" for seed in range(runs)]
    return folders, told("train", {}, list(map(Run.of_folder, folders)))


def perform(content, tmp_path) -> str:
    """Train as the job does, and return its log."""
    with (tmp_path / "pack.log").open("w") as log:
        stage.perform(content, log, tmp_path)
    return (tmp_path / "pack.log").read_text()


def test_a_killed_job_goes_on_from_its_last_checkpoint_with_all_its_runs(problem, monkeypatch, tmp_path):
    """The device computes one run after the other; a checkpoint is due after every other segment."""
    folders, content = job_of(problem("cnn", steps=16, record_every=4), monkeypatch, tmp_path, 4)
    segments, advance = [], Pack.advance

    class KilledError(Exception):
        pass

    def killed(pack, stop):
        if len(segments) == 9:
            raise KilledError
        advance(pack, stop)
        segments.append(stop)

    monkeypatch.setitem(WIDTH, "cpu", 1)
    monkeypatch.setattr(stage, "time", SimpleNamespace(monotonic=lambda: 40 * len(segments)))
    monkeypatch.setattr(Pack, "advance", killed)
    with pytest.raises(KilledError):
        perform(content, tmp_path)
    assert segments == [4, 4, 4, 4, 8, 8, 8, 8, 12]
    segments.clear()
    perform(content, tmp_path)
    assert segments == [12, 12, 12, 12, 16, 16, 16, 16]
    for folder in folders:
        record = provenance.vouched(folder / "run.json")
        assert {*record["files"]} == {"weights.safetensors", "history.csv"}
        assert integrity.damaged(folder / "run.json", record, everything=True) == []
    # Another call trains nothing and writes no finished entry again.
    entries = {path: path.stat().st_ino for path in (tmp_path / "store/entries").rglob("*.*")}
    assert len(entries) == 8
    assert not [*(tmp_path / "store/checkpoints").glob("*")]
    segments.clear()
    perform(content, tmp_path)
    assert segments == []
    assert {path: path.stat().st_ino for path in entries} == entries


@pytest.mark.parametrize("name", ["fit", "observe"])
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (lambda: Path("words.txt").read_text(), PermissionError, r"a model or a regularizer may read no file, .*: not .*/words"),
        (lambda: torch.rand(1), ValueError, "draws random numbers from a global generator"),
    ],
)
def test_what_a_model_fits_or_shows_of_itself_depends_on_nothing_unnoticed(
    problem, monkeypatch, tmp_path, name, fault, error, message
):
    case = problem("cnn", steps=4, record_every=4)
    own = {"fit": lambda parameters, task, train: initial_weights(case, 0), "observe": lambda parameters, weights, task: {}}

    def faulty(*arguments):
        fault()
        return own[name](*arguments)

    case = replace(case, model=replace(case.model, **{name: faulty}))
    _, content = job_of(case, monkeypatch, tmp_path, 1)
    (tmp_path / "words.txt").write_text("red blue")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        perform(content, tmp_path)


@pytest.mark.parametrize("wish", ["auto", "cuda"])
def test_finished_runs_of_a_gpu_are_restored_without_one(problem, monkeypatch, tmp_path, wish):
    case = problem("cnn", steps=4, record_every=4)
    folders, content = job_of(case, monkeypatch, tmp_path, 2)
    content["job"] |= {"device": wish}
    states, asked, store = [fresh_state(case, seed, 0.0) for seed in range(2)], [], Store(tmp_path / "store")
    facts = provenance.circumstances(1.0) | {"device_name": "H100"}
    for state in states:
        identity = {"family": {}, "code": content["common"]["code"], "lambda": 0.0, "seed": state.seed, "data": "data"}
        about = {"state": state.described(), "facts": facts, "identity": identity | {"device": "cuda"}}
        layout = weight_layout(case)
        store.add(
            name_of(about["identity"]),
            about,
            {name: own[0] for name, own in layout.views(state.tensors["weights"][None]).items()},
        )

    def load_problem(content, results, log):
        asked.append(content["job"]["device"])
        return case

    monkeypatch.setattr(stage, "load_problem", load_problem)
    perform(content, tmp_path)
    assert asked == ["cpu"]
    assert [provenance.vouched(folder / "run.json")["device_name"] for folder in folders] == ["H100", "H100"]
    # If one is damaged, a host without a GPU, such as one that submits jobs, trains nothing. It no longer counts as stored.
    for folder in folders:
        shutil.rmtree(folder)
    (path, _) = entries([tmp_path / "store"])
    path.write_bytes(b"damaged")
    planned = [{"family": {}, "code": content["common"]["code"], "lambda": 0.0, "seed": seed} for seed in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(Store, "discard", lambda store, name: [path] if path.stem == Path(name).name else [])
        with pytest.raises(RuntimeError, match=f"Call the same command again, after the owner of {path} deleted it"):
            perform(content, tmp_path)
    assert stored([tmp_path / "store"], planned, wish)
    with pytest.raises(RuntimeError, match=rf"{path}: damaged, and no GPU is visible here .* Call the same command again: it"):
        perform(content, tmp_path)
    assert asked == ["cpu", "cpu", "cpu"]
    assert not stored([tmp_path / "store"], planned, wish)
    # Elsewhere, all are trained on the same device, because a table must not mix devices.
    path.write_bytes(b"damaged")
    monkeypatch.setattr(devices, "visible", lambda: ["0"])
    perform(content, tmp_path)
    assert asked == ["cpu", "cpu", "cpu", "cpu", wish]
    assert [provenance.vouched(folder / "run.json")["device"] for folder in folders] == ["cpu", "cpu"]


def test_an_entry_with_the_tensors_of_another_model_is_trained_again(problem, monkeypatch, tmp_path):
    """Whoever made it knew the names of runs, and none of their weights."""
    (folder,), content = job_of(problem("cnn", steps=4, record_every=4), monkeypatch, tmp_path, 1)
    perform(content, tmp_path)
    store, before = Store(tmp_path / "store"), (folder / "weights.safetensors").read_bytes()
    (path,) = entries([tmp_path / "store"])
    name, tensors = f"{path.parent.name}/{path.stem}", load_file(folder / "weights.safetensors")
    shutil.rmtree(folder)
    first = min(tensors)
    for forged in ({"weights": torch.zeros(9)}, tensors | {first: tensors[first].half()}, tensors | {first: tensors[first][:1]}):
        store.add(name, store.load(name)[0], forged)
        perform(content, tmp_path)
        assert (folder / "weights.safetensors").read_bytes() == before


def test_a_shared_store_that_vanishes_while_runs_train_loses_none(problem, monkeypatch, tmp_path):
    folders, content = job_of(problem("cnn", steps=4, record_every=4), monkeypatch, tmp_path, 2)
    shared, advance, trained = tmp_path / "shared", Pack.advance, []
    content["job"] |= {"store": str(shared)}

    def vanishing(pack, stop):
        """The store vanishes as soon as it contains the first run."""
        if shared.is_dir() and [*entries([shared])]:
            shutil.rmtree(shared)
            shared.write_text("")
        advance(pack, stop)
        trained.append(stop)

    monkeypatch.setitem(WIDTH, "cpu", 1)
    monkeypatch.setattr(Pack, "advance", vanishing)
    log = perform(content, tmp_path)
    assert trained == [4, 4]
    assert "seed=0 is in" not in log
    assert f"seed=1 is in {tmp_path / 'store'}, not in the shared store: " in log
    # The first run is in its folder, from which the next call puts it back into the store.
    perform(content, tmp_path)
    assert trained == [4, 4]
    assert len([*entries([tmp_path / "store"])]) == 2
    for folder in folders:
        assert integrity.damaged(folder / "run.json", provenance.vouched(folder / "run.json"), everything=True) == []


def test_a_fixed_width_pads_and_splits_packs_without_changing_a_bit(problem, monkeypatch):
    case = problem("cnn", "entropy")
    runs = [(seed, 0.1) for seed in range(5)]
    free = train(case, runs)
    monkeypatch.setitem(WIDTH, "cpu", 3)
    seen = []
    fixed = train(case, runs, on_record=seen.append)
    assert all(same(left, right) for left, right in zip(free, fixed, strict=True))
    assert {len(members) for members in seen} == {3, 2}


def test_adam_with_decay_and_clipping_equals_pytorch(problem):
    case = problem("cnn", steps=4, record_every=4, clip=0.5, decay=0.5, loss="cross_entropy", learning_rate=0.01)
    (state,) = train(case, [(3, 0.0)])
    layout = weight_layout(case)
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in initial_weights(case, 3).items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01)
    rows = case.splits["train"].draw(randomness.derive("test", "cnn", 3, "batches"), range(4), 64)
    for step in range(4):
        batch = case.splits["train"].batch(torch.from_numpy(rows[step])[None])
        weights = {name: tensor[None] for name, tensor in parameters.items()}
        outputs = case.model.forward(case.model_parameters, weights, batch, lambda name, values, mask: values)
        loss = torch.nn.functional.cross_entropy(outputs[0], batch.labels[0])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 0.5)
        optimizer.param_groups[0]["lr"] = 0.01 * 0.5 ** (step / 100)
        optimizer.step()
    ours = layout.views(state.tensors["weights"][None])
    for name, tensor in parameters.items():
        torch.testing.assert_close(ours[name][0], tensor.detach(), atol=2e-6, rtol=2e-4)


@pytest.mark.parametrize("regularizer", [None, "recombination", "entropy"])
def test_a_packs_memory_is_free_once_the_pack_is_no_longer_used(problem, regularizer):
    case = problem("lstm_attention", regularizer)
    pack = Pack(case, [fresh_state(case, 0, 0.1)], prepare(case))
    pack.advance(1)
    still = weakref.ref(pack)
    gc.disable()  # it would free reference cycles, too, but at any later moment
    try:
        del pack
        assert still() is None
    finally:
        gc.enable()


def test_no_pack_is_made_while_another_is_in_memory(problem, monkeypatch):
    """A GPU that has room for one pack of a width trains any number of them, and goes on after a run has diverged."""
    made, others = [], []

    class Counted(Pack):
        def __init__(self, *given):
            others.append(sum(one() is not None for one in made))
            made.append(weakref.ref(self))
            super().__init__(*given)

    monkeypatch.setattr("compositional.training.loop.Pack", Counted)
    monkeypatch.setitem(WIDTH, "cpu", 2)
    with unguarded():
        train(problem("cnn", "additivity"), [(0, 0.1), (1, 1e39), (2, 0.1)])
    assert others == [0, 0, 0]  # packs of the first two runs, of the third, and of the two that did not diverge


def test_curves_are_recorded_at_the_configured_steps(problem):
    (state,) = train(problem("cnn", steps=10, record_every=4), [(0, 0.0)])
    assert sorted({step for step, *_ in state.history}) == [4, 8, 10]
    assert {(split, metric) for _, split, metric, _ in state.history} >= {("batches", "loss"), ("test", "accuracy")}
    assert all(math.isfinite(value) for *_, value in state.history)


def test_plain_training_learns(problem):
    (state,) = train(problem("cnn", steps=150, record_every=150, learning_rate=0.003, decay=1.0, clip=None), [(0, 0.0)])
    accuracy = {split: value for _, split, metric, value in state.history if metric == "accuracy"}
    assert accuracy["train"] > 0.9
