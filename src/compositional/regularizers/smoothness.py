"""Negative control: representations that change little from word to word. R = mean over valid steps of |h(t+1) - h(t)|^2.

This is the term of the earlier automated attempt at this proposal (ICBINB workshop, ICLR 2025). In its text h are the hidden
states, in its code the embeddings (`taken_of`). By default squares are summed over the width; the attempt averages them
(`over_width`).
"""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from compositional.regularizers import Representation, Step

APPLIES_TO = ("sequence", "sequence_regression")
REPRESENTATIONS = ("encoder_states", "command_states", "word_embedding")
PARAMETERS = {
    "taken_of": {"enum": ["states", "embeddings"], "default": "states", "description": "which representation h is"},
    "over_width": {"enum": ["sum", "mean"], "default": "sum", "description": "how squares are reduced over the width of h"},
}
_NAMES = {"states": ("encoder_states", "command_states"), "embeddings": ("word_embedding",)}


def penalty(step: Step) -> Tensor:
    """R, (R,), summed over all representations of that kind: a model with two streams has two embeddings.

    Raises:
        ValueError: the model has no representation of that kind, or it has no positions.
    """
    taken_of = step.parameters["taken_of"]
    if not (shown := step.named(_NAMES[taken_of])):
        needed, found = " or ".join(_NAMES[taken_of]), ", ".join(own.name for own in step.representations)
        raise ValueError(f"smoothness: taken_of: {taken_of} needs a model with {needed}, this one has {found}")
    return reduce(torch.add, (_change(own, step.parameters["over_width"]) for own in shown))


def _change(shown: Representation, over_width: str) -> Tensor:
    squares = (shown.values[:, :, 1:] - shown.values[:, :, :-1]).square()
    change = squares.sum(-1) if over_width == "sum" else squares.mean(-1)
    if shown.mask is None:
        raise ValueError(f"smoothness: {shown.name} has no positions to change between")
    valid = shown.mask[:, :, 1:] & shown.mask[:, :, :-1]  # a mask can have gaps
    return (change * valid).sum((1, 2)) / valid.sum((1, 2))
