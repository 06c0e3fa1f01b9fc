"""Max-pooling of 2 x 2 values. It is compiled on the CPU, where PyTorch's kernel takes longer than the convolution before it.

The compiled code only compares values, without reordering: it gives the same bits as PyTorch, in the gradient too.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, arange, autograd, uint8
from torch.nn import functional

from compositional.layers.compiled import compiled


@compiled
def _forward(values, pooled, places):
    """values (P, H, W) -> pooled (P, H // 2, W // 2), and the position of each maximum in its square: 0 to 3, row by row."""
    for plane in range(pooled.shape[0]):
        for row in range(pooled.shape[1]):
            for column in range(pooled.shape[2]):
                largest, place = values[plane, 2 * row, 2 * column], np.uint8(0)
                for other in range(1, 4):
                    value = values[plane, 2 * row + other // 2, 2 * column + other % 2]
                    # The first of equal values wins, and NaN wins over any number: it reveals that a run has diverged.
                    if value > largest or value != value:
                        largest, place = value, np.uint8(other)
                pooled[plane, row, column], places[plane, row, column] = largest, place


@compiled
def _backward(grad, places, grad_values):
    """Gradient of `_forward`: from the gradient of the pooled values to that of the values."""
    for plane in range(grad.shape[0]):
        grad_values[plane] = 0
        for row in range(grad.shape[1]):
            for column in range(grad.shape[2]):
                place = places[plane, row, column]
                grad_values[plane, 2 * row + place // 2, 2 * column + place % 2] = grad[plane, row, column]


class _MaxPool(autograd.Function):
    @staticmethod
    def forward(ctx, values):
        planes = values.flatten(0, -3)
        pooled = values.new_empty(len(planes), planes.shape[1] // 2, planes.shape[2] // 2)
        places = values.new_empty(pooled.shape, dtype=uint8)
        _forward(planes.numpy(), pooled.numpy(), places.numpy())
        ctx.save_for_backward(places)
        ctx.size = values.shape[-2:]
        return pooled.unflatten(0, values.shape[:-2])

    @staticmethod
    def backward(ctx, grad):
        return _PutBack.apply(grad, *ctx.saved_tensors, ctx.size)


class _PutBack(autograd.Function):
    """The gradient of `_MaxPool`. It is differentiable too, because some regularizers are made of gradients (`interaction`)."""

    @staticmethod
    def forward(ctx, grad, places, size):
        ctx.save_for_backward(places)
        grad_values = grad.new_empty(len(places), *size)
        _backward(grad.reshape(places.shape).numpy(), places.numpy(), grad_values.numpy())
        return grad_values.unflatten(0, grad.shape[:-2])

    @staticmethod
    def backward(ctx, grad):
        (places,) = ctx.saved_tensors
        row, column = (2 * arange(size) for size in places.shape[1:])
        where = (row.unsqueeze(1) + places // 2) * grad.shape[-1] + column + places % 2
        read = grad.reshape(len(places), -1).gather(1, where.flatten(1))
        return read.view(*grad.shape[:-2], *places.shape[1:]), None, None


def max_pool(values: Tensor) -> Tensor:
    """The largest value of each 2 x 2 square: (R, B, C, H, W) -> (R, B, C, H // 2, W // 2), in any precision."""
    if values.device.type == "cpu":
        return _MaxPool.apply(values.contiguous())
    return functional.max_pool2d(values.flatten(0, 1), 2).unflatten(0, values.shape[:2])
