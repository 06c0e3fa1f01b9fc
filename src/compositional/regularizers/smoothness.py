"""Negative control: encoder states that change little from word to word. R = mean over valid steps of |h(t+1) - h(t)|^2.

The term of the earlier automated attempt at this proposal (ICBINB workshop, ICLR 2025). Squares are summed over the width.
"""

from __future__ import annotations

from torch import Tensor

from compositional.training.step import Step

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states", "command_states")
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """(R,)."""
    (states,) = step.named(REPRESENTATIONS)
    change = (states.values[:, :, 1:] - states.values[:, :, :-1]).square().sum(-1)
    valid = states.mask[:, :, 1:]
    return (change * valid).sum((1, 2)) / valid.sum((1, 2))
