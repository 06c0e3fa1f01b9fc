"""Dropout by each example's own noise (`randomness.uniform_noise`), compiled for the CPU: one pass, and the same bits."""

from __future__ import annotations

import numpy as np
from numba import njit
from torch import Tensor, autograd, uint8

from compositional.layers.compiled import compiled

_ZERO, _UNIT = np.float32(0), np.float32(2**-24)
_FIRST, _SECOND, _HALF, _QUARTER, _EIGHT = (np.uint32(value) for value in (0x7FEB352D, 0x846CA68B, 16, 15, 8))


@njit
def _mix(value):
    """As in `uniform_noise`."""
    value = np.uint32((value ^ (value >> _HALF)) * _FIRST)
    value = np.uint32((value ^ (value >> _QUARTER)) * _SECOND)
    return np.uint32(value ^ (value >> _HALF))


@compiled
def _draw(keys, begin, share, kept):
    """keys (E,) of uint32, kept (E, n): whether number n of an example's stream, which begins at place `begin`, is >= share."""
    count = kept.shape[1]
    places = np.empty(count, np.uint32)
    for place in range(count):
        places[place] = _mix(np.uint32(place + begin))
    for example in range(kept.shape[0]):
        key = _mix(keys[example])
        for place in range(count):
            kept[example, place] = np.float32(_mix(places[place] ^ key) >> _EIGHT) * _UNIT >= share


@compiled
def _apply(values, kept, rest, result):
    """Each (n,): what is kept, divided by `rest`; 0 times the others."""
    for index in range(values.shape[0]):
        result[index] = (values[index] if kept[index] else values[index] * _ZERO) / rest


class _Dropped(autograd.Function):
    @staticmethod
    def forward(ctx, values, kept, rate):
        ctx.save_for_backward(kept)
        ctx.rate = rate
        values = values.contiguous()
        result = values.new_empty(values.shape)
        _apply(values.view(-1).numpy(), kept.view(-1).numpy(), np.float32(1 - rate), result.view(-1).numpy())
        return result

    @staticmethod
    def backward(ctx, grad):
        return _Dropped.apply(grad, *ctx.saved_tensors, ctx.rate), None, None


def dropped(values: Tensor, keys: Tensor, stream: int, rate: float) -> Tensor:
    """values (R, B, ...) times (uniform_noise(keys, stream, ...) >= rate) / (1 - rate); keys (R, B) of integers."""
    kept = values.new_empty(values.shape, dtype=uint8)
    lower = keys.contiguous().view(-1).numpy().astype(np.uint32)
    _draw(lower, (stream + 1) * 0x9E3779B9 & 0xFFFFFFFF, np.float32(rate), kept.view(len(lower), -1).numpy())
    return _Dropped.apply(values, kept, rate)
