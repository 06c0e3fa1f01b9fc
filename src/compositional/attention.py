"""Layers of the transformer along the run axis: attention with relative positions, layer normalization, feed-forward blocks.

Relative positions after Dai et al. (Transformer-XL, ACL 2019, section 3.3): the score of query i and key j is
(q_i + u) . k_j + (q_i + v) . W r(i - j), r being sinusoids of the distance and u, v learned vectors a head. There is no absolute
position anywhere (Csordas, Irie, Schmidhuber, "The Devil is in the Detail", EMNLP 2021).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import packed, randomness
from compositional.sequences import Layout

Weights = dict[str, Tensor]


def initialize_projection(source: np.random.Generator, inputs: int, outputs: int, name: str) -> Weights:
    """Glorot's uniform initialization of the weight, zero bias."""
    bound = math.sqrt(6 / (inputs + outputs))
    return {
        f"{name}.weight": randomness.uniform_tensor(source, (inputs, outputs), -bound, bound),
        f"{name}.bias": torch.zeros(outputs),
    }


def initialize_normalization(width: int, name: str) -> Weights:
    """Scale 1, shift 0."""
    return {f"{name}.scale": torch.ones(width), f"{name}.shift": torch.zeros(width)}


def initialize_attention(source: np.random.Generator, width: int, heads: int, name: str, relative: bool) -> Weights:
    """Projections of queries, keys, values and output; with relative positions also W, u and v."""
    weights: Weights = {}
    for part in ("query", "key", "value", "output"):
        weights |= initialize_projection(source, width, width, f"{name}.{part}")
    if relative:
        bound = math.sqrt(3 / width)
        weights[f"{name}.position"] = randomness.uniform_tensor(source, (width, width), -bound, bound)
        weights |= {f"{name}.{part}_bias": torch.zeros(heads, width // heads) for part in ("content", "position")}
    return weights


def project(weights: Weights, name: str, values: Tensor) -> Tensor:
    """(R, ..., inputs) -> (R, ..., outputs)."""
    return packed.linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])


def normalize(weights: Weights, name: str, values: Tensor) -> Tensor:
    """Layer normalization of the last axis of (R, ..., D), with each run's own scale and shift."""
    shape = (values.shape[0], *[1] * (values.ndim - 2), values.shape[-1])
    normalized = functional.layer_norm(values, values.shape[-1:])
    return normalized * weights[f"{name}.scale"].view(shape) + weights[f"{name}.shift"].view(shape)


def _sinusoids(length: int, width: int, device: torch.device) -> Tensor:
    """Row length - 1 + d is r(-d), for distances -d = i - j from length - 1 down to 1 - length: (2 length - 1, width)."""
    distance = torch.arange(length - 1, -length, -1.0, device=device).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2.0, device=device) * (-math.log(10000) / width))
    return torch.cat([(distance * frequency).sin(), (distance * frequency).cos()], 1)[:, :width]


def shift(scores: Tensor) -> Tensor:
    """Scores by distance to scores by key: (..., L, 2 L - 1) -> (..., L, L), out[i, j] = in[i, L - 1 - i + j].

    Padding and reshaping alone, so that the gradient needs no scatter (Dai et al. 2019, appendix B).
    """
    length = scores.shape[-2]
    flat = functional.pad(scores, (0, 1)).flatten(-2)
    return flat[..., length - 1 : -1].unflatten(-1, (length, 2 * length - 1))[..., :length]


def _heads(values: Tensor, heads: int) -> Tensor:
    """(R, B, L, D) -> (R, B, heads, L, D / heads)."""
    return values.unflatten(-1, (heads, -1)).transpose(2, 3)


def _product(left: Tensor, right: Tensor, transposed: bool = False) -> Tensor:
    """Matrix product of the last two axes (of the right one's transpose), the others flattened into one batch.

    Both are laid out alike for any number of runs: flattening alone would copy for several and not for one, and a product of
    other strides has other last bits.
    """
    batched = right.contiguous().flatten(0, -3)
    batched = batched.transpose(1, 2) if transposed else batched
    return torch.bmm(left.contiguous().flatten(0, -3), batched).unflatten(0, left.shape[:-2])


def _mix(queries: Tensor, keys: Tensor, values: Tensor, blocked: Tensor, position: Tensor | None = None) -> Tensor:
    """Softmax attention: queries (R, B, heads, L, E), keys and values (R, B, heads, S, E), blocked (R or 1, B or 1, L or 1, S),
    position (R, B, heads, L, S) added to the scores -> (R, B, L, heads * E)."""
    scores = _product(queries, keys, transposed=True)
    if position is not None:
        scores = scores + position
    scores = (scores / math.sqrt(queries.shape[-1])).masked_fill(blocked.unsqueeze(2), float("-inf"))
    return _product(scores.softmax(-1), values).transpose(2, 3).flatten(-2)


def _self_attend(weights: Weights, name: str, parts: tuple[Tensor, Tensor, Tensor], blocked: Tensor, heads: int) -> Tensor:
    """Sequences over themselves with relative positions, before the output map: parts (R, B, L, D) -> (R, B, L, D)."""
    queries, keys, values = (_heads(part, heads) for part in parts)
    runs, rows, _, length, width = queries.shape
    content, position = (weights[f"{name}.{part}_bias"][:, None, :, None, :] for part in ("content", "position"))
    distances = _sinusoids(length, heads * width, queries.device).expand(runs, -1, -1)
    distances = torch.bmm(distances, weights[f"{name}.position"]).unflatten(-1, (heads, width)).transpose(1, 2)
    # One product a run and head: rows and queries side by side.
    asked = (queries + position).transpose(1, 2).flatten(2, 3)
    by_distance = _product(asked, distances, transposed=True).unflatten(2, (rows, length)).transpose(1, 2)
    return _mix(queries + content, keys, values, blocked, shift(by_distance))


def _parts(weights: Weights, name: str, queried: Tensor, attended: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of the one, keys and values of the other."""
    return (
        project(weights, f"{name}.query", queried),
        project(weights, f"{name}.key", attended),
        project(weights, f"{name}.value", attended),
    )


def attend_inputs(weights: Weights, name: str, states: Tensor, mask: Tensor, heads: int) -> Tensor:
    """Input positions over input positions: states (R, B, S, D), mask (R, B, S) -> (R, B, S, D)."""
    mixed = _self_attend(weights, name, _parts(weights, name, states, states), ~mask.unsqueeze(2), heads)
    return project(weights, f"{name}.output", mixed)


def attend_past(weights: Weights, name: str, states: Tensor, layout: Layout, heads: int) -> Tensor:
    """Target positions over themselves and those before: (R, N, D) in chunk order -> (R, N, D)."""
    outputs = []
    for parts in zip(*(layout.chunks(part) for part in _parts(weights, name, states, states)), strict=True):
        length = parts[0].shape[2]
        future = torch.ones(1, 1, length, length, dtype=torch.bool, device=states.device).triu(1)
        outputs.append(_self_attend(weights, name, parts, future, heads).flatten(1, 2))
    return project(weights, f"{name}.output", torch.cat(outputs, 1))


def attend_across(
    weights: Weights, name: str, states: Tensor, encoded: Tensor, mask: Tensor, layout: Layout, heads: int
) -> Tensor:
    """Target positions (R, N, D) in chunk order over input positions (R, B, S, D), mask (R, B, S) -> (R, N, D)."""
    queries, keys, values = _parts(weights, name, states, encoded)
    parts = zip(layout.chunks(queries), layout.rows(keys), layout.rows(values), layout.rows((~mask).unsqueeze(2)), strict=True)
    outputs = [
        _mix(_heads(query, heads), _heads(key, heads), _heads(value, heads), blocked).flatten(1, 2)
        for query, key, value, blocked in parts
    ]
    return project(weights, f"{name}.output", torch.cat(outputs, 1))
