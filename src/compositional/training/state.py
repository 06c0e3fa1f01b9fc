"""One run in training: its current state, which is what a checkpoint holds, and when it has ended."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from compositional.runs import Run
from compositional.training.optimizers import moment_size
from compositional.training.problem import Problem, initial_weights, weight_layout


@dataclass(eq=False)
class State:
    """One run in training: everything that a checkpoint must hold. States are compared by identity."""

    seed: int
    strength: float  # lambda
    step: int = 0
    diverged_at: int | None = None
    # Flat weights, first and second moments, each (P,); the moments of group_rmsprop are one number each.
    tensors: dict[str, Tensor] = field(default_factory=dict)
    history: list[tuple[int, str, str, float]] = field(default_factory=list)
    seconds: float = 0.0

    def described(self) -> dict[str, Any]:
        """Everything but the tensors, in a form that JSON can hold."""
        return {own.name: getattr(self, own.name) for own in fields(self) if own.name != "tensors"}

    @classmethod
    def restored(cls, described: dict[str, Any], tensors: dict[str, Tensor]) -> State:
        """The run of a checkpoint. JSON turned the tuples of its history into lists."""
        return cls(**described | {"history": [tuple(row) for row in described["history"]]}, tensors=tensors)


def fresh_state(problem: Problem, seed: int, strength: float) -> State:
    """A run before its first step."""
    flat = weight_layout(problem).flatten(initial_weights(problem, seed))
    zeros = torch.zeros(moment_size(problem.settings, len(flat)))
    return State(seed, strength, tensors={"weights": flat, "first_moment": zeros, "second_moment": zeros.clone()})


def begun(problem: Problem, run: Run, checkpoint: tuple[dict[str, Any], dict[str, Tensor]] | None) -> State:
    """A run as its checkpoint has it, or before its first step."""
    return State.restored(*checkpoint) if checkpoint else fresh_state(problem, run.seed, run.strength)


def has_ended(state: State, settings: dict[str, Any]) -> bool:
    """Whether a run needs no more steps: its budget is used up, it diverged, or its training loss stayed low (`stop_loss`)."""
    if state.step >= settings["steps"] or state.diverged_at is not None:
        return True
    if settings["stop_loss"] is None:
        return False
    losses = ((step, value) for step, split, metric, value in reversed(state.history) if (split, metric) == ("train", "loss"))
    low_since = None
    for step, value in losses:
        if not value < settings["stop_loss"]:
            break
        low_since = step
    return low_since is not None and state.step - low_since >= settings["stop_steps"]
