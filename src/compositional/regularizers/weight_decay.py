"""Weight decay as a plain regularizer, for comparison: R = |w|^2 / 2, where w are all weights of a run.

Its gradient, lambda w, is clipped together with that of the loss and passes through the optimizer. (The training setting
`weight_decay` is added after clipping.) Because it is a regularizer, its runs share initialization and batches with the plain run
of the same seed.
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
    """R, (R,)."""
    return reduce(torch.add, (weight.flatten(1).square().sum(1) for weight in step.weights.values())) / 2
