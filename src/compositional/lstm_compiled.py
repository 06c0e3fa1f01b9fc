"""Steps of an LSTM on the CPU, their elementwise part compiled: one pass over the memory where the library takes one a function.

Multiplications and additions alone, compiled without reordering or fusing any (numba's default), so that an element's bits depend
neither on its place nor on the processor. The products and the logistic function stay with the library.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from torch import Tensor

ONE, TWO = np.float32(1), np.float32(2)


@cache
def _compiled(width: int):
    """Three passes for LSTMs of `width` units. Only with a constant width does the compiler see that nothing overlaps, and
    computes many units at once."""

    @njit(cache=True, error_model="numpy")
    def cells(gates, cell, new_cell, doubled):
        for run in range(gates.shape[0]):
            for row in range(gates.shape[1]):
                for unit in range(width):
                    candidate = TWO * gates[run, row, 3 * width + unit] - ONE
                    value = gates[run, row, width + unit] * cell[run, row, unit] + gates[run, row, unit] * candidate
                    new_cell[run, row, unit] = value
                    doubled[run, row, unit] = TWO * value

    @njit(cache=True, error_model="numpy")
    def outputs(gates, squashed, hidden, start):
        for run in range(gates.shape[0]):
            for row in range(gates.shape[1]):
                for unit in range(width):
                    out = gates[run, row, 2 * width + unit]
                    hidden[run, start + row, unit] = out * (TWO * squashed[run, row, unit] - ONE)

    @njit(cache=True, error_model="numpy")
    def gradients(gates, cell, squashed, grad_hidden, grad_cell, grad_gates, start):
        for run in range(gates.shape[0]):
            for row in range(gates.shape[1]):
                for unit in range(width):
                    into, keep = gates[run, row, unit], gates[run, row, width + unit]
                    out, candidate = gates[run, row, 2 * width + unit], gates[run, row, 3 * width + unit]
                    end = TWO * squashed[run, row, unit] - ONE
                    grad_output = grad_hidden[run, row, unit]
                    grad = grad_output * out * (ONE - end * end) + grad_cell[run, row, unit]
                    grad_gates[run, start + row, unit] = grad * (TWO * candidate - ONE) * (into * (ONE - into))
                    grad_gates[run, start + row, width + unit] = grad * cell[run, row, unit] * (keep * (ONE - keep))
                    grad_gates[run, start + row, 2 * width + unit] = grad_output * end * (out * (ONE - out))
                    grad_gates[run, start + row, 3 * width + unit] = grad * into * TWO * (candidate * (ONE - candidate))
                    grad_cell[run, row, unit] = grad * keep

    return cells, outputs, gradients


def step(gates: Tensor, cell: Tensor, hidden: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """As `lstm.step`."""
    cells, outputs, _ = _compiled(cell.shape[2])
    gates.sigmoid_()
    new_cell, squashed = cell.new_empty(2, *gates.shape[:2], cell.shape[2])
    cells(gates.numpy(), cell.numpy(), new_cell.numpy(), squashed.numpy())
    squashed.sigmoid_()
    outputs(gates.numpy(), squashed.numpy(), hidden.numpy(), start)
    return new_cell, squashed


def step_gradient(
    gates: Tensor, cell: Tensor, squashed: Tensor, grad_hidden: Tensor, grad_cell: Tensor, grad_gates: Tensor, start: int
) -> None:
    """As `lstm.step_gradient`."""
    *_, gradients = _compiled(cell.shape[2])
    gradients(*(tensor.numpy() for tensor in (gates, cell, squashed, grad_hidden, grad_cell, grad_gates)), start)
