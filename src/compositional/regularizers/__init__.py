"""Regularizers: terms added to the loss, scaled by lambda. A regularizer is a module that defines what `Regularizer` lists.

The loss is L + lambda R. L is a mean over the examples of a batch. For sequences, cross entropy is summed, not averaged, over the
symbols of an example. A loss that averages over symbols would therefore need a lambda divided by the mean number of symbols (13.7
in SCAN jump, including the end symbol).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from compositional.kinds import Batch

BatchT = TypeVar("BatchT", bound=Batch)
_EMPTY = torch.empty(0)


@dataclass(frozen=True)
class Representation:
    """A named activation: values (R, B, ..., D) and, for sequences, the mask (R, B, S) of valid positions."""

    name: str
    values: Tensor
    mask: Tensor | None

    def squared_norm(self) -> Tensor:
        """Squared values, averaged over the width, summed over valid positions and averaged over the batch: (R,)."""
        squares = (self.values * self.values).mean(-1)
        if self.mask is not None:
            squares = (squares * self.mask).sum(-1)
        return squares.mean(-1)


@dataclass
class Step(Generic[BatchT]):
    """One forward pass of a pack: its batch, the representations that the model passed to the tap, and a way to do another pass.

    parameters: the regularizer's options.
    active: (R,), 1.0 if lambda > 0, else 0.0 (a run without the term has no noise either).
    normal: from a shape to fresh standard normal noise (R, *shape).
    again: another pass, without perturbation and with its own dropout; from a batch to (outputs, representations).
    prepared: the result of the regularizer's `prepare`.
    outputs: the outputs of the main pass; empty until it has ended.
    strength: lambda, (R,).
    weights: the trained weights, (R, ...) by name.
    loss: the name of the task's loss.
    """

    parameters: dict[str, Any]
    batch: BatchT
    active: Tensor
    normal: Callable[[torch.Size], Tensor]
    again: Callable[[BatchT], tuple[Tensor, list[Representation]]]
    prepared: Any = None
    outputs: Tensor = _EMPTY
    representations: list[Representation] = field(default_factory=list)
    strength: Tensor = _EMPTY
    weights: dict[str, Tensor] = field(default_factory=dict)
    loss: str = "cross_entropy"

    def named(self, names: tuple[str, ...]) -> list[Representation]:
        """The representations with these names so far, in the model's order; several may have the same name."""
        return [shown for shown in self.representations if shown.name in names]


def _nothing_to_prepare(parameters: dict[str, Any], split: Any) -> None:
    return None


def _the_batch_itself(batch: Any) -> Any:
    return batch


@dataclass(frozen=True)
class Regularizer:
    """The contract of a module in this folder. Names with a default are optional."""

    # The kinds of task that it supports: modules of `kinds`.
    APPLIES_TO: tuple[str, ...]
    # Names of representations; a model must have at least one of them (empty: any model will do).
    REPRESENTATIONS: tuple[str, ...]
    # Its options as JSON schema, each with a default and a description.
    PARAMETERS: dict[str, dict[str, Any]]
    # penalty(step): the term R of the loss, (R,): one number per run.
    penalty: Callable[[Step], Tensor]
    # Whether it pairs the examples of a batch. The batch size must then be even.
    PAIRED: bool = False
    # Lambda must be smaller than this.
    LAMBDA_BELOW: float | None = None
    # prepare(parameters, split): what it computes once from the training set (`step.prepared`).
    prepare: Callable[[dict[str, Any], Any], Any] = _nothing_to_prepare
    # watch(batch): the batch that replaces the original one in the forward pass, for example with inputs that require gradients.
    watch: Callable[[Any], Any] = _the_batch_itself
    # perturb(step, representation): the values that replace those of a representation in the rest of the forward pass.
    perturb: Callable[[Step, Representation], Tensor] | None = None
