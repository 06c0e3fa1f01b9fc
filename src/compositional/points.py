"""Batches of labelled points in the plane; the first coordinate is the relevant component, the second the redundant one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.labels import Labelled


@dataclass(frozen=True)
class Batch(Labelled):
    """points (R, B, 2); labels (R, B)."""

    points: Tensor
    labels: Tensor

    kind = "point"
    content = "points"

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The first and the second coordinate, (R, B, 1) each."""
        return values[..., :1], values[..., 1:]


class PointSplit:
    """One member of a split point task as tensors on a device."""

    kind = "point"

    def __init__(self, points: np.ndarray, labels: np.ndarray, device: str) -> None:
        self.points = torch.from_numpy(np.array(points, dtype=np.float32)).to(device)
        self.labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self.device = device

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor, layout: None = None) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        return Batch(self.points[rows], self.labels[rows])

    def training_layout(self, batch_size: int) -> None:
        """Batches of points need no layout; sequences do."""

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example numbers (steps, batch_size) of one run's training batches, uniform with replacement."""
        return np.stack([randomness.generator(key, step).integers(len(self), size=batch_size) for step in steps])

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples (or the first `limit`), the same for every run, as pairs (rows, batch)."""
        rows = torch.arange(min(len(self), limit or len(self)))
        return [(part, self.batch(part.to(self.device).expand(runs, -1))) for part in rows.split(batch_size)]

    def describe(self, rows: Tensor) -> list[str]:
        """The coordinates of the examples `rows` (B,), as in "-0.2500 0.5000"."""
        return [f"{first:.4f} {second:.4f}" for first, second in self.points[rows.to(self.device)].tolist()]


def load(folder: Path, device: str) -> dict[str, PointSplit]:
    """Read a split point task (columns point and label) from its folder."""
    members = datasets.DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    return {name: PointSplit(member["point"][:], member["label"][:], device) for name, member in members.items()}
