"""The memory layout of the weights of runs: one flat buffer, in which each run's weights start at a multiple of 64 bytes."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from compositional.layers.functional import aligned


class WeightLayout:
    """The weights of R runs in one buffer (R, P), seen as named tensors (R, ...). Offsets are multiples of 64 bytes."""

    def __init__(self, shapes: dict[str, torch.Size]) -> None:
        self.shapes = shapes
        self.slices: dict[str, slice] = {}
        end = 0
        for name, shape in shapes.items():
            self.slices[name] = slice(end, end + shape.numel())
            end += aligned(shape.numel())
        self.size = end

    def flatten(self, named: dict[str, Tensor]) -> Tensor:
        """One run's named tensors as one vector (P,); gaps are zero."""
        flat = torch.zeros(self.size)
        for name, where in self.slices.items():
            flat[where] = named[name].reshape(-1)
        return flat

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Named views (R, ...) of the buffer (R, P)."""
        return {name: flat[:, where].view(len(flat), *self.shapes[name]) for name, where in self.slices.items()}

    def gather(self, named: Iterable[Tensor], runs: int) -> Tensor:
        """The gradients of the named tensors, in order, as one buffer (R, P)."""
        parts = []
        for gradient, shape in zip(named, self.shapes.values(), strict=True):
            gap = -shape.numel() % 16
            parts += [gradient.reshape(runs, -1)] + ([gradient.new_zeros(runs, gap)] if gap else [])
        return torch.cat(parts, 1)
