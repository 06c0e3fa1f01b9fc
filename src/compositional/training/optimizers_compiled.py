"""The loops of `optimizers` compiled for the CPU: two passes over the memory instead of one per operation, and the same bits.

All arrays are float32: R runs with P weights each. A run that is not healthy has a gradient of zero, and its weights stay.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from compositional.layers.compiled import compiled

_ZERO = np.float32(0)


@intrinsic
def _fma(typing, factor, other, addend):
    """factor * other + addend, rounded once as in PyTorch's `add_` with a factor and `addcmul_`."""

    def code(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), code


@njit
def _used(gradient, factor, decay, weight, healthy):
    value = gradient * factor
    if decay:
        value += decay * weight
    return value if healthy else _ZERO


@compiled
def adam_moments(gradient, factors, decay, weights, healthy, first, second, betas, correction):
    """Update the moments, and overwrite the gradient with the second moment times its correction."""
    keep1, keep2, rest1, rest2 = np.float32(betas[0]), np.float32(betas[1]), np.float32(1 - betas[0]), np.float32(1 - betas[1])
    for run in range(gradient.shape[0]):
        for place in range(gradient.shape[1]):
            value = _used(gradient[run, place], factors[run], decay, weights[run, place], healthy[run])
            first[run, place] = _fma(rest1, value, first[run, place] * keep1)  # type: ignore[call-arg]
            second[run, place] = _fma(rest2 * value, value, second[run, place] * keep2)
            gradient[run, place] = second[run, place] * correction


@compiled
def adam_weights(root, weights, healthy, first, correction, epsilon, rate):
    """Update the weights, given the square root of what `adam_moments` has written."""
    for run in range(first.shape[0]):
        if healthy[run]:
            for place in range(first.shape[1]):
                weights[run, place] -= (first[run, place] * correction) / (root[run, place] + epsilon) * rate


@compiled
def sgd(gradient, factors, decay, weights, healthy, first, momentum, rate):
    """Update the moment and the weights."""
    for run in range(gradient.shape[0]):
        for place in range(gradient.shape[1]):
            value = _used(gradient[run, place], factors[run], decay, weights[run, place], healthy[run])
            first[run, place] = first[run, place] * momentum + value
            if healthy[run]:
                weights[run, place] -= first[run, place] * rate
