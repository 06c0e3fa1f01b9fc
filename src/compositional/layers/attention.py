"""Layers of the transformer along the run axis: attention with relative positions, layer normalization, feed-forward blocks.

Relative positions follow Dai et al. (Transformer-XL, ACL 2019, section 3.3): the score of query i and key j is
(q_i + u) . k_j + (q_i + v) . W r(i - j), where r is a vector of sinusoids of the distance, and u and v are learned vectors, one
of each per head. Absolute positions are then not used (Csordas, Irie, Schmidhuber, "The Devil is in the Detail", EMNLP 2021).
Without W, attention is the ordinary one, which knows only the positions that the states contain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.layers import Weights
from compositional.layers.functional import linear, padding_bias
from compositional.layers.ragged import Chunks, Layout


@dataclass(frozen=True)
class Encoded:
    """An encoder's states (R, N, D) in chunk order, and which positions are real: masks (R, rows, length), one per chunk."""

    states: Tensor
    masks: list[Tensor]
    chunks: Chunks

    @classmethod
    def of(cls, states: Tensor, mask: Tensor, chunks: Chunks) -> Encoded:
        """From states (R, B, S, D) and their mask (R, B, S)."""
        return cls(chunks.packed(states), chunks.cut(chunks.packed(mask)), chunks)


def glorot(source: np.random.Generator, inputs: int, outputs: int, gain: float = 1.0) -> Tensor:
    """Glorot's uniform initialization, times `gain`: (inputs, outputs)."""
    bound = gain * math.sqrt(6 / (inputs + outputs))
    return randomness.uniform_tensor(source, (inputs, outputs), -bound, bound)


def initialize_projection(source: np.random.Generator, inputs: int, outputs: int, name: str, gain: float = 1.0) -> Weights:
    """Glorot's initialization of the weight, and zero bias."""
    return {
        f"{name}.weight": glorot(source, inputs, outputs, gain),
        f"{name}.bias": torch.zeros(outputs),
    }


def initialize_normalization(width: int, name: str) -> Weights:
    """Scale 1, shift 0."""
    return {f"{name}.scale": torch.ones(width), f"{name}.shift": torch.zeros(width)}


def initialize_attention(source: np.random.Generator, width: int, heads: int, name: str, relative: bool) -> Weights:
    """Projections of queries, keys, values and outputs; with relative positions also W, u and v.

    The bias of the keys adds the same number to all scores of a query, and softmax removes it again. It has no effect, and only
    rounding errors change it in training. It exists because the usual layer has it.
    """
    weights: Weights = {}
    for part in ("query", "key", "value", "output"):
        weights |= initialize_projection(source, width, width, f"{name}.{part}")
    if relative:
        weights[f"{name}.position"] = glorot(source, width, width)
        weights |= {f"{name}.{part}_bias": torch.zeros(heads, width // heads) for part in ("content", "position")}
    return weights


def project(weights: Weights, name: str, values: Tensor) -> Tensor:
    """The linear map `name`: (R, ..., inputs) -> (R, ..., outputs)."""
    return linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])


def normalize(weights: Weights, name: str, values: Tensor) -> Tensor:
    """Layer normalization of the last axis of (R, ..., D), with each run's own scale and shift."""
    shape = (values.shape[0], *[1] * (values.ndim - 2), values.shape[-1])
    normalized = functional.layer_norm(values, values.shape[-1:])
    return normalized * weights[f"{name}.scale"].view(shape) + weights[f"{name}.shift"].view(shape)


def sinusoids(places: Tensor, width: int) -> Tensor:
    """Sines and cosines of positions or distances (n,), with wavelengths from 2 pi to 20,000 pi: (n, width)."""
    frequency = torch.exp(torch.arange(0, width, 2.0, device=places.device) * (-math.log(10000) / width))
    angles = places.unsqueeze(1) * frequency
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]


@lru_cache(maxsize=64)
def _sinusoids(length: int, width: int, device: torch.device) -> Tensor:
    """(2 length - 1, width): row length - 1 + d is r(-d), for distances -d = i - j from length - 1 down to 1 - length."""
    return sinusoids(torch.arange(length - 1, -length, -1.0, device=device), width)


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


class _RelativeAttention(torch.autograd.Function):
    """Softmax attention with scores by distance, which are not copied.

    queries, keys, values: (N, L, E), N = R B heads. by_distance: (R, heads, B, L, C). bias: added to the scores; None: a query
    attends to itself and to earlier positions.
    """

    @staticmethod
    def forward(ctx, queries, keys, values, by_distance, bias):
        runs, heads, rows, length, _ = by_distance.shape
        scores = queries.new_empty(runs, rows, heads, length, length)
        if bias is None:
            scores.copy_(_shifted(by_distance, length)).masked_fill_(_later(length, scores.device), float("-inf"))
        else:
            torch.add(_shifted(by_distance, length), bias, out=scores)
        shares = torch.baddbmm(scores.flatten(0, 2), queries, keys.transpose(1, 2)).softmax(-1)
        ctx.save_for_backward(queries, keys, values, shares)
        ctx.shape, ctx.causal = by_distance.shape, bias is None
        return torch.bmm(shares, values)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        queries, keys, values, shares = ctx.saved_tensors
        grad_values = torch.bmm(shares.transpose(1, 2), grad)
        grad_shares = torch.bmm(grad, values.transpose(1, 2))
        grad_scores = torch._softmax_backward_data(grad_shares, shares, -1, shares.dtype)
        grad_queries = torch.bmm(grad_scores, keys)
        grad_keys = torch.bmm(queries.transpose(1, 2), grad_scores).transpose(1, 2)
        runs, heads, rows, length, _ = ctx.shape
        by_key = grad_scores.view(runs, rows, heads, length, length)
        if ctx.causal:
            # The last column of by_key is zero except in the last row. In memory, it is where the next row's first column is.
            grad_distance = grad_scores.new_empty(ctx.shape)
            grad_distance.flatten(3)[..., : length - 1] = 0
            _shifted(grad_distance, length - 1).copy_(by_key[..., :-1])
            grad_distance[..., -1, -1] = by_key[..., -1, -1].transpose(1, 2)
        else:
            grad_distance = grad_scores.new_zeros(ctx.shape)
            _shifted(grad_distance, length).copy_(by_key)
        return grad_queries, grad_keys, grad_values, grad_distance, None


@lru_cache(maxsize=64)
def _later(length: int, device: torch.device) -> Tensor:
    """Which keys are after the query, (L, L) of bool."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def _heads(values: Tensor, heads: int) -> Tensor:
    """(R, B, L, D) -> (R, B, heads, L, D / heads)."""
    return values.unflatten(-1, (heads, -1)).transpose(2, 3)


def _batch(values: Tensor) -> Tensor:
    """Merge all axes but the last two into one, the batch axis of a batched product.

    The memory layout is the same for any number of runs. Flattening alone would copy for several runs but not for one, and a
    product of tensors with other strides can have other last bits.
    """
    return values.contiguous().flatten(0, -3)


def _mix(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """Softmax attention: queries (R, B, heads, L, E), divided by sqrt(E), keys and values (R, B, heads, S, E), bias
    (R, B, heads, L or 1, S) added to the scores -> (R, B, L, heads * E)."""
    scores = torch.baddbmm(bias.flatten(0, 2), _batch(queries), _batch(keys).transpose(1, 2))
    mixed = torch.bmm(scores.softmax(-1), _batch(values))
    return mixed.unflatten(0, queries.shape[:3]).transpose(2, 3).flatten(-2)


def _self_attend(weights: Weights, name: str, parts: Sequence[Tensor], heads: int, mask: Tensor | None) -> Tensor:
    """Self-attention before the output map, with relative positions if they have weights: parts (R, B, L, D) -> (R, B, L, D).

    mask: (R, B, L), the positions that every position attends to; None: each attends to itself and to earlier positions.
    """
    queries, keys, values = (_heads(part, heads) for part in parts)
    runs, rows, _, length, width = queries.shape
    queries = queries / math.sqrt(width)
    if f"{name}.position" not in weights:
        if mask is None:
            bias = queries.new_full((length, length), float("-inf")).triu(1)
        else:
            bias = padding_bias(mask, queries.dtype)[:, :, None, None, :]
        return _mix(queries, keys, values, bias.expand(runs, rows, heads, -1, -1))
    content, position = (
        weights[f"{name}.{part}_bias"][:, None, :, None, :] / math.sqrt(width) for part in ("content", "position")
    )
    distances = _sinusoids(length, heads * width, queries.device)
    distances = distances[:length] if mask is None else distances
    distances = torch.bmm(distances.expand(runs, -1, -1), weights[f"{name}.position"])
    distances = _heads(distances.unsqueeze(1), heads).squeeze(1)
    # One product per run and head: rows and queries side by side.
    asked = (queries + position).transpose(1, 2).flatten(2, 3)
    by_distance = torch.bmm(_batch(asked), _batch(distances).transpose(1, 2))
    by_distance = by_distance.view(runs, heads, rows, length, -1)
    blocked = None if mask is None else padding_bias(mask, by_distance.dtype)[:, :, None, None, :]
    asked = _batch(queries + content)
    mixed = _RelativeAttention.apply(asked, _batch(keys), _batch(values), by_distance, blocked)
    return mixed.view(runs, rows, heads, length, width).transpose(2, 3).flatten(-2)


def _parts(weights: Weights, name: str, queried: Tensor, attended: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries computed from `queried`, and keys and values computed from `attended`."""
    return (
        project(weights, f"{name}.query", queried),
        project(weights, f"{name}.key", attended),
        project(weights, f"{name}.value", attended),
    )


def attend_own(weights: Weights, name: str, states: Tensor, chunks: Chunks, masks: list[Tensor] | None, heads: int) -> Tensor:
    """Positions (R, N, D) in chunk order attend to those of their row -> (R, N, D).

    masks: (R, rows, length) of every chunk, the positions that all others attend to; None: each attends to itself and to earlier
    positions.
    """
    own_masks: Sequence[Tensor | None] = masks or [None] * len(chunks.rows)
    parts = zip(own_masks, *(chunks.cut(part) for part in _parts(weights, name, states, states)), strict=True)
    outputs = [_self_attend(weights, name, own, heads, mask).flatten(1, 2) for mask, *own in parts]
    return project(weights, f"{name}.output", torch.cat(outputs, 1))


def attend_across(weights: Weights, name: str, states: Tensor, read: Encoded, layout: Layout, heads: int) -> Tensor:
    """Target positions (R, N, D) in chunk order attend to the input positions of their row -> (R, N, D)."""
    queries, keys, values = _parts(weights, name, states, read.states)
    queries = queries / math.sqrt(queries.shape[-1] // heads)
    attended = (read.chunks.cut(keys), read.chunks.cut(values), read.masks)
    parts = zip(layout.chunks(queries), *(read.chunks.within(part, layout.target_chunks.rows) for part in attended), strict=True)
    outputs = []
    for query, key, value, mask in parts:
        bias = padding_bias(mask, query.dtype)[:, :, None, None, :].expand(-1, -1, heads, -1, -1)
        outputs.append(_mix(_heads(query, heads), _heads(key, heads), _heads(value, heads), bias).flatten(1, 2))
    return project(weights, f"{name}.output", torch.cat(outputs, 1))
