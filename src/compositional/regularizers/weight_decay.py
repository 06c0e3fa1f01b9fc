"""Weight decay as a plain regularizer, for comparison: R = |w|^2 / 2, w being all weights of a run.

Its gradient, lambda w, goes through the optimizer and is clipped with the loss's (the training setting `weight_decay` is added
after clipping). As a regularizer its runs share initialization and batches with the plain run of their seed.
"""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from compositional.regularizers import Step

APPLIES_TO = ("sequence", "image")
REPRESENTATIONS: tuple = ()
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """(R,)."""
    return reduce(torch.add, (weight.flatten(1).square().sum(1) for weight in step.weights.values())) / 2
