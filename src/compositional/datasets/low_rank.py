"""Random matrices and tensors of low rank with a given norm, for recovery by factorizations. No download.

Razin, Maman, Cohen, "Implicit Regularization in Hierarchical Tensor Factorization and Deep Convolutional Neural Networks" (ICML
2022), appendix on the experiments.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy.linalg import khatri_rao

FILES: dict = {}


def _scaled(target: np.ndarray, norm: float) -> np.ndarray:
    return target * (norm / np.linalg.norm(target))


def matrix(source: np.random.Generator, side: int, rank: int, norm: float, symmetric: bool) -> np.ndarray:
    """U V^T with standard normal U and V (side, rank), V = U if symmetric, scaled to Frobenius norm `norm`: (side, side)."""
    left = source.standard_normal((side, rank))
    right = left if symmetric else source.standard_normal((side, rank))
    return _scaled(left @ right.T, norm)


def cp(source: np.random.Generator, order: int, dimension: int, rank: int, norm: float) -> np.ndarray:
    """A sum of `rank` outer products of standard normal vectors, scaled to `norm`: (dimension, ..., dimension)."""
    factors = [source.standard_normal((dimension, rank)) for _ in range(order)]
    rows = reduce(khatri_rao, factors)
    return _scaled(rows.sum(1).reshape((dimension,) * order), norm)


def hierarchical(source: np.random.Generator, order: int, dimension: int, ranks: list[int], norm: float) -> np.ndarray:
    """A tensor with a hierarchical factorization of the given ranks over a binary tree of neighboring modes, scaled to `norm`.

    It has the form of `models.hierarchical_tensor_factorization`, with standard normal weights.
    """
    parts = [source.standard_normal((dimension, ranks[0])) for _ in range(order)]
    for level, rank in enumerate([*ranks[1:], 1]):
        pairs = [parts[index : index + 2] for index in range(0, len(parts), 2)]
        pooled = [reduce(khatri_rao, pair) for pair in pairs]
        parts = [values @ source.standard_normal((ranks[level], rank)) for values in pooled]
    return _scaled(parts[0].reshape((dimension,) * order), norm)
