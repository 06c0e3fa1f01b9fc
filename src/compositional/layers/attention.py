"""Layers of the transformer along the run axis: attention with relative positions, layer normalization, feed-forward blocks.

Relative positions follow Dai et al. (Transformer-XL, ACL 2019, section 3.3): the score of query i and key j is
(q_i + u) . k_j + (q_i + v) . W r(i - j), where r is a vector of sinusoids of the distance, and u and v are learned vectors, one
of each per head. Absolute positions are then not used (Csordas, Irie, Schmidhuber, "The Devil is in the Detail", EMNLP 2021).
Without W, attention is the ordinary one, which knows only the positions that the states contain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.layers import Weights, softmax
from compositional.layers.functional import first_gradient, linear
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


@cache  # never freed: a graph that was recorded on CUDA goes on reading its memory
def _sinusoids(length: int, width: int, device: torch.device) -> Tensor:
    """(2 length - 1, width): row length - 1 + d is r(-d), for distances -d = i - j from length - 1 down to 1 - length."""
    return sinusoids(torch.arange(length - 1, -length, -1.0, device=device), width)


def _by_head(values: Tensor, heads: int, bias: Tensor | None = None, head_first: bool = False) -> Tensor:
    """(R, B, L, D) -> (R, B, heads, L, D / heads) or (R, heads, B, L, D / heads), plus a bias (R, heads, D / heads).

    The result is contiguous for any number of runs: a product of tensors with other strides can have other last bits.
    """
    order = (0, 3, 1, 2, 4) if head_first else (0, 1, 3, 2, 4)
    split = values.unflatten(-1, (heads, -1)).permute(order)
    result = split.new_empty(split.shape)
    if bias is None:
        return result.copy_(split)
    return torch.add(split, bias[:, :, None, None] if head_first else bias[:, None, :, None], out=result)


@dataclass(frozen=True)
class _Rectangles:
    """Which positions attend to which.

    Attributes:
        queries, keys: the chunks of both. They have the same rows, which the keys' chunks may divide more coarsely.
        masks: for each chunk of keys (R, rows, S), which positions count; None: those up to the query.
    """

    heads: int
    queries: Chunks
    keys: Chunks
    masks: list[Tensor] | None

    def of_queries(self, values: Tensor) -> list[Tensor]:
        """Views (R, rows, L, ...) of (R, N, ...)."""
        return self.queries.cut(values)

    def of_keys(self, values: Tensor) -> list[Tensor]:
        """Views (R, rows, S, ...), of the same rows."""
        return self.keys.within(self.keys.cut(values), self.queries.rows)

    def allowed(self) -> Sequence[Tensor | None]:
        """The mask (R, rows, S) of each."""
        return [None] * len(self.queries.rows) if self.masks is None else self.keys.within(self.masks, self.queries.rows)

    def near(self, distances: Tensor, length: int) -> Tensor:
        """Of vectors (R, heads, C, E) of the distances in the longest chunk, those in a chunk of this length."""
        longest = max(self.queries.lengths)
        return distances[:, :, longest - length : longest if self.masks is None else longest + length - 1]


class _Attention(torch.autograd.Function):
    """Softmax attention in all chunks, without autograd's records of their many small operations.

    queries: (R, N, D), divided by sqrt(E), E = D / heads. keys, values: (R, M, D). content, position: u and v (R, heads, E), also
    divided by sqrt(E). distances: (R, heads, C, E), W r of the distances in the longest chunk. If positions are not relative,
    these three are None. Returns (R, N, D).
    """

    @staticmethod
    def forward(ctx, where, queries, keys, values, content, position, distances):
        heads, mixed, kept = where.heads, torch.empty_like(queries), []
        views = where.of_queries(queries), *map(where.of_keys, (keys, values)), where.of_queries(mixed), where.allowed()
        for query, key, value, result, allowed in zip(*views, strict=True):
            asked, key, value = _by_head(query, heads, content), _by_head(key, heads), _by_head(value, heads)
            scores, by_distance, told = _products(asked, key.mT), None, None
            if distances is not None:
                told, near = _by_head(query, heads, position, True).flatten(2, 3), where.near(distances, query.shape[2])
                by_distance = _products(told, near.mT).unflatten(2, query.shape[1:3])
            share = softmax.shares(scores, by_distance, allowed, where.masks is None)
            result.unflatten(-1, (heads, -1)).copy_(_products(share, value).transpose(2, 3))
            kept += [asked, key, value, share, told]
        ctx.save_for_backward(distances, *kept)
        ctx.where, ctx.shapes = where, (queries.shape, keys.shape)
        return mixed

    @staticmethod
    @first_gradient
    def backward(ctx, grad):
        where, (distances, *kept) = ctx.where, ctx.saved_tensors
        heads, (queries, keys) = where.heads, ctx.shapes
        grads: list = [grad.new_empty(shape) for shape in (queries, keys, keys)]
        relative: list = [None] * 3
        if distances is not None:
            relative = [*distances.new_zeros(2, *distances.shape[:2], distances.shape[3]), torch.zeros_like(distances)]
        views = *map(where.of_queries, (grad, grads[0])), *map(where.of_keys, grads[1:]), *(kept[place::5] for place in range(5))
        for part, grad_query, grad_key, grad_value, asked, key, value, share, told in zip(*views, strict=True):
            part = _by_head(part, heads)
            grad_scores, by_distance = _products(part, value.mT), None
            if told is not None:
                near = where.near(distances, share.shape[3])
                by_distance = grad.new_empty(*told.shape[:2], *share.shape[1:4:2], near.shape[2])
            grad_scores = softmax.shares_gradient(share, grad_scores, by_distance, where.masks is None)
            grad_asked = _products(grad_scores, key)
            for whole, own in (
                (grad_value, _products(share.mT, part)),
                (grad_key, _products(grad_scores.mT, asked)),
                (grad_query, grad_asked),
            ):
                whole.unflatten(-1, (heads, -1)).copy_(own.transpose(2, 3))
            if by_distance is not None:
                by_distance = by_distance.flatten(2, 3)
                grad_told = _products(by_distance, near)
                grad_query.unflatten(-1, (heads, -1)).add_(grad_told.unflatten(2, share.shape[1:4:2]).permute(0, 2, 3, 1, 4))
                relative[0] += grad_asked.sum((1, 3))
                relative[1] += grad_told.sum(2)
                where.near(relative[2], share.shape[3]).add_(_products(by_distance.mT, told))
        return None, *grads, *relative


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Batched product: (..., L, E) x (..., E, S) -> (..., L, S)."""
    return torch.bmm(left.flatten(0, -3), right.flatten(0, -3)).unflatten(0, left.shape[:-2])


def _attend(weights: Weights, name: str, queries: Tensor, keys: Tensor, values: Tensor, where: _Rectangles) -> Tensor:
    """Attention and its output map: (R, N, D) and twice (R, M, D) -> (R, N, D), with relative positions if they have weights."""
    heads, (runs, _, width) = where.heads, queries.shape
    scale = math.sqrt(width // heads)
    relative: list[Tensor | None] = [None] * 3
    if f"{name}.position" in weights:
        longest = max(where.queries.lengths)
        distances = _sinusoids(longest, width, queries.device)[: longest if where.masks is None else None]
        distances = torch.bmm(distances.expand(runs, -1, -1), weights[f"{name}.position"])
        content, position = (weights[f"{name}.{part}_bias"] / scale for part in ("content", "position"))
        relative = [content, position, distances.unflatten(2, (heads, -1)).transpose(1, 2).contiguous()]
    return project(weights, f"{name}.output", _Attention.apply(where, queries / scale, keys, values, *relative))


def _parts(weights: Weights, name: str, parts: Sequence[str], values: Tensor) -> tuple[Tensor, ...]:
    """Several linear maps of the same values (R, N, D) as one product."""
    weight = torch.cat([weights[f"{name}.{part}.weight"] for part in parts], 2)
    bias = torch.cat([weights[f"{name}.{part}.bias"] for part in parts], 1)
    return linear(values, weight, bias).chunk(len(parts), -1)


def attend_own(weights: Weights, name: str, states: Tensor, chunks: Chunks, masks: list[Tensor] | None, heads: int) -> Tensor:
    """Positions (R, N, D) in chunk order attend to those of their row -> (R, N, D).

    masks: (R, rows, length) of every chunk, the positions that all others attend to; None: each attends to itself and to earlier
    positions.
    """
    queries, keys, values = _parts(weights, name, ("query", "key", "value"), states)
    return _attend(weights, name, queries, keys, values, _Rectangles(heads, chunks, chunks, masks))


def attend_past(weights: Weights, name: str, states: Tensor, past: dict[str, Tensor], heads: int) -> Tensor:
    """One new position of each row (R, B, D) attends to itself and to the earlier ones, whose keys and values are in `past`, and
    adds its own there -> (R, B, D). Equal to `attend_own` up to rounding; without gradients."""
    scale = math.sqrt(states.shape[-1] // heads)
    queries, *new = (part.unflatten(-1, (heads, -1)) for part in _parts(weights, name, ("query", "key", "value"), states))
    for part, values in zip(("keys", "values"), new, strict=True):
        kept = past.get(f"{name}.{part}", values.new_empty(*values.shape[:3], 0, values.shape[3]))
        past[f"{name}.{part}"] = torch.cat([kept, values.unsqueeze(3)], 3)
    keys, values = (past[f"{name}.{part}"] for part in ("keys", "values"))
    if f"{name}.position" in weights:
        longest = 1 << keys.shape[3].bit_length()  # few sizes, because the table of each is kept
        distances = _sinusoids(longest, states.shape[-1], states.device)[longest - keys.shape[3] : longest]
        distances = (distances @ weights[f"{name}.position"]).unflatten(-1, (heads, -1))
        content, position = (queries + weights[f"{name}.{part}_bias"].unsqueeze(1) for part in ("content", "position"))
        scores = torch.einsum("rbhe,rbhte->rbht", content, keys) + torch.einsum("rbhe,rthe->rbht", position, distances)
    else:
        scores = torch.einsum("rbhe,rbhte->rbht", queries, keys)
    mixed = torch.einsum("rbht,rbhte->rbhe", (scores / scale).softmax(-1), values)
    return project(weights, f"{name}.output", mixed.flatten(2))


def attend_across(
    weights: Weights, name: str, states: Tensor, read: Encoded, layout: Layout, heads: int, once: Callable
) -> Tensor:
    """Target positions (R, N, D) in chunk order attend to the input positions of their row -> (R, N, D).

    once: as in `kinds.sequence.Batch`.
    """
    queries = project(weights, f"{name}.query", states)
    keys, values = once(name, lambda: _parts(weights, name, ("key", "value"), read.states))
    return _attend(weights, name, queries, keys, values, _Rectangles(heads, layout.target_chunks, read.chunks, read.masks))
