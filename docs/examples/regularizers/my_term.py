"""Small encoder states: R = mean over width and batch, sum over an input's words, of h^2."""

from __future__ import annotations

from torch import Tensor

from compositional.regularizers import Step

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states",)
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """One number per run, (R,): values (R, B, S, D) and the mask (R, B, S) of words that are no padding; R is the axis of runs."""
    (shown,) = step.named(REPRESENTATIONS)
    squares = shown.values.square().mean(-1) * shown.mask
    return squares.sum((1, 2)) / squares.shape[1]  # never over axis 0
