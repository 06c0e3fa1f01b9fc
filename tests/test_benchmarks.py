"""The two sides of benchmarks/packed_training.py train: a comparison with something that does not run is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import packed_training
import plain


@pytest.mark.parametrize("problem", ["scan", "mnist"])
def test_both_ways_take_a_step(problem):
    trainer = plain.Trainer(problem, packed_training.splits_of(problem, "cpu"), "cpu")
    before = [weight.detach().clone() for weight in trainer.model.parameters()]
    trainer.step()
    moved = [
        (weight.detach() - start).abs().max().item() for weight, start in zip(trainer.model.parameters(), before, strict=True)
    ]
    # Adam's first step is its rate; nothing enters the decoder of SCAN, whose input weights stay.
    assert max(moved) == pytest.approx({"scan": 0.01, "mnist": 0.001}[problem], rel=0.01)
    pack = packed_training.pack_of(problem, 2, "cpu")
    pack.advance(1)
    assert [state.diverged_at for state in pack.states] == [None, None]
