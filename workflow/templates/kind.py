"""Batches of labelled points: describe here what one example is, as a model sees it, and what its target is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.shared.labelled import Labelled, LabelledSplit

LOSSES = ("cross_entropy", "hinge", "squared")
SAID = ("classes",)
COLUMNS = {"point": (), "label": ("Value",)}


@dataclass(frozen=True)
class Batch(Labelled):
    """points (R, B, D); labels (R, B)."""

    points: Tensor
    labels: Tensor

    content = "points"


class Split(LabelledSplit):
    """One member of a split task as tensors on a device."""

    def __init__(self, points: np.ndarray, labels: np.ndarray, device: str) -> None:
        self.points = torch.from_numpy(np.array(points, dtype=np.float32)).to(device)
        self.labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self.device = device

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        return Batch(self.points[rows], self.labels[rows])


def load(folder: Path, device: str) -> dict[str, Split]:
    """Read a split task (columns point and label) from its folder."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    return {name: Split(member["point"][:], member["label"][:], device) for name, member in members.items()}
