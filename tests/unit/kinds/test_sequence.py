"""Batches of sequences: sorting, stratified draws, exact match and decoding."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.trained import weights_of
from torch import nn

from compositional.evaluation import decoding, metrics
from compositional.language.vocabulary import END, PAD, START
from compositional.layers import recurrent
from compositional.layers.ragged import Chunks, Layout
from compositional.training.loop import train_runs
from compositional.training.state import fresh_state


def test_layout_orders_are_inverse_permutations_and_count_running_rows():
    layout = Layout([30] * 4 + [20] * 12 + [1] * 16, [5] * 32)
    # Three chunks cost 4 * 32 + 12 * 20 + 16 positions plus their calls; the first is padded to a multiple of 16 positions.
    assert layout.target_chunks == Chunks((4, 12, 16), (32, 20, 1))
    assert len(layout.positions) == 128 + 240 + 16
    assert layout.writing.sizes == (32, *[16] * 19, *[4] * 10)
    assert torch.equal(layout.to_chunks[layout.to_steps], torch.arange(32 + 19 * 16 + 10 * 4))
    # Step order is by step, then by row: index 32 is the first row's second step. Padding refers to its row's last step.
    assert layout.positions[layout.to_steps[32]].tolist() == [0, 1]
    assert layout.positions[31].tolist() == [0, 31]
    assert layout.writing.positions[layout.to_chunks[31]].tolist() == [0, 29]


def test_chunks_of_inputs_consist_of_chunks_of_targets_and_have_their_longest_input():
    layout = Layout([30] * 4 + [20] * 12 + [1] * 16, [9, 1, 1, 1, *[5] * 12, *[2] * 16])
    # Apart, the first two chunks would have 4 * 12 + 12 * 8 positions and one call more: 176 instead of 160.
    chunks = layout.input_chunks(1)
    assert chunks == Chunks((16, 16), (10, 3))
    values = torch.randn(2, 32, 8, 3)
    packed = chunks.packed(values)
    assert packed.shape == (2, 16 * 10 + 16 * 3, 3)
    first, second, third = chunks.within(chunks.cut(packed), layout.target_chunks.rows)
    assert torch.equal(first[:, :, :8], values[:, :4])
    assert torch.equal(second[:, :, :8], values[:, 4:16])
    assert not second[:, :, 8:].any()
    assert torch.equal(third, values[:, 16:, :3])
    back = chunks.rectangle(packed, 8)
    assert torch.equal(back[:, :16], values[:, :16])
    assert torch.equal(back[:, 16:, :3], values[:, 16:, :3])
    assert not back[:, 16:, 3:].any()


def test_inputs_are_read_longest_first_by_groups_of_rows():
    reading = Layout([1] * 16, [1, 2, 3, 1] * 4).reading
    # The four rows with three words, the four with two, and the others.
    assert reading.sizes == (16, 8, 4)
    assert reading.positions[:9, 0].tolist() == [2, 6, 10, 14, 1, 5, 9, 13, 0]
    assert reading.places(torch.tensor([2, 1, 1, 0]), torch.tensor([2, 1, 2, 2])).tolist() == [24, 20, 20, 8]


def test_the_encoder_equals_pytorch_s_bidirectional_one_and_so_does_its_gradient(scan_splits):
    torch.manual_seed(0)
    split = scan_splits["train"]
    batch = split.batch(torch.from_numpy(split.draw(1, range(2), 32)), split.training_layout(32))
    assert len(batch.layout.reading.positions) < batch.inputs[0].numel()  # otherwise the test would leave out no padding
    parts = {"input": (5, 24), "recurrent": (6, 24), "bias": (24,)}
    weights = {f"encoder.{way}.{part}": torch.randn(2, *parts[part]) for way in ("forward", "backward") for part in parts}
    embedded = torch.randn(*batch.inputs.shape, 5, requires_grad=True)
    seen = torch.randn(*batch.inputs.shape, 12) * batch.input_mask.unsqueeze(-1), torch.randn(2, 32, 12)
    states, ends = recurrent.encode(weights, embedded, batch.layout.reading, batch.input_lengths, batch.input_mask)
    gradient = torch.autograd.grad((states * seen[0]).sum() + (ends * seen[1]).sum(), embedded)[0]
    for run in range(2):
        reference = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
        for way, suffix in (("forward", ""), ("backward", "_reverse")):
            for part, name in (("input", "weight_ih"), ("recurrent", "weight_hh"), ("bias", "bias_ih")):
                # PyTorch's order of gates is input, forget, candidate, output.
                into, keep, out, candidate = weights[f"encoder.{way}.{part}"][run].chunk(4, -1)
                gates = torch.cat([into, keep, candidate, out], -1)
                getattr(reference, f"{name}_l0{suffix}").data = gates.T if part != "bias" else gates
            getattr(reference, f"bias_hh_l0{suffix}").data.zero_()
        words = embedded[run].detach().requires_grad_()
        sequences = nn.utils.rnn.pack_padded_sequence(words, batch.input_lengths[run], batch_first=True, enforce_sorted=False)
        found, (last, _) = reference(sequences)
        found, _ = nn.utils.rnn.pad_packed_sequence(found, batch_first=True, total_length=words.shape[1])
        last = last.transpose(0, 1).flatten(1)
        torch.testing.assert_close(states[run] * batch.input_mask[run].unsqueeze(-1), found, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ends[run], last, atol=1e-5, rtol=1e-5)
        (expected,) = torch.autograd.grad((found * seen[0][run]).sum() + (last * seen[1][run]).sum(), words)
        torch.testing.assert_close(gradient[run], expected, atol=1e-5, rtol=1e-5)


def test_a_batch_contains_the_requested_examples(scan_splits):
    split = scan_splits["train"]
    layout = split.training_layout(64)
    rows = torch.from_numpy(split.draw(7, range(3), 64))
    batch = split.batch(rows, layout)
    row = layout.positions[:, 0]
    for run, index in ((0, 0), (2, 63), (1, 30)):
        example = rows[run, index]
        own = (row == index) & batch.target_mask[run]
        length = int(split.target_lengths[example])
        assert batch.targets[run][own].tolist() == split.targets[example][:length].tolist()
        assert batch.targets[run][own].tolist()[-1] == END
        assert batch.previous[run][own].tolist() == [START, *split.targets[example][: length - 1].tolist()]
        assert batch.inputs[run, index].tolist() == split.inputs[example].tolist()
        assert (batch.inputs[run, index] != PAD).sum() == batch.input_mask[run, index].sum()


def test_stratified_draws_fit_the_layout_and_are_uniform(scan_splits):
    split = scan_splits["train"]
    rows = split.draw(3, range(4000), 64)
    layout = split.training_layout(64)
    assert (split.lengths[rows] <= layout.targets).all()
    assert (split.input_lengths.numpy()[rows] <= layout.inputs).all()
    counts = np.bincount(rows.ravel(), minlength=len(split))
    expected = rows.size / len(split)
    # Each count is a sum of Bernoulli variables, so its variance is at most the mean; 6 standard deviations are allowed.
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_greedy_decoding_agrees_with_teacher_forced_exact_match(problem):
    for model in ("primitive_attention", "lstm_attention"):
        case = problem(model, steps=400, record_every=400)
        state = fresh_state(case, 0, 0.0)
        train_runs(case, [state], metrics.measure)
        weights = weights_of(case, [state])
        (measured,) = metrics.measure(case, weights)
        for split in ("train", "test"):
            (decoded,) = decoding.predictions(case, weights, split, len(case.splits[split]))
            assert len(decoded) == len(case.splits[split])
            share = np.mean([target == guess for _, target, guess in decoded])
            assert share == pytest.approx(measured[(split, "accuracy")], abs=1e-6)  # float32 against float64
        # Accuracies must be neither 0 nor 1, or the comparison would show little.
        assert 0.02 < measured[("train", "accuracy")] < 1


def test_evaluation_visits_every_example_once(scan_splits):
    rows = torch.cat([rows for rows, _ in scan_splits["test"].evaluation_batches(2, 48)])
    assert rows.tolist() == list(range(len(scan_splits["test"])))


def test_a_limited_evaluation_uses_evenly_spaced_examples(scan_splits):
    split = scan_splits["train"]
    ((rows, batch),) = split.evaluation_batches(1, 16, 3)
    last = len(split) - 1
    assert rows.tolist() == [0, round(last / 2), last]
    # The batch has 16 rows; those after the third repeat it.
    assert batch.inputs.shape[1] == 16
    assert (batch.inputs[0, 2:] == split.inputs[last]).all()


def test_the_loss_is_a_sum_over_positions_and_a_mean_over_examples(problem):
    case = problem("primitive_attention")
    symbols = len(case.about["target_words"])
    case.model = replace(
        case.model, forward=lambda parameters, weights, batch, tap: torch.zeros(1, len(batch.layout.positions), symbols)
    )
    (found,) = metrics.measure(case, {"none": torch.zeros(1, 1)})
    for name, split in case.splits.items():
        # The loss of a uniform model is log V per position, including the end symbol.
        assert found[name, "loss"] == pytest.approx(split.target_lengths.double().mean().item() * math.log(symbols), rel=1e-6)
