"""Small encoder states: R = h^2, mean over width and batch, sum over an input's words."""

from __future__ import annotations

from torch import Tensor

from compositional.regularizers import Step

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states",)
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """One number per run, (R,). Values are (R, B, S, D); the mask (R, B, S) marks words that are not padding. Axis 0: runs."""
    (shown,) = step.named(REPRESENTATIONS)
    squares = shown.values.square().mean(-1) * shown.mask
    return squares.sum((1, 2)) / squares.shape[1]  # never over axis 0
