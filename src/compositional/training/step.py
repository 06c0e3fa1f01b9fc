"""What a regularizer sees of a training step.

A regularizer is a module with

    APPLIES_TO       kinds of task, "sequence" and "image"
    REPRESENTATIONS  names of model representations of which it needs at least one (empty: any model)
    PARAMETERS       its options, as JSON schema, each with default and description
    PAIRED           optional, True: it pairs the examples of a batch, whose number must be even
    penalty(step)    the term R of the loss, (R,): one number a run
    perturb(step, representation)   optional: what the forward pass continues with instead of a representation
    watch(batch)     optional: what the forward pass is given instead of the batch, such as inputs that gradients are taken of
    prepare(parameters, split)      optional: what it learns from the training set, once (`step.prepared`)

The loss is L + lambda R. L is a mean over the examples of a batch; of sequences, cross entropy is summed over their symbols first
(not averaged), so that a lambda here is that of a mean over symbols times their number (about 15 in SCAN, the end included).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from types import ModuleType
from typing import Any

import torch
from torch import Tensor


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
class Step:
    """One forward pass of a pack: its batch, what its model showed on the way, and the means to do another pass.

    active: (R,) 1.0 where lambda > 0, else 0.0 (a run without the term has no noise either).
    outputs: logits of the main pass. normal: fresh standard normal noise of a shape. again: a pass over another batch
    without perturbation (and with dropout of its own), as (logits, representations).
    """

    parameters: dict[str, Any]
    batch: Any
    active: Tensor
    normal: Callable[[torch.Size], Tensor]
    again: Callable[[Any], tuple[Tensor, list[Representation]]]
    prepared: Any = None
    outputs: Tensor | None = None
    representations: list[Representation] = field(default_factory=list)

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


def divergence(ours: Tensor, theirs: Tensor) -> Tensor:
    """Jensen-Shannon divergence of two distributions, given as log probabilities (..., V): (...)."""
    middle = torch.logaddexp(ours, theirs) - math.log(2)
    return ((ours.exp() * (ours - middle)).sum(-1) + (theirs.exp() * (theirs - middle)).sum(-1)) / 2


def silent_tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
    """The tap of evaluation: nothing recorded, nothing changed."""
    return values


def dropout(tap: Callable, values: Tensor, rate: float) -> Tensor:
    """Zero a share `rate` of the units (R, ...) and scale the others up, in training (where the tap has noise) only.

    The units are those whose normal number lies below the quantile of `rate`: every run draws its own.
    """
    noise = getattr(tap, "noise", None)
    if noise is None or rate == 0:
        return values
    keep = noise(values.shape[1:]) > NormalDist().inv_cdf(rate)
    return values * keep.to(values.dtype).mul_(1 / (1 - rate))
