"""The bidirectional encoder and the attention that the recurrent sequence models share."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from compositional import packed, randomness
from compositional.lstm import lstm
from compositional.sequences import CHUNK, Batch, Layout

Weights = dict[str, Tensor]


def initialize_lstm(source: np.random.Generator, inputs: int, width: int, prefix: str) -> Weights:
    """Uniform in +-1/sqrt(width), the library's usual LSTM initialization. Gates: input, forget, output, candidate."""
    bound = 1 / math.sqrt(width)
    return {
        f"{prefix}.input": randomness.uniform_tensor(source, (inputs, 4 * width), -bound, bound),
        f"{prefix}.recurrent": randomness.uniform_tensor(source, (width, 4 * width), -bound, bound),
        f"{prefix}.bias": randomness.uniform_tensor(source, (4 * width,), -bound, bound),
    }


def initialize_linear(source: np.random.Generator, inputs: int, outputs: int, prefix: str) -> Weights:
    """Uniform in +-1/sqrt(inputs)."""
    bound = 1 / math.sqrt(inputs)
    return {
        f"{prefix}.weight": randomness.uniform_tensor(source, (inputs, outputs), -bound, bound),
        f"{prefix}.bias": randomness.uniform_tensor(source, (outputs,), -bound, bound),
    }


def stacked(weights: Weights, prefix: str) -> Tensor:
    """An LSTM's weights as `lstm` takes them: input weights (where it has inputs), bias and recurrent weights."""
    parts = [weights[f"{prefix}.bias"].unsqueeze(1), weights[f"{prefix}.recurrent"]]
    if f"{prefix}.input" in weights:
        parts.insert(0, weights[f"{prefix}.input"])
    return torch.cat(parts, 1)


def encode(weights: Weights, embedded: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Bidirectional LSTM over the input words.

    Args:
        weights: entries "encoder.{forward,backward}.{input,recurrent,bias}".
        embedded: (R, B, S, D); positions after an input's end are ignored.

    Returns:
        States of both directions side by side (R, B, S, 2 H) and what each direction ends with, (R, B, 2 H).
    """
    runs, rows, steps, _ = embedded.shape
    position = torch.arange(steps, device=embedded.device)
    # The backward direction reads each input from its own last word to its first; padding stays behind.
    length = batch.input_lengths.unsqueeze(-1)
    backward = torch.where(position < length, length - 1 - position, position)
    words = torch.stack([embedded, packed.exchange(embedded, backward)], 1).transpose(2, 3).flatten(0, 1)
    both = torch.stack([stacked(weights, f"encoder.{direction}") for direction in ("forward", "backward")], 1).flatten(0, 1)
    width = both.shape[2] // 4
    zeros = embedded.new_zeros(runs * 2, rows, width)
    states = lstm(words.flatten(1, 2), zeros, zeros, both, [rows] * steps)
    ahead, back = states.view(runs, 2, steps, rows, width).transpose(2, 3).unbind(1)
    last = (length - 1).unsqueeze(-1).expand(-1, -1, 1, width)
    ends = torch.cat([direction.gather(2, last).squeeze(2) for direction in (ahead, back)], -1)
    return torch.cat([ahead, packed.exchange(back, backward)], -1), ends


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, layout: Layout) -> Tensor:
    """Dot-product attention of every target position over the input positions.

    Args:
        queries: (R, N, H) in chunk order; keys: (R, B, S, H); values: (R, B, S, V); mask: (R, B, S).

    Returns:
        (R, N, V) in chunk order.
    """
    # Input positions come before target positions: the softmax then runs along the longer, contiguous axis.
    blocked = torch.zeros_like(mask, dtype=keys.dtype).masked_fill_(~mask, float("-inf")).unsqueeze(3)
    outputs = []
    # Splitting once, rather than slicing for every chunk, keeps the gradient one concatenation.
    parts = zip(layout.chunks(queries), keys.split(CHUNK, 1), values.split(CHUNK, 1), blocked.split(CHUNK, 1), strict=True)
    for chunk, key, value, bias in parts:
        scores = torch.baddbmm(bias.flatten(0, 1), key.flatten(0, 1), chunk.flatten(0, 1).transpose(1, 2))
        mixed = torch.bmm(scores.softmax(1).transpose(1, 2), value.flatten(0, 1))
        outputs.append(mixed.unflatten(0, chunk.shape[:2]).flatten(1, 2))
    return torch.cat(outputs, 1)
