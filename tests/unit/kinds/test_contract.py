"""What splits and batches of every kind of task must do, with a small task and a small model (support/small.yaml)."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch
from support import small
from support.trained import untrained

from compositional.layers.tap import silent_tap
from compositional.training.problem import Problem

KINDS = small.names("kinds")


def loaded(kind: str) -> dict:
    """The members of the kind's task."""
    folder = small.split(small.entry("kinds", kind)["task"])
    return import_module(f"compositional.kinds.{kind}").load(folder, "cpu")


def problem_of(kind: str) -> Problem:
    own = small.entry("kinds", kind)
    return small.problem(own["model"], task=own["task"])


def outputs_of(case: Problem, batch) -> torch.Tensor:
    """The outputs of the untrained model for the two runs of a batch; random ones if the model computes a single run."""
    if case.model.Network:
        return torch.randn(2, *batch.output_shape(case.about), generator=torch.Generator().manual_seed(0))
    return case.model.forward(case.model_parameters, untrained(case, (0, 1)), batch, silent_tap)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_depend_on_key_and_step_alone(kind):
    train, size = loaded(kind)["train"], problem_of(kind).settings["batch_size"]
    drawn = train.draw(7, range(6), size)
    assert len(drawn) == 6
    np.testing.assert_array_equal(train.draw(7, range(3, 6), size), drawn[3:])
    is_full = size == len(train)  # every step uses all examples
    assert np.array_equal(train.draw(8, range(6), size), drawn) == is_full


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_has_a_loss_and_metrics(kind):
    case, train = problem_of(kind), loaded(kind)["train"]
    size = case.settings["batch_size"]
    rows = torch.from_numpy(train.draw(7, range(2), size).copy())
    batch = train.training_batches(size)(rows)
    outputs = outputs_of(case, batch)
    for loss in import_module(f"compositional.kinds.{kind}").LOSSES:
        losses = batch.losses(outputs, loss)
        assert losses.isfinite().all()
        assert (losses >= 0).all()
        assert batch.example_losses(losses).shape == (2, size)
        torch.testing.assert_close(batch.example_losses(losses).sum(1), losses.sum(1))
    for values in batch.metrics(outputs).values():
        assert values.shape == (2, size)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_sees_every_example_once_and_not_more_than_the_limit(kind):
    case = problem_of(kind)
    for split in loaded(kind).values():
        for limit in (None, 3):
            batches = split.evaluation_batches(2, 16, limit)
            rows = torch.cat([rows for rows, _ in batches])
            assert len(rows) == len(rows.unique())
            assert len(rows) == len(split) or (limit and len(rows) <= limit)
            for own, batch in batches:
                losses = batch.example_losses(batch.losses(outputs_of(case, batch), case.settings["loss"]))
                assert losses.shape[0] == 2
                assert losses.shape[1] >= len(own)  # the last batch may be padded
