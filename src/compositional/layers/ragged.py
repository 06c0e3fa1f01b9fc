"""Batches of sequences of different lengths, arranged so that (almost) no padding is computed.

The shape of a batch is known before it is drawn: `Layout` holds the maximum length of each of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

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


def _chunks(lengths: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cut rows, the longest first, into the chunks with the least cost. Returns the rows and the padded length of every chunk.

    A chunk has a multiple of 16 positions, so that each run's numbers start at a multiple of 64 bytes. Otherwise the last bits of
    a product can depend on a run's position among the others.
    """
    longest = np.asarray(lengths)[::GROUP]

    def padded(length, rows):
        multiple = 16 // np.gcd(rows, 16)
        return -(-length // multiple) * multiple

    least, cuts = np.zeros(len(longest) + 1), [0]  # the least cost of the groups before `end`, and where their last chunk starts
    for end in range(1, len(least)):
        sizes = GROUP * (end - np.arange(end))  # of the last chunk
        costs = least[:end] + sizes * padded(longest[:end], sizes) + CHUNK_COST
        cuts.append(int(costs.argmin()))
        least[end] = costs[cuts[end]]
    chunks, end = [], len(longest)
    while end:
        rows, end = GROUP * (end - cuts[end]), cuts[end]
        chunks.append((rows, int(padded(longest[end], rows))))
    return tuple(rows for rows, _ in reversed(chunks)), tuple(length for _, length in reversed(chunks))


class Layout:
    """Shape of a batch: the maximum number of target positions (never rising) and of input positions of each of its B rows.

    Attention needs rectangles. "Chunk order" sorts the N target positions by chunk, then row, then step; a chunk consists of rows
    padded to the same length. "Step order" has less padding, see `Steps`.

    Attributes:
        chunk_rows, lengths: the number of rows of every chunk, and their padded length.
        positions: (N, 2), row and step in chunk order.
        writing, reading: targets and inputs in step order.
        to_chunks: (N,), the index in step order of each position in chunk order; for padding, that of its row's last position.
        to_steps: for each position in step order, its index in chunk order.
    """

    def __init__(self, targets: Sequence[int], inputs: Sequence[int], device: str | torch.device = "cpu") -> None:
        self.targets, self.inputs = tuple(targets), tuple(inputs)
        self.chunk_rows, self.lengths = _chunks(self.targets)
        padded = np.repeat(self.lengths, self.chunk_rows)
        of_position = np.repeat(np.arange(len(padded)), padded)  # the row of each position
        starts = np.cumsum(padded) - padded
        steps = np.arange(len(of_position)) - starts[of_position]
        self.positions = torch.from_numpy(np.stack([of_position, steps], 1)).to(device)
        self.writing, self.reading = Steps(self.targets, device), Steps(self.inputs, device)
        self.to_chunks = self.writing.places(*self.positions.unbind(1))
        row, step = self.writing.positions.unbind(1)
        self.to_steps = torch.from_numpy(starts).to(device)[row] + step

    def chunks(self, flat: Tensor) -> list[Tensor]:
        """Cut (R, N, ...) in chunk order into views (R, rows, length, ...), one per chunk."""
        shapes = list(zip(self.chunk_rows, self.lengths, strict=True))
        parts = flat.split([rows * length for rows, length in shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True)]

    def rows(self, values: Tensor) -> tuple[Tensor, ...]:
        """Cut (R, B, ...) into views (R, rows, ...), one per chunk."""
        return values.split(self.chunk_rows, 1)

    def all_in_row(self, flags: Tensor) -> Tensor:
        """Whether all flags of a row are True: (R, N) in chunk order -> (R, B)."""
        return torch.cat([chunk.all(2) for chunk in self.chunks(flags)], 1)
