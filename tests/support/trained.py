"""Training in tests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

import torch

from compositional.evaluation import learning_curves
from compositional.training.loop import train_runs
from compositional.training.problem import Problem
from compositional.training.state import State, fresh_state


def unguarded() -> AbstractContextManager:
    """A context without guards, for plug-ins that have already passed them: guards cost more than a few small steps."""
    return mock.patch("compositional.training.guards.check_training")


def train(problem: Problem, runs: list[tuple[int, float]], **kwargs) -> list[State]:
    """Train (seed, lambda) pairs together and return their states."""
    states = [fresh_state(problem, seed, strength) for seed, strength in runs]
    train_runs(problem, states, learning_curves.measure, **kwargs)
    return states


def same(left: State, right: State) -> bool:
    """Equal to the bit in weights, optimizer state and curves."""
    tensors = all(torch.equal(left.tensors[name], right.tensors[name]) for name in left.tensors)
    return tensors and repr(left.history) == repr(right.history)
