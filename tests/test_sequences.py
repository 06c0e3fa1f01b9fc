"""Batches of sequences: sorting, stratified draws, exact match and decoding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compositional import decoding, evaluation, training
from compositional.sequences import END, PAD, START, Layout, Vocabulary


def test_layout_orders_are_inverse_permutations_and_count_running_rows():
    layout = Layout((3, 1))
    assert layout.sizes == (32, 16, 16)
    assert torch.equal(layout.to_chunks[layout.to_steps], torch.arange(64))
    # Step order is by step, then row: position 32 is the first row's second step.
    assert layout.positions[layout.to_steps[32]].tolist() == [0, 1]


def test_a_batch_holds_the_examples_it_was_asked_for(scan_splits):
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
    assert (np.asarray(split.lengths)[rows] <= np.repeat(split.training_layout(64).lengths, 16)).all()
    counts = np.bincount(rows.ravel(), minlength=len(split))
    expected = rows.size / len(split)
    # Each count is a sum of Bernoulli variables, so its variance is at most the mean: 6 standard deviations.
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_draws_depend_on_key_and_step_alone(scan_splits):
    split = scan_splits["train"]
    whole = split.draw(11, range(10), 64)
    assert np.array_equal(whole[4:], split.draw(11, range(4, 10), 64))
    assert not np.array_equal(whole, split.draw(12, range(10), 64))


def test_vocabulary_round_trip():
    vocabulary = Vocabulary.of(["b a", "c"])
    tokens, lengths = vocabulary.encode(["a c b", "b"])
    assert lengths.tolist() == [4, 2]
    assert [vocabulary.decode(row) for row in tokens.tolist()] == ["a c b", "b"]


def test_greedy_decoding_agrees_with_teacher_forced_exact_match(problem):
    for model in ("primitive_attention", "lstm_attention"):
        case = problem(model, steps=400, record_every=400)
        state = training.start(case, 0, 0.0)
        training.train(case, [state], evaluation.measure)
        weights = training.weight_layout(case).views(state.tensors["weights"][None])
        (measured,) = evaluation.measure(case, weights)
        for split in ("train", "test"):
            (decoded,) = decoding.predictions(case, weights, split, len(case.splits[split]))
            assert len(decoded) == len(case.splits[split])
            share = np.mean([target == guess for _, target, guess in decoded])
            assert share == pytest.approx(measured[(split, "accuracy")], abs=1e-6)  # float32 against float64
        # Neither all right nor all wrong, or the comparison would say little.
        assert 0.02 < measured[("train", "accuracy")] < 1


def test_evaluation_visits_every_example_once(scan_splits):
    rows = torch.cat([rows for rows, _ in scan_splits["test"].evaluation_batches(2, 48)])
    assert rows.tolist() == list(range(len(scan_splits["test"])))
