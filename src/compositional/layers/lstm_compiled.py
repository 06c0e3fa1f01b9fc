"""Steps of an LSTM on the CPU with compiled elementwise operations: one pass over the memory instead of one per operation.

The compiled code consists of multiplications and additions only, without reordering or fusing them. The bits of an element
therefore depend neither on its position nor on the processor. PyTorch computes the products and the logistic function.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from torch import Tensor

from compositional.layers.compiled import compiled

ONE, TWO = np.float32(1), np.float32(2)


@cache
def _compiled(width: int):
    """Three passes for LSTMs of `width` units. Only with a constant width can the compiler prove that nothing overlaps, and
    compute many units at once."""

    def cells(gates, cell, new_cell, doubled, start):
        for run in range(new_cell.shape[0]):
            for row in range(new_cell.shape[1]):
                for unit in range(width):
                    candidate = TWO * gates[run, start + row, 3 * width + unit] - ONE
                    into, keep = gates[run, start + row, unit], gates[run, start + row, width + unit]
                    value = keep * cell[run, row, unit] + into * candidate
                    new_cell[run, row, unit] = value
                    doubled[run, row, unit] = TWO * value

    def outputs(gates, squashed, hidden, rows, start, following):
        size, before = squashed.shape[1], rows.shape[2] - width
        for run in range(squashed.shape[0]):
            for row in range(size):
                for unit in range(width):
                    out = gates[run, start + row, 2 * width + unit]
                    hidden[run, start + row, unit] = out * (TWO * squashed[run, row, unit] - ONE)
                if row < following:
                    for unit in range(width):
                        rows[run, start + size + row, before + unit] = hidden[run, start + row, unit]

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

    return tuple(compiled(function, f"_{width}") for function in (cells, outputs, gradients))


def step(
    gates: Tensor, cell: Tensor, outputs: Tensor, rows: Tensor, start: int, size: int, following: int
) -> tuple[Tensor, Tensor]:
    """As `lstm.step`."""
    cells, finish, _ = _compiled(cell.shape[2])
    gates[:, start : start + size].sigmoid_()
    new_cell, squashed = cell.new_empty(2, gates.shape[0], size, cell.shape[2])
    cells(gates.numpy(), cell.numpy(), new_cell.numpy(), squashed.numpy(), start)
    squashed.sigmoid_()
    finish(gates.numpy(), squashed.numpy(), outputs.numpy(), rows.numpy(), start, following)
    return new_cell, squashed


def step_gradient(
    gates: Tensor, cell: Tensor, squashed: Tensor, grad_outputs: Tensor, grad_later: Tensor, grad_cell: Tensor, start: int
) -> None:
    """As `lstm.step_gradient`."""
    *_, gradients = _compiled(cell.shape[2])
    tensors = (gates, cell, squashed, grad_outputs, grad_later, grad_cell)
    gradients(*(tensor.numpy() for tensor in tensors), start)
