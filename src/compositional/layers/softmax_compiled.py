"""`softmax` compiled for float32 on the CPU: one pass over the memory instead of one per operation.

PyTorch's softmax is several times as slow for rows of a dozen numbers. The compiled code consists of comparisons, additions and
multiplications in a fixed order, without fusing them, so the bits of a row depend only on the row.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from torch import Tensor, autograd

from compositional.layers.compiled import compiled
from compositional.layers.functional import first_gradient

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-87)  # exp(-87) is just above the smallest normal number
# exp(x) = 2^k exp(r), where k is the integer closest to x / log 2: adding 1.5 * 2^23 and subtracting it again rounds. log 2 is
# split into two numbers. The first has so few digits that its product with k is exact.
_PER_LOG_2, _ROUND = np.float32(1 / math.log(2)), np.float32(1.5 * 2**23)
_LOG_2, _REST = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)
_T7, _T6, _T5, _T4, _T3, _T2 = (np.float32(1 / math.factorial(power)) for power in (7, 6, 5, 4, 3, 2))
_BIAS, _FRACTION = np.int32(127), np.int32(23)  # of the exponent of a float32, and the number of bits after it
_LOWEST, _SIGN, _OTHERS = np.int32(-(2**31)), np.int32(31), np.int32(2**31 - 1)


@njit
def power_of_e(value):
    """exp(value) of a number that is not positive, with an error of at most one unit in the last place; 0 below -87."""
    bounded = _LEAST if value < _LEAST else value
    power = (bounded * _PER_LOG_2 + _ROUND) - _ROUND
    rest = (bounded - power * _LOG_2) - power * _REST
    series = _T7 * rest + _T6
    series = series * rest + _T5
    series = series * rest + _T4
    series = series * rest + _T3
    series = series * rest + _T2
    series = series * (rest * rest) + rest + _ONE
    scaled = series * np.int32((np.int32(power) + _BIAS) << _FRACTION).view(np.float32)
    return _ZERO if value < _LEAST else scaled


@njit
def largest_of(row, count):
    """The largest of a row's first numbers. Integers with their bits, those of negative numbers inverted, have the same order;
    a comparison of floats would not be vectorized."""
    best = _LOWEST
    for place in range(count):
        bits = np.float32(row[place]).view(np.int32)
        best = max(best, np.int32(bits ^ ((bits >> _SIGN) & _OTHERS)))
    return np.int32(best ^ ((best >> _SIGN) & _OTHERS)).view(np.float32)


@njit
def sum_of_products(left, right, count):
    """Sum of the products of two rows' first numbers, as eight sums, which are vectorized."""
    a = b = c = d = e = f = g = h = _ZERO
    whole = count - count % 8
    for place in range(0, whole, 8):
        a += left[place] * right[place]
        b += left[place + 1] * right[place + 1]
        c += left[place + 2] * right[place + 2]
        d += left[place + 3] * right[place + 3]
        e += left[place + 4] * right[place + 4]
        f += left[place + 5] * right[place + 5]
        g += left[place + 6] * right[place + 6]
        h += left[place + 7] * right[place + 7]
    for place in range(whole, count):
        a += left[place] * right[place]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def _shares(scores, by_distance, allowed, causal):
    """scores (R, B, H, L, S) become their softmax. by_distance (R, H, B, L, C) is added first, and only keys with allowed
    (R, B, S) count, if these have elements; `causal`: only those up to the query."""
    runs, rows, heads, length, keys = scores.shape
    ones = np.ones(keys, np.float32)
    for run in range(runs):
        for row in range(rows):
            for head in range(heads):
                for query in range(length):
                    own, count = scores[run, row, head, query], query + 1 if causal else keys
                    if by_distance.size:
                        near = by_distance[run, head, row, query, length - 1 - query :]
                        for key in range(count):
                            own[key] += near[key]
                    if allowed.size:
                        for key in range(keys):
                            own[key] = own[key] if allowed[run, row, key] else -np.inf
                    largest = largest_of(own, count)
                    for key in range(count):
                        own[key] = power_of_e(own[key] - largest)
                    scale = _ONE / sum_of_products(own, ones, count)
                    for key in range(count):
                        own[key] *= scale
                    for key in range(count, keys):
                        own[key] = _ZERO


@compiled
def _shares_gradient(shares, grad, by_distance, causal):
    """grad (R, B, H, L, S), of the shares, becomes that of the scores, and by_distance (R, H, B, L, C) its own if it has
    elements."""
    runs, rows, heads, length, keys = shares.shape
    for run in range(runs):
        for row in range(rows):
            for head in range(heads):
                for query in range(length):
                    share, own = shares[run, row, head, query], grad[run, row, head, query]
                    count = query + 1 if causal else keys
                    mean = sum_of_products(share, own, count)
                    for key in range(count):
                        own[key] = share[key] * (own[key] - mean)
                    for key in range(count, keys):
                        own[key] = _ZERO
                    if by_distance.size:
                        near = by_distance[run, head, row, query]
                        near[:] = _ZERO
                        for key in range(count):
                            near[length - 1 - query + key] = own[key]


def shares(scores: Tensor, by_distance: Tensor | None, allowed: Tensor | None, causal: bool) -> Tensor:
    """As `softmax.shares`."""
    near = scores.new_empty(0, 0, 0, 0, 0) if by_distance is None else by_distance
    mask = scores.new_empty(0, 0, 0).bool() if allowed is None else allowed.contiguous()
    _shares(scores.numpy(), near.numpy(), mask.numpy(), causal)
    return scores


def shares_gradient(shares: Tensor, grad: Tensor, by_distance: Tensor | None, causal: bool) -> Tensor:
    """As `softmax.shares_gradient`."""
    near = grad.new_empty(0, 0, 0, 0, 0) if by_distance is None else by_distance
    _shares_gradient(shares.numpy(), grad.numpy(), near.numpy(), causal)
    return grad


@compiled
def _losses(logits, symbols, targets, largest, totals, margins):
    """The first `symbols` of logits (N, M), targets (N,) -> the largest logits (N,), the sums (N,) of the exponentials of the
    distances from them, and the targets' distances (N,)."""
    ones, raised = np.ones(symbols, np.float32), np.empty(symbols, np.float32)
    for row in range(logits.shape[0]):
        own, most = logits[row], largest_of(logits[row], symbols)
        for symbol in range(symbols):
            raised[symbol] = power_of_e(own[symbol] - most)
        largest[row], totals[row], margins[row] = most, sum_of_products(raised, ones, symbols), own[targets[row]] - most


@compiled
def _losses_gradient(logits, symbols, targets, largest, scales, grad, grad_logits):
    """The first `symbols` of grad_logits (N, M): exponentials of distances times scales (N,), less grad (N,) at the target."""
    for row in range(logits.shape[0]):
        own, changed, most, scale = logits[row], grad_logits[row], largest[row], scales[row]
        for symbol in range(symbols):
            changed[symbol] = power_of_e(own[symbol] - most) * scale
        changed[targets[row]] -= grad[row]


def _with_gaps(rows: Tensor) -> Tensor:
    """(N, V), and what is between its rows in memory: contiguous (N, M)."""
    length = rows.stride(0)
    ends = rows.storage_offset() + len(rows) * length
    if rows.stride(1) != 1 or length < rows.shape[1] or 4 * ends > rows.untyped_storage().nbytes():
        return rows.contiguous()
    return rows.as_strided((len(rows), length), (length, 1))


class _CrossEntropy(autograd.Function):
    """It computes the exponentials again for the gradient, which is faster than writing them to memory and reading them."""

    @staticmethod
    def forward(ctx, logits, targets):
        ctx.symbols = logits.shape[1]
        logits, targets = _with_gaps(logits.detach()), targets.contiguous()
        largest, totals, margins = logits.new_empty(3, len(logits))
        _losses(logits.numpy(), ctx.symbols, *(part.numpy() for part in (targets, largest, totals, margins)))
        ctx.save_for_backward(logits, targets, largest, totals)
        return totals.log() - margins

    @staticmethod
    @first_gradient
    def backward(ctx, grad):
        logits, targets, largest, totals = ctx.saved_tensors
        grad_logits = logits.new_empty(logits.shape)
        parts = (targets, largest, grad / totals, grad.contiguous(), grad_logits)
        _losses_gradient(logits.numpy(), ctx.symbols, *(part.numpy() for part in parts))
        return grad_logits[:, : ctx.symbols], None


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """As `softmax.cross_entropy`."""
    return _CrossEntropy.apply(logits, targets)
