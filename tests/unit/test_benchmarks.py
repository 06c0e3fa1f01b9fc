"""Both sides of the benchmarks train and compute the same loss: other comparisons are meaningless. No test uses a clock."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch
from numba.core.dispatcher import Dispatcher
from support import small

from compositional.layers import looking_compiled, lstm_compiled
from compositional.layers.tap import silent_tap
from compositional.plugins import available
from compositional.training.pack import Pack
from compositional.training.state import fresh_state

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import decoding
import families
import family_table
import networks
import packed_training
import plain
import plain_factorizations
import plain_sequences
import plain_training
import problems

ADAPTED = {
    "batchnorm_cnn_torch",
    "causal_tagger",
    "gru_attention",
    "t5",
    "transformer_torch",
}  # plain PyTorch already: benchmarks/networks.py
FACTORIZATIONS = {"cp_factorization", "hierarchical_tensor_factorization", "matrix_factorization"}


@pytest.mark.parametrize("problem", ["scan", "mnist", "cogs"])
def test_both_ways_take_a_step(problem):
    batch_size = 4 if problem == "cogs" else None  # the default batch size would take a minute
    trainer = plain.Trainer(problem, packed_training.splits_of(problem, "cpu"), "cpu", batch_size)
    before = [weight.detach().clone() for weight in trainer.model.parameters()]
    trainer.step()
    moved = [
        (weight.detach() - start).abs().max().item() for weight, start in zip(trainer.model.parameters(), before, strict=True)
    ]
    # Adam's first step equals the learning rate; the decoder for SCAN has no inputs, so its input weights do not change.
    assert max(moved) == pytest.approx({"scan": 0.01, "mnist": 0.001, "cogs": 0.0001}[problem], rel=0.01)
    pack = packed_training.pack_of(problem, 2, "cpu", batch_size)
    pack.advance(1)
    assert {state.diverged_at for state in pack.states} == {None}


def test_the_two_stream_model_made_of_standard_modules_computes_the_same():
    pack = packed_training.pack_of("scan", 2, "cpu")
    data, case = pack.train, pack.problem
    layout = data.training_layout(8)
    rows = torch.from_numpy(data.draw(0, range(1), 8))
    batch = data.batch(rows.expand(2, -1), layout)
    weights = {name: values.detach() for name, values in pack.tensors.items()}
    ours = case.model.forward(case.model_parameters, weights, batch, silent_tap)
    theirs = plain.PrimitiveAttention(len(data.source), len(data.target)).eval()
    for run in range(2):
        other = plain_sequences.PrimitiveAttention(case, {name: values[run] for name, values in weights.items()})
        theirs.load_state_dict(other.state_dict())
        with torch.no_grad():
            logits, _ = theirs(data.inputs[rows[0]], data.input_lengths[rows[0]], int(data.target_lengths[rows[0]].max()))
        known = batch.target_mask[run]
        place, step = batch.layout.positions[known].unbind(1)
        torch.testing.assert_close(ours[run][known], logits[place, step], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "words", "reason"),
    [
        ("cores", [], "the following arguments are required: cores"),
        ("cores", ["0"], "argument cores: '0' must be a whole number of at least 1"),
        ("cores", ["2", "ablatoin"], "unknown figure 'ablatoin'; did you mean 'ablation'?"),
        ("decoding", ["--rounds", "0"], "argument --rounds: '0' must be a whole number of at least 1"),
        ("dry_run", ["many"], "argument runs: 'many' must be a whole number of at least 1"),
        ("dry_run", ["20"], "runs: 20 must be at least 40: 20 seeds, each without and with a regularizer"),
        ("families", ["--seconds", "nan"], "argument --seconds: 'nan' must be a number above 0"),
        ("families", ["--rounds", "2.5"], "argument --rounds: '2.5' must be a whole number of at least 1"),
        ("networks", ["--steps", "-1"], "argument --steps: '-1' must be a whole number of at least 1"),
        ("pack_sizes", ["COGS, transformr"], "there is no family 'COGS, transformr'; did you mean 'COGS, transformer'?"),
        ("packed_training", ["--batch-size", "8"], "--batch-size: 8 must be a multiple of 16"),
        ("packed_training", ["--minutes", "soon"], "argument --minutes: 'soon' must be a number above 0"),
        ("raven_distribution", ["0"], "argument puzzles: '0' must be a whole number of at least 1"),
        ("geoquery_exposure", ["cogs"], "unrecognized arguments: cogs"),
        ("wrong_names", ["cogs"], "unrecognized arguments: cogs"),
        ("untrained_homomorphism", ["cogs"], "unrecognized arguments: cogs"),
        ("time_left", ["."], "folder: . exists already: name a new one"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(name, words, reason, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [name, *words])
    with pytest.raises(SystemExit) as caught:
        import_module(name).main()
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_decoding_writes_what_plain_pytorch_writes(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["decoding", "--steps", "6", "--runs", "2", "--rounds", "1"])
    decoding.main()
    header, row = capsys.readouterr().out.splitlines()
    shown = dict(zip(header.replace(" (s)", "").split(), row.split(), strict=False))
    assert (shown["symbols"], shown["equal"]) == ("6", "1.00")


def test_measurements_that_fail_are_left_out_of_table_and_plot(tmp_path, monkeypatch, capsys):
    """This includes failures after the first round, and problems that have nothing to be compared with."""
    calls = []

    def measure(options, problem, way, runs, processes, threads):
        calls.append((problem, way, runs))
        failing = {("scan", "compiled", 1), ("cogs", "plain", 1), ("cogs", "compiled", 1)}
        if calls[-1] in failing or (calls[-1] == ("scan", "packed", 4) and calls.count(calls[-1]) == 2):
            return None
        numbers = {"runs_per_hour": 10.0 * runs, "step_per_run": 0.1, "memory": 1.0, "roofline": float("nan"), "products": 0.5}
        return numbers | {"startup": 1.0, "step": 0.1}

    monkeypatch.setattr(packed_training, "measure", measure)
    words = ["--device", "cuda", "--problem", "scan", "cogs", "--runs", "1", "2", "4", "--rounds", "2"]
    monkeypatch.setattr("sys.argv", ["packed_training", *words, "--output", str(tmp_path)])
    packed_training.main()
    with (tmp_path / "packed_training_cuda.csv").open() as stream:
        rows = [(row["problem"], row["way"], float(row["ratio_to_plain"])) for row in csv.DictReader(stream)]
    assert rows == [("scan", "plain", 1.0), ("scan", "packed, 1 a process", 1.0), ("scan", "packed, 2 a process", 2.0)]
    assert (tmp_path / "packed_training_cuda.png").stat().st_size > 1000
    assert "cogs: left out" in capsys.readouterr().err


def test_measurements_that_take_too_long_or_fail_are_ended_and_reported(monkeypatch, capsys):
    monkeypatch.setattr(packed_training, "BEGAN", packed_training.time.perf_counter() - 60)
    options = packed_training.argparse.Namespace(steps=1, device="cpu", batch_size=2, minutes=1)
    assert packed_training.measure(options, "scan", "plain", 1, 2, 1) is None
    assert "scan: plain, 1 runs, is not measured: 1 minutes are over" in capsys.readouterr().err
    options = packed_training.argparse.Namespace(steps=1, device="nonsense", batch_size=None, minutes=None)
    assert packed_training.measure(options, "scan", "packed", 1, 1, 1) is None
    assert "does not work here; the error is above" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted({*available("models")} - {"kernel_machine", *ADAPTED, *FACTORIZATIONS}))
def test_the_plain_network_of_every_model_computes_the_same_loss(name):
    """From the same weights, on the same examples, without dropout, and without a regularizer, whose noise differs."""
    case = small.problem(name)
    case = replace(case, model_parameters=case.model_parameters | {"dropout": 0.0})
    pack = Pack(case, [fresh_state(case, 0, 0.0)], None)
    rows = torch.from_numpy(pack.train.draw(0, range(1), case.settings["batch_size"]))
    pack.rows.copy_(rows)
    trainer = plain_training.Trainer(case)
    trainer.network.eval()
    for module in trainer.network.modules():
        module.train(isinstance(module, torch.nn.BatchNorm2d))  # with the batch's own statistics, as in training
    torch.testing.assert_close(trainer.loss(rows[0]), pack.gradient()[0][0].detach(), rtol=1e-5, atol=1e-5)
    before = [weight.detach().clone() for weight in trainer.network.parameters()]
    trainer.step()
    assert any(not torch.equal(*pair) for pair in zip(before, trainer.network.parameters(), strict=True))


@pytest.mark.parametrize("name", plain_factorizations.PROBLEMS)
def test_the_dense_factorization_takes_the_same_steps(name, monkeypatch):
    task, model, changes = plain_factorizations.PROBLEMS[name]
    size = {"side": 12, "rank": 2} if name == "matrix" else {"dimension": 4, "ranks": [2, 2] if name == "hierarchical" else [2]}
    changes = changes | size | {"train_measurements": 60, "test_measurements": 4}
    monkeypatch.setitem(plain_factorizations.PROBLEMS, name, (task, model, changes))
    case = plain_factorizations.problem_of(name)
    case = replace(case, settings=case.settings | {"batch_size": 60})
    pack, theirs = Pack(case, [fresh_state(case, seed, 0.0) for seed in range(2)], None), plain_factorizations.plain(name, case)
    for step in range(1, 4):
        pack.advance(step)
        (ours,) = (value for at, *_, metric, value in pack.states[0].history if (at, metric) == (step, "loss"))
        assert theirs(1) == pytest.approx(ours, rel=1e-4)


def test_the_plain_kernel_machines_give_the_same_outputs():
    case = small.problem("kernel_machine", task="context_dependence")
    options, train = case.model_parameters | {"machine": "svc", "penalty": 1.0}, case.splits["train"]
    theirs, targets = plain_training.fit(replace(case, model_parameters=options))
    weights = {name: values.unsqueeze(0) for name, values in case.model.fit(options, case.about, train).items()}
    batch = train.batch(torch.arange(len(train)).unsqueeze(0))
    ours = case.model.forward(options, weights, batch, silent_tap)
    assert theirs.shape == (len(targets), theirs.shape[1])
    assert ours[0].numpy() == pytest.approx(theirs, abs=1e-3)


def test_every_model_that_is_written_here_is_measured():
    known = problems.configuration()
    modules = {known.module("models", own.model) for own in problems.FAMILIES.values() if not own.overlay}
    modules |= {"compositional.models.vision_transformer"}
    assert {name.rpartition(".")[2] for name in modules} == {*available("models")} - ADAPTED


@pytest.mark.parametrize(("way", "runs"), [("plain", 1), ("packed", 2)])
def test_a_worker_takes_steps_and_says_where_their_time_goes(way, runs):
    mine, theirs = Pipe()
    for order in (2, 0, True):
        mine.send(order)
    families.serve(theirs, "images", small.problem("cnn", "entropy"), way, runs)
    first, (each, peak), rest = (mine.recv() for _ in range(3))
    assert min(first, each, peak, rest["megabytes"]) > 0
    shares = [rest[name] for name in family_table.PARTS]
    assert sum(shares) == pytest.approx(1)
    assert min(shares[:3]) > 0
    assert rest["operations"] > 0 or way == "plain"


def test_the_profiler_sees_every_compiled_function():
    modules = [module for name, module in sys.modules.items() if name.startswith("compositional.")]
    before = {(module, name) for module in modules for name, own in vars(module).items() if isinstance(own, Dispatcher)}
    assert {"adam_moments", "fill", "_keep", "_losses", "_shares", "_forward"} <= {name for _, name in before}
    with families.compiled_shown():
        assert not [name for module, name in before if isinstance(vars(module)[name], Dispatcher)]
        by_width = [*looking_compiled._compiled(4), *lstm_compiled._compiled(4)]
    assert not [own for own in by_width if isinstance(own, Dispatcher)]
    assert all(isinstance(vars(module)[name], Dispatcher) for module, name in before)


def test_what_is_measured_is_drawn_kept_and_compared(tmp_path, monkeypatch, capsys):
    numbers = {"milliseconds": 2.0, "ratio": 1.5, "least": 1.4, "greatest": 1.6, "share_of_peak": 0.3, "megabytes": 600.0}
    numbers |= dict.fromkeys(family_table.PARTS, 0.25)

    def measure(name, options):
        return [
            {"family": name, "way": way, "runs": runs} | numbers for way, runs in (("plain", 1), ("packed", 1), ("packed", 4))
        ]

    monkeypatch.setattr(families, "measure", measure)
    monkeypatch.setattr(problems, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(families, "ROOT", tmp_path)
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).mkdir()
    page = tmp_path / "docs" / "performance.md"
    page.write_text(f"Before.\n\n{family_table.BEGIN}\nold\n{family_table.END}\n\nAfter.\n")
    monkeypatch.setattr("sys.argv", ["families", "--keep"])
    families.main()
    with (tmp_path / "benchmarks" / "reference.csv").open() as stream:
        assert [row["family"] for row in csv.DictReader(stream)] == [name for name in problems.FAMILIES for _ in range(3)]
    assert (tmp_path / "docs" / "families.png").stat().st_size > 1000
    before, rest = page.read_text().split(family_table.BEGIN)
    table, after = rest.split(family_table.END)
    assert (before, after) == ("Before.\n\n", "\n\nAfter.\n")
    assert f"| {next(iter(problems.FAMILIES))} | 2 | **1.5** (1.4 to 1.6) | 4: **1.5**" in table
    assert "old" not in table
    numbers |= {"ratio": 1.0, "least": 0.9, "greatest": 1.1}
    monkeypatch.setattr("sys.argv", ["families", "--short", "--family", "digits, CNN"])
    with pytest.raises(SystemExit, match="True"):
        families.main()
    assert "digits, CNN, 4 runs: slower, 1.00 (0.90 to 1.10) times plain; kept: 1.50" in capsys.readouterr().out


def test_slower_is_what_lost_a_tenth_and_lies_outside_the_kept_range():
    kept = [{"family": "a", "way": "packed", "runs": "4", "ratio": "4", "least": "3.5", "greatest": "4.5"}]

    def found(ratio, least, greatest, family="a"):
        row = {"family": family, "way": "packed", "runs": 4, "ratio": ratio, "least": least, "greatest": greatest}
        return family_table.slower([row], kept)

    assert found(3.7, 3.4, 3.9) == []  # less than a tenth
    assert found(3.5, 3.2, 3.6) == []  # within the kept range
    assert found(3.0, 2.9, 3.4) == ["a, 4 runs: slower, 3.00 (2.90 to 3.40) times plain; kept: 4.00 (3.50 to 4.50)"]
    assert "nothing is kept" in found(3.0, 2.9, 3.4, "b")[0]


@pytest.mark.parametrize(
    ("model", "data"), [("gru_attention", "scan"), ("batchnorm_cnn", "mnist"), ("batchnorm_cnn_torch", "mnist")]
)
def test_the_comparison_of_ordinary_modules_takes_steps(model, data):
    problem = networks.problem_of(model, data, 16)
    networks.packed(problem, 1)(1)
    if problem.model.Network:
        networks.plain(problem)(1)


def test_the_page_on_architecture_counts_the_positions_of_a_batch_of_cogs():
    case = problems.problem_of("COGS, transformer")
    split, rows = case.splits["train"], case.settings["batch_size"]
    chunks = split.training_layout(rows).input_chunks(1)
    computed = sum(rows * length for rows, length in zip(chunks.rows, chunks.lengths, strict=True))
    padded = rows * (split.inputs.shape[1] + 1)  # with the start word
    words = round(rows * float(split.input_lengths.double().mean()))
    page = " ".join((Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8").split())
    assert f"computes {computed} positions per batch, of which {words} are words and end symbols on average" in page
    assert f"padded to the longest input, it would be {padded:,}" in page
