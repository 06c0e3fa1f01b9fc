"""The softmax of attention and cross entropy: compiled for float32 on the CPU, the library's operations elsewhere."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from compositional.layers import softmax_compiled
from compositional.layers.compiled import is_compiled
from compositional.layers.functional import padding_bias


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy of logits (N, V) at targets (N,): (N,)."""
    if is_compiled(logits):
        return softmax_compiled.cross_entropy(logits, targets)
    return functional.cross_entropy(logits, targets, reduction="none")


def _shifted(by_distance: Tensor, keys: int) -> Tensor:
    """Scores by distance as a view by key: contiguous (R, heads, B, L, C) -> (R, B, heads, L, keys).

    out[i, j] = in[i, L - 1 - i + j]: each row of the view starts one place earlier than the row of scores, so strides are enough
    (Dai et al. 2019, appendix B, pad and reshape instead). C is 2 L - 1 for all distances, or L for those of keys at or before
    the query; values at later keys are then meaningless.
    """
    runs, heads, rows, length, columns = by_distance.shape
    row, head, run = length * columns, rows * length * columns, heads * rows * length * columns
    begin = by_distance.storage_offset() + length - 1
    return by_distance.as_strided((runs, rows, heads, length, keys), (run, row, head, columns - 1, 1), begin)


def shares(scores: Tensor, by_distance: Tensor | None, allowed: Tensor | None, causal: bool) -> Tensor:
    """Softmax of the scores (R, B, heads, L, S) over the last axis. It overwrites the scores.

    Args:
        by_distance: (R, heads, B, L, C), scores by distance that are added to the others; None: none.
        allowed: (R, B, S) of bool, the positions that count; None: all.
        causal: whether only positions up to the query count.
    """
    if is_compiled(scores):
        return softmax_compiled.shares(scores, by_distance, allowed, causal)
    length, keys = scores.shape[3:]
    if by_distance is not None:
        scores += _shifted(by_distance, keys)
    if causal:
        scores.masked_fill_(_later(length, scores.device), float("-inf"))
    if allowed is not None:
        scores += padding_bias(allowed, scores.dtype)[:, :, None, None, :]
    return scores.softmax(-1)


def shares_gradient(shares: Tensor, grad: Tensor, by_distance: Tensor | None, causal: bool) -> Tensor:
    """Gradient of the scores. It overwrites `grad` (R, B, heads, L, S), that of the shares, and writes that of the scores by
    distance to by_distance."""
    if is_compiled(grad):
        return softmax_compiled.shares_gradient(shares, grad, by_distance, causal)
    grad = torch._softmax_backward_data(grad, shares, -1, shares.dtype)
    if by_distance is not None:
        if causal:
            # The last column of grad is zero except in the last row. In memory, it is where the next row's first column is.
            # The copy reaches every place but the first ones.
            by_distance.flatten(3)[..., : grad.shape[4] - 1] = 0
            _shifted(by_distance, grad.shape[4] - 1).copy_(grad[..., :-1])
            by_distance[..., -1, -1] = grad[..., -1, -1].transpose(1, 2)
        else:
            by_distance.zero_()
            _shifted(by_distance, grad.shape[4]).copy_(grad)
    return grad


@cache  # never freed: a graph that was recorded on CUDA goes on reading its memory
def _later(length: int, device: torch.device) -> Tensor:
    """Which keys are after the query, (L, L) of bool."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
