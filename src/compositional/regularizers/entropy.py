"""Bounded channel capacity: a small norm under noise of fixed power keeps only the bits that are needed.

R = squared norm of the representation before noise (averaged over its width, summed over valid positions, averaged over the
batch, summed over streams). In training, Gaussian noise of fixed standard deviation is added to the representation. The term
follows Li, Zhao, Wang, Hestness, "Compositional Generalization for Primitive Substitutions" (CGPS), EMNLP 2019.
The controls (`parts`) use only one of the two, the norm or the noise.
"""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from compositional.regularizers import Representation, Step

APPLIES_TO = ("sequence", "image", "sequence_regression")
REPRESENTATIONS = ("word_embedding", "penultimate")
PARAMETERS = {
    "parts": {
        "enum": ["both", "norm", "noise"],
        "default": "both",
        "description": "norm: R without noise; noise: no R, and lambda multiplies the standard deviation of the noise",
    },
    "word_noise": {
        "type": "number",
        "minimum": 0,
        "default": 1.0,
        "description": "standard deviation of the noise on word embeddings",
    },
    "feature_noise": {
        "type": "number",
        "minimum": 0,
        "default": 0.3,
        "description": "standard deviation of the noise on the penultimate layer",
    },
}
_NOISE = {"word_embedding": "word_noise", "penultimate": "feature_noise"}


def perturb(step: Step, representation: Representation) -> Tensor:
    """The representation plus noise, for runs with lambda > 0."""
    values, parts = representation.values, step.parameters["parts"]
    if representation.name not in REPRESENTATIONS or parts == "norm":
        return values
    scale = step.strength if parts == "noise" else step.active
    power = step.parameters[_NOISE[representation.name]] * scale.view(-1, *[1] * (values.ndim - 1))
    return values + power * step.normal(values.shape[1:])


def penalty(step: Step) -> Tensor:
    """Squared norm of each run's representation, (R,); zero if `parts` is noise."""
    if step.parameters["parts"] == "noise":
        return torch.zeros_like(step.active)
    return reduce(torch.add, (shown.squared_norm() for shown in step.named(REPRESENTATIONS)))
