"""Compositionally structured kernels: the theory of Lippl and Stachenfeld (ICLR 2025, arXiv 2405.16391).

An input is a tuple of C items. A kernel is compositionally structured if the similarity of two inputs depends only on which
components agree. Such a kernel is an array (..., 2, ..., 2) with one axis per component: index 1 on axis c means that component c
agrees, so [0, ..., 0] belongs to distinct inputs and [1, ..., 1] to identical ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ACTIVATIONS = ("relu", "leaky_relu", "step", "rectified_quadratic", "gaussian")
LEAK = 0.1
_ROUNDING = 1e-8  # rounding errors can make a salience of 0 this negative


def equivariant(similarities: Sequence[float] | np.ndarray) -> np.ndarray:
    """Kernels that depend only on the number of components that agree: (..., C + 1) -> (..., 2, ..., 2) with C axes."""
    values = np.asarray(similarities, dtype=np.float64)
    components = values.shape[-1] - 1
    return values[..., np.indices((2,) * components).sum(0)]


def salience(similarity: np.ndarray, components: int) -> np.ndarray:
    """Weight of each conjunction in the feature map of all conjunctions that has this kernel (section 3 of the paper).

    Möbius inversion over sets of components: S(A) = kappa(A) - sum of S(B) over proper subsets B of A. For equivariant
    kernels this is the paper's S_c = kappa_c - sum_{j < c} binom(c, j) S_j. Normalized by kappa(all) - kappa(none).

    Args:
        similarity: (..., 2, ..., 2), one axis per component.

    Returns:
        The same shape; [0, ..., 0] is the constant's weight, and all others sum to 1.
    """
    weights = np.array(similarity, dtype=np.float64)

    def last(index: int | None) -> tuple[Any, ...]:
        return (..., *(index,) * components)

    span = (similarity[last(1)] - similarity[last(0)])[last(None)]
    for axis in range(weights.ndim - components, weights.ndim):
        without, having = np.split(weights, 2, axis)
        weights = np.concatenate([without, having - without], axis)
    return weights / span


def is_positive_semidefinite(similarity: np.ndarray, components: int) -> np.ndarray:
    """Whether every Gram matrix, for any inputs and number of items, is positive semidefinite: no salience is negative. (...)."""
    return np.all(salience(similarity, components) >= -_ROUNDING, axis=tuple(range(-components, 0)))


def overlap(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Which components agree, as an index into a flattened kernel: items (n, C) and (m, C) -> (n, m) in 0..2^C - 1."""
    agree = left[:, None, :] == right[None, :, :]
    return agree @ (1 << np.arange(left.shape[1])[::-1])


def next_layer(cosine: np.ndarray, activation: str) -> np.ndarray:
    """Kernel of an infinitely wide random layer on inputs of equal norm, from their cosine similarity, up to a factor.

    ReLU and step: Cho and Saul, NeurIPS 2009 (order 1 and 0). Leaky ReLU with leak a is a times its input plus 1 - a times its
    ReLU. Rectified quadratic: order 2 there. Gaussian, here with unit variance: Williams, NIPS 1996 (with Gaussians instead of
    error functions).

    Raises:
        ValueError: the activation is not one of ACTIVATIONS.
    """
    x = np.clip(cosine, -1, 1)
    angle = np.arccos(x)
    arc = (np.sqrt(1 - x * x) + (np.pi - angle) * x) / (2 * np.pi)
    match activation:
        case "relu":
            return arc
        case "leaky_relu":
            return (1 - LEAK) ** 2 * arc + LEAK * x
        case "step":
            return np.pi - angle
        case "rectified_quadratic":
            return 3 * np.sin(angle) * x + (np.pi - angle) * (1 + 2 * x * x)
        case "gaussian":
            return 1 / np.sqrt(9 - 4 * x * x)
    raise ValueError(f"activation {activation!r} is not one of {', '.join(ACTIVATIONS)}")


def network_kernels(shares: Sequence[float], activation: str, layers: int) -> np.ndarray:
    """Kernels of the layers of an infinitely wide network with random weights and one-hot components as input (section 3.1).

    Args:
        shares: of each component in the squared norm of the input; 1 / C each if all are equal. They sum to 1.

    Returns:
        (layers + 1, 2, ..., 2); the first is the input's. Each is divided by the similarity of identical inputs.
    """
    similarity = np.tensordot(np.asarray(shares, dtype=np.float64), np.indices((2,) * len(shares)), 1)
    kernels = [similarity]
    for _ in range(layers):
        after = next_layer(kernels[-1], activation)
        kernels.append(after / after.reshape(-1)[-1])
    return np.stack(kernels)


def addition_slope(single_salience: float | np.ndarray, trained: int | np.ndarray) -> float | np.ndarray:
    """Slope of an item's learned value against its true value in symbolic addition (the paper's equation for figure 3a).

    m = p s / (1 + (p - 2) s), where s is the salience of one component and p the number of trained items per component. Full
    compositional generalization, m = 1, needs s = 1/2; any other salience goes into memorizing complete inputs.
    """
    return trained * single_salience / (1 + (trained - 2) * single_salience)


def invariance_margin(single_salience: float | np.ndarray) -> float | np.ndarray:
    """Output times label on unseen inputs of `tasks.invariance`, for kernel interpolation without a bias: k / (1 - k)."""
    return single_salience / (1 - single_salience)


def partial_exposure_margin(single_salience: float | np.ndarray) -> float | np.ndarray:
    """The same for `tasks.partial_exposure`: 2 k^2 / (1 - 2 k^2)."""
    return 2 * single_salience**2 / (1 - 2 * single_salience**2)
