"""Terms added to the loss, scaled by lambda. A regularizer is a module with what `Regularizer` says.

The loss is L + lambda R. L is a mean over the examples of a batch; of sequences, cross entropy is summed over their symbols first
(not averaged), so that a lambda here is that of a mean over symbols times their number (13.7 in SCAN jump, the end included).
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
    """A named activation: values (R, B, ..., D) and, for sequences, the mask (R, B, S) of its valid positions."""

    name: str
    values: Tensor
    mask: Tensor | None

    def squared_norm(self) -> Tensor:
        """Mean over width, sum over valid positions, mean over the batch, of squared values: (R,)."""
        squares = (self.values * self.values).mean(-1)
        if self.mask is not None:
            squares = (squares * self.mask).sum(-1)
        return squares.mean(-1)


@dataclass
class Step(Generic[BatchT]):
    """One forward pass of a pack: its batch, what its model showed on the way, and the means to do another pass.

    active: (R,) 1.0 where lambda > 0, else 0.0 (a run without the term has no noise either). strength: lambda, (R,).
    weights: what is trained, (R, ...) by name. loss: the name of the task's loss.
    outputs: of the main pass, none while it lasts. normal: fresh standard normal noise of a shape. again: a pass over another
    batch without perturbation (and with dropout of its own), as (logits, representations).
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
        """What the model has shown under these names so far, in its order; a model may show several of one name."""
        return [shown for shown in self.representations if shown.name in names]


def _nothing_to_prepare(parameters: dict[str, Any], split: Any) -> None:
    return None


def _the_batch_itself(batch: Any) -> Any:
    return batch


@dataclass(frozen=True)
class Regularizer:
    """What a module here defines; what has a default, where it needs that."""

    # Kinds of task, modules of `kinds`.
    APPLIES_TO: tuple[str, ...]
    # Names of model representations of which it needs at least one (empty: any model).
    REPRESENTATIONS: tuple[str, ...]
    # Its options, as JSON schema, each with default and description.
    PARAMETERS: dict[str, dict[str, Any]]
    # penalty(step): the term R of the loss, (R,): one number per run.
    penalty: Callable[[Step], Tensor]
    # It pairs the examples of a batch, whose number must be even.
    PAIRED: bool = False
    # Lambda must be smaller than this.
    LAMBDA_BELOW: float | None = None
    # prepare(parameters, split): what it learns from the training set, once (`step.prepared`).
    prepare: Callable[[dict[str, Any], Any], Any] = _nothing_to_prepare
    # watch(batch): what the forward pass is given instead of the batch, such as inputs that gradients are taken of.
    watch: Callable[[Any], Any] = _the_batch_itself
    # perturb(step, representation): what the forward pass continues with instead of a representation's values.
    perturb: Callable[[Step, Representation], Tensor] | None = None
