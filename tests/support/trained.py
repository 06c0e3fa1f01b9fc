"""Training in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from compositional.evaluation import learning_curves
from compositional.models import Model
from compositional.plugins import defaults, load
from compositional.regularizers import Regularizer
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, initial_weights, weight_layout
from compositional.training.state import State, fresh_state


def problem_of(
    model: str,
    about: dict[str, Any],
    splits: dict[str, Any],
    settings: dict[str, Any],
    options: dict[str, Any] | None = None,
    regularizer: str | None = None,
    terms: dict[str, Any] | None = None,
    *,
    task: str = "test",
    device: str = "cpu",
) -> Problem:
    """A problem of plug-ins with their default options and settings, except those given. terms: options of the regularizer."""
    return Problem(
        task=task,
        about=about,
        splits=splits,
        model_name=model,
        model=load(Model, f"models.{model}"),
        model_parameters=defaults(f"models.{model}") | (options or {}),
        regularizer=load(Regularizer, f"regularizers.{regularizer}") if regularizer else None,
        regularizer_parameters=defaults(f"regularizers.{regularizer}") | (terms or {}) if regularizer else {},
        settings=defaults("training.settings") | settings,
        device=device,
    )


def unguarded() -> AbstractContextManager:
    """A context without guards, for plug-ins that have already passed them: guards cost more than a few small steps."""
    return mock.patch("compositional.training.guards.check_training")


def train(problem: Problem, runs: list[tuple[int, float]], measure: Callable = learning_curves.measure, **kwargs) -> list[State]:
    """Train (seed, lambda) pairs together and return their states."""
    states = [fresh_state(problem, seed, strength) for seed, strength in runs]
    train_runs(problem, states, measure, **kwargs)
    return states


def train_plain(problem: Problem, seeds: Iterable[int] = (0,), **kwargs) -> list[State]:
    """Train plain runs together and return their states."""
    return train(problem, [(seed, 0.0) for seed in seeds], **kwargs)


def untrained(problem: Problem, seeds: Iterable[int] = (0,)) -> dict[str, Tensor]:
    """Everything that a forward pass of untrained runs needs, (R, ...) by name."""
    each = [initial_weights(problem, seed) | buffers(problem, seed) for seed in seeds]
    return {name: torch.stack([own[name] for own in each]) for name in each[0]}


def independent(problem: Problem, runs: list[tuple[int, float]], alone: Iterable[int] | None = None) -> list[State]:
    """Train runs as one pack, and assert that they have the same bits alone; alone: indices of those to train (default: all)."""
    together = train(problem, runs)
    with unguarded():
        for index in range(len(runs)) if alone is None else alone:
            assert same(*train(problem, [runs[index]]), together[index])
    return together


def weights_of(problem: Problem, states: list[State]) -> dict[str, Tensor]:
    """The weights of runs, (R, ...) by name."""
    return weight_layout(problem).views(torch.stack([state.tensors["weights"] for state in states]))


def same(left: State, right: State) -> bool:
    """Equal to the bit in weights, optimizer state and curves."""
    tensors = all(torch.equal(left.tensors[name], right.tensors[name]) for name in left.tensors)
    return tensors and repr(left.history) == repr(right.history)
