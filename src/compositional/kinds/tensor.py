"""Measurements of a matrix or tensor. A model of this kind computes all entries of its tensor; this module measures them.

Measurement tensors are not materialized if that can be avoided: observed entries are a mask, rank-one probes are two factors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.layers.factorization import product

LOSSES = ("squared", "absolute", "huber")
SAID = ("shape",)
COLUMNS = {"value": ("Value",)}
INPUTS = ("entry", "probe")
FULL_BATCH = "train_measurements"

_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "squared": torch.square,
    "absolute": torch.abs,
    "huber": lambda error: functional.huber_loss(error, torch.zeros_like(error), reduction="none"),
}


@dataclass(frozen=True)
class Batch:
    """All measurements of a split, for any number of runs R.

    residual: from a model's entries (R, E) to prediction minus value: (R, N), or (R, E) with zeros for unobserved entries.
    """

    residual: Callable[[Tensor], Tensor]
    pick: Callable[[Tensor], Tensor]
    norm: float

    def output_shape(self, about: dict) -> tuple[int, ...]:
        """Shape of one run's outputs: (E,)."""
        return (math.prod(about["shape"]),)

    def single(self) -> None:
        """None: a `Network` of this kind has no input. It returns the entries of its tensor, (E,)."""

    def packed(self, outputs: Tensor) -> Tensor:
        """Adds the run axis to a single run's entries: (E,) -> (1, E)."""
        return outputs.unsqueeze(0)

    def losses(self, outputs: Tensor, loss: str) -> Tensor:
        """Loss of every measurement: (R, N), or (R, E) with zeros for unobserved entries, which do not change the sum."""
        return _LOSSES[loss](self.residual(outputs))

    def example_losses(self, losses: Tensor) -> Tensor:
        """The losses without the zeros: (R, N) or (R, E) -> (R, N)."""
        return self.pick(losses)

    def metrics(self, outputs: Tensor) -> dict[str, Tensor]:
        """relative_error: norm of the errors, divided by the norm of the values; the same for all N measurements, (R, N)."""
        error = self.residual(outputs)
        relative = error.square().sum(1, keepdim=True).sqrt() / self.norm
        return {"relative_error": relative.expand(self.pick(error).shape)}


class TensorSplit:
    """The measurements of one member of a split tensor task on a device.

    Args:
        shape: shape of the tensor.
        values: the measured values (n,).
        entries: the indices of the observed entries (n,), or None if there are probes.
        probes: (n, rows, columns) for a matrix, (n, order, dimension) for a tensor; None if there are entries.
    """

    def __init__(
        self,
        shape: list[int],
        values: np.ndarray,
        device: str,
        *,
        entries: np.ndarray | None = None,
        probes: np.ndarray | None = None,
    ) -> None:
        self.shape, self.device = shape, device
        self.factors: tuple[Tensor, ...] | None
        self.values = torch.tensor(np.asarray(values), dtype=torch.float32, device=device)
        self.norm = float(np.linalg.norm(np.asarray(values, np.float64)))
        if entries is not None:
            size = int(np.prod(shape))
            self.entries = torch.tensor(np.asarray(entries), dtype=torch.int64, device=device)
            self.mask = torch.zeros(size, device=device).index_fill_(0, self.entries, 1.0)
            self.target = torch.zeros(size, device=device).index_copy_(0, self.entries, self.values)
            self.factors = None
        elif len(shape) == 2:
            self.factors = (torch.tensor(probes, device=device).flatten(1),)
        else:
            parts = torch.tensor(probes, device=device).unbind(1)
            half = len(parts) // 2
            self.factors = tuple(
                reduce(lambda left, right: (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1), side)
                for side in (parts[:half], parts[half:])
            )

    def __len__(self) -> int:
        return len(self.values)

    def _residual(self, outputs: Tensor) -> Tensor:
        if self.factors is None:
            return (outputs - self.target) * self.mask
        runs = len(outputs)
        first = self.factors[0].expand(runs, -1, -1)
        if len(self.factors) == 1:
            return product(first, outputs.unsqueeze(2)).squeeze(2) - self.values
        rows = product(first, outputs.unflatten(1, (first.shape[2], -1)))
        return (rows * self.factors[1]).sum(2) - self.values

    def _pick(self, losses: Tensor) -> Tensor:
        return losses if self.factors is not None else losses.index_select(1, self.entries)

    def batch(self, rows: Tensor) -> Batch:
        """All measurements, whatever the rows (R, n)."""
        return Batch(self._residual, self._pick, self.norm)

    def training_batches(self, batch_size: int) -> Callable[[Tensor], Batch]:
        """A function that returns the batch of all measurements, whatever the rows.

        Raises:
            ValueError: batch_size is not the number of measurements.
        """
        if batch_size != len(self):
            raise ValueError(f"tensor tasks train on all measurements at once: batch_size must be {len(self)}, not {batch_size}")
        return self.batch

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Nothing is drawn: every step uses all measurements."""
        return np.broadcast_to(np.int64(0), (len(steps), 1))

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All measurements as one batch."""
        rows = torch.arange(len(self))
        return [(rows, self.batch(rows))]


def load(folder: Path, device: str) -> dict[str, TensorSplit]:
    """Read a split tensor task (columns entry or probe, and value) from its folder."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    shape = json.loads((folder / "task.json").read_text(encoding="utf-8"))["shape"]
    splits = {}
    for name, member in members.items():
        how = {"entries": member["entry"][:]} if "entry" in member.column_names else {"probes": member["probe"][:]}
        splits[name] = TensorSplit(shape, member["value"][:], device, **how)
    return splits
