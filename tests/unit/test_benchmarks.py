"""Both sides of benchmarks/packed_training.py train: a comparison with something that does not run would be meaningless."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest
import torch

from compositional.layers.tap import silent_tap

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import packed_training
import plain


@pytest.mark.parametrize("problem", ["scan", "mnist", "cogs"])
def test_both_ways_take_a_step(problem):
    batch_size = 16 if problem == "cogs" else None  # the default batch size would take a minute
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

    def gates(values):
        """Our order is input, forget, output, candidate; PyTorch's last two are exchanged."""
        into, keep, out, candidate = values.transpose(0, -1).chunk(4)
        return torch.cat([into, keep, candidate, out])

    for run in range(2):
        one = {name: values[run] for name, values in weights.items()}
        with torch.no_grad():
            theirs.primitive.weight.copy_(one["primitive_embedding"])
            theirs.function.weight.copy_(one["function_embedding"])
            theirs.output.weight.copy_(one["output.weight"].T)
            theirs.output.bias.copy_(one["output.bias"])
            for lstm, prefix, end in (
                (theirs.encoder, "encoder.forward", "l0"),
                (theirs.encoder, "encoder.backward", "l0_reverse"),
                (theirs.decoder, "decoder", "l0"),
            ):
                if f"{prefix}.input" in one:
                    getattr(lstm, f"weight_ih_{end}").copy_(gates(one[f"{prefix}.input"]))
                getattr(lstm, f"weight_hh_{end}").copy_(gates(one[f"{prefix}.recurrent"]))
                getattr(lstm, f"bias_ih_{end}").copy_(gates(one[f"{prefix}.bias"]))
                getattr(lstm, f"bias_hh_{end}").zero_()
            logits, _ = theirs(data.inputs[rows[0]], data.input_lengths[rows[0]], int(data.target_lengths[rows[0]].max()))
        known = batch.target_mask[run]
        place, step = batch.layout.positions[known].unbind(1)
        torch.testing.assert_close(ours[run][known], logits[place, step], atol=1e-5, rtol=1e-4)


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
