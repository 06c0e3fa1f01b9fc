"""What a regularizer sees of a training step, and what a model hands its representations to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
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


class Tap:
    """What a model hands its representations to: records them, lets the regularizer perturb them, and drops units out.

    Args:
        step: where representations are recorded.
        regularizer: whose `perturb` changes them; None: nobody's.
        noise: fresh standard normal noise of a shape, (R, *shape), from the run's own stream for dropout.
    """

    def __init__(self, step: Step, regularizer: ModuleType | None, noise: Callable[[torch.Size], Tensor]) -> None:
        self.step, self.noise = step, noise
        self.perturb = getattr(regularizer, "perturb", None)

    def __call__(self, name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        shown = Representation(name, values, mask)
        self.step.representations.append(shown)
        return values if self.perturb is None else self.perturb(self.step, shown)
