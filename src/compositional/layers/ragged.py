"""Batches of sequences of different lengths, arranged so that (almost) no padding is computed.

The shape of a batch is known before it is drawn: `Layout` holds the maximum length of each of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

ROWS = 16  # the number of rows of a batch is a multiple of this
GROUP = 4  # rows that stay together; if widths are multiples of 4, too, each run's numbers start at a multiple of 64 bytes
CHUNK_COST = 32  # the calls for one more chunk cost about as much as this number of target positions


class Steps:
    """Sequences of different lengths in the order in which an LSTM processes them.

    This "step order" sorts positions by step, then by row, the longest rows first. Rows that have ended are left out, so (almost)
    no padding is computed.

    Args:
        lengths: for each of B rows (a multiple of GROUP), the maximum number of positions of a sequence there.

    Attributes:
        sizes: the number of rows still running at each step; N is the sum. Each GROUP of neighboring rows runs as long as its
            longest row.
        positions: (N, 2), the row and the step of each position.
    """

    def __init__(self, lengths: Sequence[int], device: str | torch.device) -> None:
        order = np.argsort(-np.asarray(lengths), kind="stable")
        running = np.repeat(np.asarray(lengths)[order[::GROUP]], GROUP)
        step, rank = np.nonzero(running > np.arange(running[0])[:, None])
        sizes = np.bincount(step)
        self.sizes = tuple(sizes.tolist())
        self.positions = torch.from_numpy(np.stack([order[rank], step], 1)).to(device)
        back = np.argsort(order)
        self._rank, self._last = (torch.from_numpy(values).to(device) for values in (back, running[back] - 1))
        self._starts = torch.from_numpy(np.cumsum(sizes) - sizes).to(device)

    def places(self, row: Tensor, step: Tensor) -> Tensor:
        """The index of (row, step) in step order; for steps after a row's end, the index of its last step."""
        return self._starts[torch.minimum(step, self._last[row])] + self._rank[row]


@dataclass(frozen=True)
class Chunks:
    """Neighboring rows that are padded to the same length: attention needs rectangles.

    "Chunk order" sorts positions by chunk, then row, then step. The positions of a chunk are a multiple of 16, so that each run's
    numbers start at a multiple of 64 bytes. Otherwise the last bits of a product can depend on a run's position among the others.

    Attributes:
        rows, lengths: the number of rows of every chunk, and their padded length. N is the sum of the products of the two.
    """

    rows: tuple[int, ...]
    lengths: tuple[int, ...]

    def cut(self, flat: Tensor) -> list[Tensor]:
        """Views (R, rows, length, ...), one per chunk, of (R, N, ...) in chunk order."""
        shapes = list(zip(self.rows, self.lengths, strict=True))
        parts = flat.split([rows * length for rows, length in shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True)]

    def within(self, parts: list[Tensor], rows: tuple[int, ...]) -> list[Tensor]:
        """Cut the chunks (R, rows, ...) further, to chunks of the given rows."""
        ends = np.cumsum(rows).searchsorted(np.cumsum(self.rows)) + 1
        finer = [rows[start:end] for start, end in pairwise([0, *ends.tolist()])]
        return [own for part, sizes in zip(parts, finer, strict=True) for own in part.split(sizes, 1)]

    def packed(self, values: Tensor) -> Tensor:
        """(R, B, S, ...) in chunk order, (R, N, ...): what a chunk lacks is zero, what is beyond its length is left out."""
        parts = zip(values.split(self.rows, 1), self.lengths, strict=True)
        return torch.cat([_resized(part, length).flatten(1, 2) for part, length in parts], 1)

    def rectangle(self, flat: Tensor, length: int) -> Tensor:
        """The inverse of `packed`: (R, N, ...) in chunk order as (R, B, length, ...), with zeros where a chunk ends earlier."""
        return torch.cat([_resized(part, length) for part in self.cut(flat)], 1)


def _resized(values: Tensor, length: int) -> Tensor:
    """Cut axis 2 of (R, B, S, ...), or pad it with zeros."""
    return functional.pad(values, (0, 0) * (values.ndim - 3) + (0, length - values.shape[2]))


def _padded(lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The lengths of chunks of so many rows, of which the longest have the given lengths."""
    multiples = 16 // np.gcd(rows, 16)
    return -(-lengths // multiples) * multiples


def _joined(rows: np.ndarray, longest: np.ndarray) -> Chunks:
    """Join neighboring groups of so many rows, of which the longest have the given lengths, to the chunks with the least cost."""
    starts = np.concatenate([[0], rows.cumsum()])
    least, cuts = np.zeros(len(starts)), [0]  # the least cost of the groups before `end`, and where their last chunk starts
    for end in range(1, len(starts)):
        sizes = starts[end] - starts[:end]  # of the last chunk
        lengths = _padded(np.maximum.accumulate(longest[:end][::-1])[::-1], sizes)
        costs = least[:end] + sizes * lengths + CHUNK_COST
        cuts.append(int(costs.argmin()))
        least[end] = costs[cuts[end]]
    places = [len(rows)]
    while places[0]:
        places.insert(0, cuts[places[0]])
    sizes, longest = np.diff(starts[places]), np.maximum.reduceat(longest, places[:-1])
    return Chunks(tuple(sizes.tolist()), tuple(_padded(longest, sizes).tolist()))


class Layout:
    """Shape of a batch: the maximum number of target positions (never rising) and of input positions of each of its B rows.

    Attributes:
        target_chunks: the chunks of the targets. "Step order" has less padding, see `Steps`.
        positions: (N, 2), row and step of each target position in chunk order.
        writing, reading: targets and inputs in step order.
        to_chunks: (N,), the index in step order of each position in chunk order; for padding, that of its row's last position.
        to_steps: for each position in step order, its index in chunk order.
    """

    def __init__(self, targets: Sequence[int], inputs: Sequence[int], device: str | torch.device = "cpu") -> None:
        self.targets, self.inputs = tuple(targets), tuple(inputs)
        longest = np.array(self.targets)[::GROUP]
        self.target_chunks = _joined(np.full(len(longest), GROUP), longest)
        padded = np.repeat(self.target_chunks.lengths, self.target_chunks.rows)
        of_position = np.repeat(np.arange(len(padded)), padded)  # the row of each position
        starts = np.cumsum(padded) - padded
        steps = np.arange(len(of_position)) - starts[of_position]
        self.positions = torch.from_numpy(np.stack([of_position, steps], 1)).to(device)
        self.writing, self.reading = Steps(self.targets, device), Steps(self.inputs, device)
        self.to_chunks = self.writing.places(*self.positions.unbind(1))
        row, step = self.writing.positions.unbind(1)
        self.to_steps = torch.from_numpy(starts).to(device)[row] + step

    def input_chunks(self, more: int) -> Chunks:
        """One or more chunks of targets each, padded to their longest input and `more` positions."""
        rows = np.array(self.target_chunks.rows)
        return _joined(rows, np.maximum.reduceat(np.array(self.inputs), rows.cumsum() - rows) + more)

    def chunks(self, flat: Tensor) -> list[Tensor]:
        """Cut targets (R, N, ...) in chunk order into views (R, rows, length, ...), one per chunk."""
        return self.target_chunks.cut(flat)

    def rows(self, values: Tensor) -> tuple[Tensor, ...]:
        """Cut (R, B, ...) into views (R, rows, ...), one per chunk."""
        return values.split(self.target_chunks.rows, 1)

    def all_in_row(self, flags: Tensor) -> Tensor:
        """Whether all flags of a row are True: (R, N) in chunk order -> (R, B)."""
        return torch.cat([chunk.all(2) for chunk in self.chunks(flags)], 1)
