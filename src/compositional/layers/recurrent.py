"""The bidirectional encoder and the attention that the recurrent sequence models share."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.language.vocabulary import END
from compositional.layers import Weights
from compositional.layers.functional import aligned, padding_bias, reorder
from compositional.layers.lstm import lstm
from compositional.layers.ragged import Layout, Steps

SMALLEST = 1e-12  # lower bound of probabilities before their logarithm is taken


def initialize_lstm(source: np.random.Generator, inputs: int, width: int, prefix: str) -> Weights:
    """Uniform in +-1/sqrt(width), PyTorch's default initialization of an LSTM. Gates: input, forget, output, candidate."""
    bound = 1 / math.sqrt(width)
    return {
        f"{prefix}.input": randomness.uniform_tensor(source, (inputs, 4 * width), -bound, bound),
        f"{prefix}.recurrent": randomness.uniform_tensor(source, (width, 4 * width), -bound, bound),
        f"{prefix}.bias": randomness.uniform_tensor(source, (4 * width,), -bound, bound),
    }


def symbols_alike(task: dict) -> Tensor:
    """The symbol that is spelled like each input word, for copying: one-hot (words, symbols); a row of zeros if there is none.

    There may be more columns than symbols (`functional.aligned`), so that products with them are aligned for every run.
    """
    symbols = {symbol: index for index, symbol in enumerate(task["target_words"])}
    alike = torch.zeros(len(task["source_words"]), aligned(len(symbols)))
    for index, word in enumerate(task["source_words"]):
        if index > END and word in symbols:
            alike[index, symbols[word]] = 1
    return alike


def stacked(weights: Weights, prefix: str) -> Tensor:
    """An LSTM's weights as `lstm` takes them: input weights (if it has inputs), bias and recurrent weights."""
    parts = [weights[f"{prefix}.bias"].unsqueeze(1), weights[f"{prefix}.recurrent"]]
    if f"{prefix}.input" in weights:
        parts.insert(0, weights[f"{prefix}.input"])
    return torch.cat(parts, 1)


class _ToSteps(torch.autograd.Function):
    """Words (R, B, S, D) in the order in which each direction reads them, (R, 2, N, D)."""

    @staticmethod
    def forward(ctx, words, read, seen, mask):
        ctx.save_for_backward(seen, mask)
        return words.flatten(0, 2).index_select(0, read.flatten()).view(*read.shape, -1)

    @staticmethod
    def backward(ctx, grad):
        seen, mask = ctx.saved_tensors
        both = grad.flatten(0, 2).index_select(0, seen.flatten()).view(*seen.shape, -1)
        return (both[..., 0, :] + both[..., 1, :]).mul_(mask.unsqueeze(-1)), None, None, None


class _FromSteps(torch.autograd.Function):
    """States (R, 2, N, H) of both directions, concatenated: at each word, (R, B, S, 2 H), and at the ends, (R, B, 2 H)."""

    @staticmethod
    def forward(ctx, states, read, seen, last):
        ctx.save_for_backward(read, last)
        rows = states.flatten(0, 2)
        return tuple(rows.index_select(0, index.flatten()).view(*index.shape[:-1], -1) for index in (seen, last))

    @staticmethod
    def backward(ctx, grad_words, grad_ends):
        read, last = ctx.saved_tensors
        width = grad_words.shape[3] // 2
        direction = torch.arange(2, device=read.device).view(1, 2, 1)
        grad = grad_words.reshape(-1, width).index_select(0, (2 * read + direction).flatten())
        # No two rows end at the same index, so the order of these additions does not matter.
        grad.index_add_(0, last.flatten(), grad_ends.reshape(-1, width))
        return grad.view(*read.shape, width), None, None, None


def _mirrored(step: Tensor, length: Tensor) -> Tensor:
    """The backward direction reads each input from its last word to its first; padding stays at the end."""
    return torch.where(step < length, length - 1 - step, step)


def encode(
    weights: Weights, embedded: Tensor, reading: Steps, lengths: Tensor, mask: Tensor, prefix: str = "encoder"
) -> tuple[Tensor, Tensor]:
    """Bidirectional LSTM over the input words.

    Args:
        weights: entries "<prefix>.{forward,backward}.{input,recurrent,bias}".
        embedded: (R, B, S, D); positions after an input's end are ignored.
        reading: the step order of the inputs.
        lengths: (R, B).
        mask: (R, B, S), True before an input's end.

    Returns:
        The concatenated states of both directions, (R, B, S, 2 H), undefined after an input's end, and the last state of each
        direction, (R, B, 2 H).
    """
    runs, rows, words, _ = embedded.shape
    run, row_number, word_number, direction = (torch.arange(size, device=lengths.device) for size in (runs, rows, words, 2))
    # Which word, among all R * B * S, each direction reads at which step: (R, 2, N).
    row, step = reading.positions.unbind(1)
    word = torch.stack([step.expand(runs, -1), _mirrored(step, lengths[:, row])], 1)
    read = (run.view(-1, 1, 1) * rows + row) * words + word
    # At which step, among all R * 2 * N, each direction reads a word: (R, B, S, 2), and the last word of an input: (R, B, 2).
    step = torch.stack([word_number.expand(runs, rows, -1), _mirrored(word_number, lengths.unsqueeze(2))], 3)
    first = (2 * run.view(-1, 1, 1) + direction) * len(row)
    seen = first.unsqueeze(1) + reading.places(row_number.view(-1, 1, 1), step)
    last = first + reading.places(row_number, lengths - 1).unsqueeze(2)

    both = torch.stack([stacked(weights, f"{prefix}.{way}") for way in ("forward", "backward")], 1).flatten(0, 1)
    zeros = embedded.new_zeros(runs * 2, rows, both.shape[2] // 4)
    states = lstm(_ToSteps.apply(embedded, read, seen, mask).flatten(0, 1), zeros, zeros, both, reading.sizes)
    return _FromSteps.apply(states.unflatten(0, (runs, 2)), read, seen, last)


def at_last(states: Tensor, lengths: Tensor) -> Tensor:
    """The state at each input's last word: states (R, B, S, H), lengths (R, B) -> (R, B, H)."""
    return states.gather(2, (lengths - 1)[..., None, None].expand(-1, -1, 1, states.shape[3])).squeeze(2)


def look(hidden: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """Attention weights of one decoder step: hidden (R, B, H), keys (R * B, S, H), bias (R * B, 1, S) -> (R * B, 1, S)."""
    return torch.baddbmm(bias, hidden.reshape(-1, 1, hidden.shape[2]), keys.transpose(1, 2)).softmax(2)


def looked_at(looks: Tensor, values: Tensor, layout: Layout) -> Tensor:
    """Means of values (R, B, S, V) with the attention weights `looks` (R, N, S) in chunk order: (R, N, V)."""
    parts = zip(layout.chunks(looks), layout.rows(values), strict=True)
    means = [
        torch.bmm(part.flatten(0, 1), value.flatten(0, 1)).unflatten(0, part.shape[:2]).flatten(1, 2) for part, value in parts
    ]
    return torch.cat(means, 1)


def cell_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell state (R, B, H) after a single LSTM step, from its gates (R, B, 4 H) before their nonlinearity.

    For decoders whose input depends on the previous step; all others use `lstm`, which is faster.
    """
    into, keep, out, candidate = gates.chunk(4, 2)
    cell = keep.sigmoid() * cell + into.sigmoid() * candidate.tanh()
    return out.sigmoid() * cell.tanh(), cell


def decode(
    weights: Weights, inputs: Tensor | None, hidden: Tensor, layout: Layout, past: dict[str, Tensor] | None = None
) -> Tensor:
    """An LSTM decoder ("decoder.{input,recurrent,bias}") whose inputs do not depend on its states.

    Args:
        inputs: (R, N, I) in step order; None: no inputs.
        hidden: the first hidden state, (R, B, H). The first cell state is 0.
        layout: that of the batch; with `past`, of one position per row.
        past: holds hidden and cell state (R, B, H) of the position before and receives those of this one.

    Returns:
        Hidden states (R, N, H) in chunk order.
    """
    cell, weight = torch.zeros_like(hidden), stacked(weights, "decoder")
    if past is None:
        return reorder(lstm(inputs, hidden, cell, weight, layout.writing.sizes), layout.to_chunks, layout.to_steps)
    hidden, cell = past.get("hidden", hidden), past.get("cell", cell)
    read = [torch.ones_like(hidden[..., :1]), hidden]
    hidden, cell = cell_step(torch.bmm(torch.cat(read if inputs is None else [inputs, *read], 2), weight), cell)
    past.update(hidden=hidden, cell=cell)
    return hidden


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, layout: Layout) -> Tensor:
    """Dot-product attention of every target position to the input positions.

    Args:
        queries: (R, N, H) in chunk order; keys: (R, B, S, H); values: (R, B, S, V); mask: (R, B, S).

    Returns:
        (R, N, V) in chunk order.
    """
    # The axis of input positions comes before that of target positions: the softmax then vectorizes along the contiguous axis.
    blocked = padding_bias(mask, keys.dtype).unsqueeze(3)
    outputs = []
    # Splitting once instead of slicing for every chunk makes the gradient a single concatenation.
    parts = zip(layout.chunks(queries), layout.rows(keys), layout.rows(values), layout.rows(blocked), strict=True)
    for chunk, key, value, bias in parts:
        scores = torch.baddbmm(bias.flatten(0, 1), key.flatten(0, 1), chunk.flatten(0, 1).transpose(1, 2))
        mixed = torch.bmm(scores.softmax(1).transpose(1, 2), value.flatten(0, 1))
        outputs.append(mixed.unflatten(0, chunk.shape[:2]).flatten(1, 2))
    return torch.cat(outputs, 1)
