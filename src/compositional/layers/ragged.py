"""Sequences of different lengths side by side, so that (almost) no padding is computed.

A batch's shape is known before it is drawn: `Layout` says how long each of its rows can be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

ROWS = 16  # of which the rows of a batch are a multiple
GROUP = 4  # rows that stay together; with widths that are multiples of 4, too, every run's numbers begin at 64 bytes' multiples
CHUNK_COST = 32  # target positions that cost about as much as the calls for one more chunk


class Steps:
    """Sequences of different lengths in the order in which an LSTM takes them, "step order": by step, then by row, the longest
    rows first. A row that has ended takes no part, so (almost) no padding is computed.

    Args:
        lengths: for each of B rows (a multiple of GROUP), the most positions that a sequence there may have.

    Attributes:
        sizes: rows still running at each step; N is their sum. GROUP rows next to each other run as long as the longest of them.
        positions: (N, 2), the row and step at each place.
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
        """Where (row, step) stands in step order; behind a row's end, where its last step stands."""
        return self._starts[torch.minimum(step, self._last[row])] + self._rank[row]


def _chunks(lengths: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cut rows, the longest first, where that costs least: rows and padded length of every chunk.

    A chunk has a multiple of 16 positions, so that in memory every run's begin at a multiple of 64 bytes: where they do not, a
    product's last bits can depend on a run's place among the others.
    """
    longest = np.asarray(lengths)[::GROUP]

    def padded(length, rows):
        multiple = 16 // np.gcd(rows, 16)
        return -(-length // multiple) * multiple

    least, cuts = np.zeros(len(longest) + 1), [0]  # the cost of the groups before `end`, and where their last chunk begins
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
    """Shape of a batch: the most positions of the targets (never rising) and of the inputs of each of its B rows.

    Attention needs rectangles: "chunk order" of target positions is by chunk of rows that are padded to one length, then row,
    then step; N such positions. For "step order", which has less padding, see `Steps`.

    Attributes:
        chunk_rows, lengths: of every chunk its rows and their padded length.
        positions: (N, 2) of (row, step), in chunk order.
        writing, reading: targets and inputs in step order.
        to_chunks: (N,), index of each chunk-order position in step order; of padding, that of its row's last position.
        to_steps: for each position in step order, its index in chunk order.
    """

    def __init__(self, targets: Sequence[int], inputs: Sequence[int], device: str | torch.device = "cpu") -> None:
        self.targets, self.inputs = tuple(targets), tuple(inputs)
        self.chunk_rows, self.lengths = _chunks(self.targets)
        padded = np.repeat(self.lengths, self.chunk_rows)
        of_position = np.repeat(np.arange(len(padded)), padded)  # its row
        starts = np.cumsum(padded) - padded
        steps = np.arange(len(of_position)) - starts[of_position]
        self.positions = torch.from_numpy(np.stack([of_position, steps], 1)).to(device)
        self.writing, self.reading = Steps(self.targets, device), Steps(self.inputs, device)
        self.to_chunks = self.writing.places(*self.positions.unbind(1))
        row, step = self.writing.positions.unbind(1)
        self.to_steps = torch.from_numpy(starts).to(device)[row] + step

    def chunks(self, flat: Tensor) -> list[Tensor]:
        """Cut (R, N, ...) in chunk order into views (R, rows, length, ...), one a chunk."""
        shapes = list(zip(self.chunk_rows, self.lengths, strict=True))
        parts = flat.split([rows * length for rows, length in shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True)]

    def rows(self, values: Tensor) -> tuple[Tensor, ...]:
        """Cut (R, B, ...) into views (R, rows, ...), one a chunk."""
        return values.split(self.chunk_rows, 1)

    def all_in_row(self, flags: Tensor) -> Tensor:
        """Whether all flags of a row hold: (R, N) in chunk order -> (R, B)."""
        return torch.cat([chunk.all(2) for chunk in self.chunks(flags)], 1)
