"""Dropout as a plain regularizer, for comparison: lambda, below 1, is the share of units that is dropped; R = 0.

Units of word embeddings, or of the penultimate layer, are set to zero independently in training and the others multiplied by
1 / (1 - lambda) (Srivastava et al., JMLR 2014).
"""

from __future__ import annotations

import torch
from torch import Tensor

from compositional.regularizers import Representation, Step

APPLIES_TO = ("sequence", "image")
REPRESENTATIONS = ("word_embedding", "penultimate")
LAMBDA_BELOW = 1
PARAMETERS: dict = {}


def perturb(step: Step, representation: Representation) -> Tensor:
    """The representation with dropped units: those whose normal number is below the quantile of lambda."""
    values = representation.values
    if representation.name not in REPRESENTATIONS:
        return values
    rate = step.strength.double().view(-1, *[1] * (values.ndim - 1))
    keep = step.normal(values.shape[1:]) > torch.special.ndtri(rate)
    return values * (keep / (1 - rate)).to(values.dtype)


def penalty(step: Step) -> Tensor:
    """Zeros, (R,)."""
    return torch.zeros_like(step.active)
