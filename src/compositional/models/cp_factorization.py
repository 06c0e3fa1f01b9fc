"""A tensor as a sum of outer products (CP), by default enough for any tensor (Razin, Maman, Cohen, ICML 2021).

The norm of a component grows at a rate proportional to norm^(2 - 2 / order), so components are learned one after the other.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.tensor import Batch
from compositional.layers import Weights, factorization

KIND = "tensor"
REPRESENTATIONS = ()
PARAMETERS = {
    "components": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": None,
        "description": "outer products; null: the product of all dimensions but the largest, enough for any tensor",
    },
    "deviation": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.001,
        "description": "standard deviation of initial weights",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for tensors of task["shape"]: one matrix (dimension, components) per mode."""
    shape = task["shape"]
    components = parameters["components"] or math.prod(shape) // max(shape)
    return {
        f"mode{mode}": factorization.normal(source, (dimension, components), parameters["deviation"])
        for mode, dimension in enumerate(shape)
    }


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """All entries (R, E), as one product of two matrices; each combines half of the modes in its rows."""
    modes = [weights[f"mode{mode}"] for mode in range(len(weights))]
    half = len(modes) // 2
    left, right = (reduce(factorization.khatri_rao, side) for side in (modes[:half], modes[half:]))
    return factorization.product(left, right.transpose(1, 2)).flatten(1)


def observe(parameters: dict, weights: Weights, task: dict) -> dict[str, Tensor]:
    """The largest norms of components (products of the norms of their vectors) and their indices, by name, (R,) each."""
    norms = torch.stack([weights[f"mode{mode}"].norm(dim=1) for mode in range(len(weights))])
    return factorization.ranked_components("component_norm", norms.prod(0))
