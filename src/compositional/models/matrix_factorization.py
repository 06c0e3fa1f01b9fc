"""A matrix as a product of `depth` square matrices: a deep linear network (Arora, Cohen, Hu, Luo, NeurIPS 2019).

Gradient descent from a small initialization learns one singular value after the other: sigma grows at a rate proportional to
sigma^(2 - 2 / depth).
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.tensor import Batch
from compositional.layers import Weights, factorization

KIND = "tensor"
REPRESENTATIONS = ()
PARAMETERS = {
    "depth": {"type": "integer", "minimum": 1, "default": 3, "description": "factors"},
    "deviation": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.001,
        "description": "standard deviation of initial weights",
    },
    "initialization": {
        "enum": ["normal", "identity"],
        "default": "normal",
        "description": "identity: every factor is `deviation` times the identity",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for matrices of task["shape"]. Inner widths equal the smaller side.

    Raises:
        ValueError: the task is about tensors of another order than 2.
    """
    if len(task["shape"]) != 2:
        raise ValueError(f"matrix_factorization is for matrices, not for tensors of shape {task['shape']}")
    rows, columns = task["shape"]
    sides = [rows, *[min(rows, columns)] * (parameters["depth"] - 1), columns]
    shapes = {f"factor{index}": shape for index, shape in enumerate(pairwise(sides))}
    if parameters["initialization"] == "identity":
        return {name: parameters["deviation"] * torch.eye(*shape) for name, shape in shapes.items()}
    return {name: factorization.normal(source, shape, parameters["deviation"]) for name, shape in shapes.items()}


def _product(weights: Weights) -> Tensor:
    return reduce(factorization.product, (weights[f"factor{index}"] for index in range(len(weights))))


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """All entries (R, rows x columns)."""
    return _product(weights).flatten(1)


def observe(parameters: dict, weights: Weights, task: dict) -> dict[str, Tensor]:
    """Singular values, norms and ranks of every run's matrix, by name, (R,) each."""
    product = _product(weights)
    singular = factorization.spectrum(product)
    limit = singular[:, :1] * max(product.shape[1:]) * torch.finfo(product.dtype).eps
    return factorization.ranked("singular_value", singular) | {
        "frobenius_norm": singular.square().sum(1).sqrt(),
        "nuclear_norm": singular.sum(1),
        "rank": (singular > limit).sum(1),
        "effective_rank": factorization.effective_rank(singular),
    }
