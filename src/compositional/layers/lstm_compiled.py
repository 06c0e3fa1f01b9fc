"""Steps of an LSTM on the CPU with compiled elementwise operations: one pass over the memory instead of one per operation.

The compiled code adds, multiplies and divides in a fixed order, and fuses a product with a sum only where it says so. The bits of
an element therefore depend neither on its position nor on the processor. PyTorch computes the products.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numba import njit
from torch import Tensor

from compositional.layers.compiled import compiled, fused

ONE, TWO = np.float32(1), np.float32(2)
# exp(x) = 2^k exp(r), where k is the integer closest to x / log 2: adding 1.5 * 2^23 rounds, and leaves k in the number's last
# bits. log 2 is split into two numbers. The series for exp(r) and the order of the operations are those of SLEEF's `expf`
# (Shibata and Petrogalli 2020), so that the bits are those of PyTorch's logistic function.
_LEAST, _MOST = np.float32(-86), np.float32(89)  # 1 + exp(-86) is 1, and exp(89) is infinite
_PER_LOG_2, _ROUND = np.float32(1 / math.log(2)), np.float32(1.5 * 2**23)
_LOG_2, _REST = np.float32(0.693145751953125), np.float32(1.428606765330187e-6)
_T6, _T5, _T4, _T3, _T2, _T1 = (
    np.float32(term) for term in (1.98527618e-4, 1.39304355e-3, 8.33336078e-3, 4.16664854e-2, 1.66666672e-1, 0.5)
)
# What to subtract from the bits of that number, and how far to shift them, to get the bits of 2^(k - 1).
_BIAS, _FRACTION = np.int32(_ROUND.view(np.int32) - 126), np.int32(23)


@njit(error_model="numpy")
def logistic(value):
    """1 / (1 + exp(-value)) of a float32."""
    bounded = _LEAST if -value < _LEAST else -value
    bounded = _MOST if bounded > _MOST else bounded
    rounded = bounded * _PER_LOG_2 + _ROUND
    power = rounded - _ROUND
    rest = fused(power, -_REST, fused(power, -_LOG_2, bounded))
    series = fused(_T6, rest, _T5)
    series = fused(series, rest, _T4)
    series = fused(series, rest, _T3)
    series = fused(series, rest, _T2)
    series = fused(series, rest, _T1)
    raised = fused(rest * rest, series, rest) + ONE
    # Half of 2^k, because 2^128 is not a float32.
    half = np.int32((np.float32(rounded).view(np.int32) - _BIAS) << _FRACTION).view(np.float32)
    return ONE / (ONE + (raised + raised) * half)


@cache
def _compiled(width: int):
    """Two passes for LSTMs of `width` units. Only with a constant width can the compiler prove that nothing overlaps, and
    compute many units at once."""

    def advance(gates, cell, new_cell, squashed, hidden, rows, start, following):
        before = rows.shape[2] - width
        for run in range(new_cell.shape[0]):
            for row in range(new_cell.shape[1]):
                for gate in range(4 * width):
                    gates[run, start + row, gate] = logistic(gates[run, start + row, gate])
                for unit in range(width):
                    candidate = TWO * gates[run, start + row, 3 * width + unit] - ONE
                    into, keep = gates[run, start + row, unit], gates[run, start + row, width + unit]
                    out = gates[run, start + row, 2 * width + unit]
                    value = keep * cell[run, row, unit] + into * candidate
                    new_cell[run, row, unit] = value
                    squashed[run, row, unit] = logistic(TWO * value)
                    hidden[run, start + row, unit] = out * (TWO * squashed[run, row, unit] - ONE)
                if row < following:
                    for unit in range(width):
                        rows[run, start + new_cell.shape[1] + row, before + unit] = hidden[run, start + row, unit]

    def gradients(gates, cell, squashed, grad_outputs, grad_later, grad_cell, start):
        grad_hidden = np.empty(width, grad_outputs.dtype)
        for run in range(squashed.shape[0]):
            for row in range(squashed.shape[1]):
                for unit in range(width):
                    grad_hidden[unit] = grad_outputs[run, start + row, unit]
                if row < grad_later.shape[1]:
                    for unit in range(width):
                        grad_hidden[unit] += grad_later[run, row, unit]
                for unit in range(width):
                    into, keep = gates[run, start + row, unit], gates[run, start + row, width + unit]
                    out, candidate = gates[run, start + row, 2 * width + unit], gates[run, start + row, 3 * width + unit]
                    end = TWO * squashed[run, row, unit] - ONE
                    grad = grad_hidden[unit] * out * (ONE - end * end) + grad_cell[run, row, unit]
                    gates[run, start + row, unit] = grad * (TWO * candidate - ONE) * (into * (ONE - into))
                    gates[run, start + row, width + unit] = grad * cell[run, row, unit] * (keep * (ONE - keep))
                    gates[run, start + row, 2 * width + unit] = grad_hidden[unit] * end * (out * (ONE - out))
                    gates[run, start + row, 3 * width + unit] = grad * into * TWO * (candidate * (ONE - candidate))
                    grad_cell[run, row, unit] = grad * keep

    return tuple(compiled(function, f"_{width}") for function in (advance, gradients))


def step(
    gates: Tensor, cell: Tensor, outputs: Tensor, rows: Tensor, start: int, size: int, following: int
) -> tuple[Tensor, Tensor]:
    """As `lstm.step`."""
    advance, _ = _compiled(cell.shape[2])
    new_cell, squashed = cell.new_empty(2, gates.shape[0], size, cell.shape[2])
    tensors = (gates, cell, new_cell, squashed, outputs, rows)
    advance(*(tensor.numpy() for tensor in tensors), start, following)
    return new_cell, squashed


def step_gradient(
    gates: Tensor, cell: Tensor, squashed: Tensor, grad_outputs: Tensor, grad_later: Tensor, grad_cell: Tensor, start: int
) -> None:
    """As `lstm.step_gradient`."""
    _, gradients = _compiled(cell.shape[2])
    tensors = (gates, cell, squashed, grad_outputs, grad_later, grad_cell)
    gradients(*(tensor.numpy() for tensor in tensors), start)
