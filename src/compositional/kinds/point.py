"""Batches of labelled points in the plane; the first coordinate is the relevant component, the second the redundant one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.shared.labelled import Labelled, LabelledSplit

LOSSES = ("cross_entropy", "hinge", "categorical_hinge", "squared")
SAID = ("inputs", "classes")
COLUMNS = {"point": (), "label": ("Value",)}
INPUTS = ("point",)
INFLUENCE = True
MARGINS = True


@dataclass(frozen=True)
class Batch(Labelled):
    """points (R, B, 2); labels (R, B)."""

    points: Tensor
    labels: Tensor

    content = "points"

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The first and the second coordinate, (R, B, 1) each."""
        return values[..., :1], values[..., 1:]


class PointSplit(LabelledSplit[Batch]):
    """One member of a split point task as tensors on a device."""

    def __init__(self, points: np.ndarray, labels: np.ndarray, device: str) -> None:
        self.points = torch.from_numpy(np.array(points, dtype=np.float32)).to(device)
        self.labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self.device = device

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        return Batch(self.points[rows], self.labels[rows])

    def describe(self, rows: Tensor) -> list[str]:
        """The coordinates of the examples `rows` (B,), as in "-0.2500 0.5000"."""
        return [f"{first:.4f} {second:.4f}" for first, second in self.points[rows.to(self.device)].tolist()]


def load(folder: Path, device: str) -> dict[str, PointSplit]:
    """Read a split point task (columns point and label) from its folder."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    return {name: PointSplit(member["point"][:], member["label"][:], device) for name, member in members.items()}
