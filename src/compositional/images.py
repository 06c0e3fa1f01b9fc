"""Batches of labelled images made of components that stand side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compositional.labels import Labelled, LabelledSplit


@dataclass(frozen=True)
class Batch(Labelled):
    """images (R, B, channels, height, width) in [0, 1]; labels (R, B); the left component is `component_width` wide."""

    images: Tensor
    labels: Tensor
    component_width: int

    kind = "image"
    content = "images"

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The left and the right part of values shaped like the images."""
        return values[..., : self.component_width], values[..., self.component_width :]

    def partner(self) -> Tensor:
        """For each row its partner, (B,): rows 0 and 1, 2 and 3, ... are partners. Rows are drawn in random order."""
        return torch.arange(self.labels.shape[1], device=self.labels.device) ^ 1

    def recombine(self) -> Batch:
        """Each row's left component beside its partner's right one; the label stays, it depends on the left one alone."""
        left, right = self.components(self.images)
        return replace(self, images=torch.cat([left, right.index_select(1, self.partner())], -1))


class ImageSplit(LabelledSplit):
    """One member of a split image task as tensors on a device."""

    kind = "image"

    def __init__(self, images: np.ndarray, labels: np.ndarray, component_width: int, device: str) -> None:
        self.images = torch.from_numpy(np.array(images, dtype=np.uint8)).to(device)
        self.labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self.component_width, self.device = component_width, device

    def batch(self, rows: Tensor, layout: None = None) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        images = self.images[rows].to(torch.float32).div_(255).unsqueeze(2)
        return Batch(images, self.labels[rows], self.component_width)


def load(folder: Path, device: str) -> dict[str, ImageSplit]:
    """Read a split image task (columns image and label) from its folder."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    width = json.loads((folder / "task.json").read_text())["component_width"]
    return {name: ImageSplit(member["image"][:], member["label"][:], width, device) for name, member in members.items()}
