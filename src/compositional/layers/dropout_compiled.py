"""Compiled dropout on the CPU: one pass over the memory, where PyTorch makes four, with the same bits.

The compiled code consists of a comparison and a product, without reordering.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, autograd

from compositional.layers.compiled import compiled

_ZERO = np.float32(0)


@compiled
def _keep(values, noise, quantile, factor, kept):
    """For one run, each (n,): values times `factor` where the noise is above the quantile, otherwise times 0."""
    for index in range(values.shape[0]):
        kept[index] = values[index] * (factor if noise[index] > quantile else _ZERO)


class _Kept(autograd.Function):
    @staticmethod
    def forward(ctx, values, noise, quantile, factor):
        ctx.save_for_backward(noise)
        ctx.how = quantile, factor
        values = values.contiguous()
        kept = values.new_empty(values.shape)
        for own in zip(values, noise, kept, strict=True):
            before, drawn, after = (part.view(-1).numpy() for part in own)
            _keep(before, drawn, np.float32(quantile), np.float32(factor), after)
        return kept

    @staticmethod
    def backward(ctx, grad):
        # The gradient is the dropout of the incoming gradient, and it is differentiable, too.
        return _Kept.apply(grad, *ctx.saved_tensors, *ctx.how), None, None, None


def keep(values: Tensor, noise: Tensor, quantile: float, factor: float) -> Tensor:
    """Values (R, ...) times `factor` where the noise (R, ...) is above the quantile, 0 elsewhere; float32."""
    return _Kept.apply(values, noise, quantile, factor)
