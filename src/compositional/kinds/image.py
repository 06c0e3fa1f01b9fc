"""Batches of labelled images. Many of them consist of two components side by side.

Besides `image_shape`, the shape of the stored images, task.json may contain:
    component_width   width in pixels of the left component; null if no part of the image is redundant
    components        names of both components; their items are in the columns label and right_label
    mean, std         one number per channel: images are normalized with them (in units of the largest pixel value)
    canvas            {height, width, distance}: the two stored components are put on a canvas of zeros, `distance` pixels apart
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.shared.labelled import Labelled, LabelledSplit

LOSSES = ("cross_entropy", "hinge", "categorical_hinge", "squared")
SAID = ("image_shape", "classes", "component_width")
COLUMNS = {"image": ("Array2D", "Array3D"), "label": ("Value",)}
INPUTS = ("image",)
INFLUENCE = True
REPRESENTED = True
PICTURED = True

Region = tuple[slice, slice]  # rows and columns


@dataclass(frozen=True)
class Batch(Labelled):
    """images (R, B, channels, height, width), in [0, 1] unless the task normalizes them; labels (R, B).

    regions: where the components are in an image; empty if the task has none.
    """

    images: Tensor
    labels: Tensor
    component_width: int | None
    regions: tuple[Region, ...] = field(default=())

    content = "images"

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Split values shaped like the images into left and right: (..., width) -> (..., left width), (..., right width).

        Raises:
            ValueError: no part of this task's images is redundant.
        """
        if self.component_width is None:
            raise ValueError("this task's labels depend on the whole image: it has no redundant component to measure or exchange")
        return values[..., : self.component_width], values[..., self.component_width :]

    def partner(self) -> Tensor:
        """Index of each row's partner, (B,): rows 0 and 1, 2 and 3, ... are partners. Rows are in random order."""
        return torch.arange(self.labels.shape[1], device=self.labels.device) ^ 1

    def recombine(self) -> Batch:
        """Each row's left component next to its partner's right one. Labels stay, because they depend only on the left one."""
        left, right = self.components(self.images)
        return replace(self, images=torch.cat([left, right.index_select(1, self.partner())], -1))

    def recombine_within_label(self) -> Batch:
        """Each row's left component next to the right one of the batch's next row with the same label, cyclically.

        A row whose label is unique in the batch keeps its right component. Right components are therefore combined only with
        labels with which the training set has them.
        """
        order = self.labels.argsort(dim=1, stable=True)
        ordered = self.labels.gather(1, order)
        first = torch.searchsorted(ordered, ordered)
        place = torch.arange(ordered.shape[1], device=ordered.device).expand_as(ordered)
        following = (place + 1).clamp(max=ordered.shape[1] - 1)
        alike = (ordered.gather(1, following) == ordered) & (following > place)
        source = torch.empty_like(order).scatter_(1, order, order.gather(1, torch.where(alike, following, first)))
        left, right = self.components(self.images)
        chosen = right.gather(1, source.view(*source.shape, 1, 1, 1).expand_as(right))
        return replace(self, images=torch.cat([left, chosen], -1))

    def exchanged(self, exchange: str) -> Batch:
        """The images after an exchange that should not change their outputs; `exchange` as in `regularizers.recombination`."""
        return self.recombine_within_label() if exchange == "seen" else self.recombine()


class ImageSplit(LabelledSplit[Batch]):
    """One member of a split image task as tensors on a device: images (n, height, width) or (n, channels, height, width).

    combinations: (n, C) items of the components if the task names its components; for the analysis of conjunctions.
    """

    combinations: np.ndarray

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        component_width: int | None,
        device: str,
        about: dict[str, Any] | None = None,
    ) -> None:
        about = about or {}
        images = np.asarray(images, dtype=np.uint8)
        images = images[:, None] if images.ndim == 3 else images
        self.images = torch.from_numpy(np.array(images)).to(device)
        self.labels = torch.from_numpy(np.array(labels, dtype=np.int64)).to(device)
        self.component_width, self.device = component_width, device
        self.moments = [torch.tensor(about[key], device=device)[:, None, None] for key in ("mean", "std") if key in about]
        self.canvas = about.get("canvas")
        self.regions = self._regions()

    def _regions(self) -> tuple[Region, ...]:
        height, width = self.images.shape[2:]
        if self.canvas:
            top = (self.canvas["height"] - height) // 2
            left = (self.canvas["width"] - width) // 2 - self.canvas["distance"] // 2
            right = left + width // 2 + self.canvas["distance"]
            rows = slice(top, top + height)
            return (rows, slice(left, left + width // 2)), (rows, slice(right, right + width // 2))
        if self.component_width is None:
            return ()
        rows = slice(0, height)
        return (rows, slice(0, self.component_width)), (rows, slice(self.component_width, width))

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        images = self.images[rows].to(torch.float32).div_(255)
        if self.moments:
            mean, deviation = self.moments
            images = images.sub_(mean).div_(deviation)
        if self.canvas:
            parts = images.chunk(2, -1)
            images = images.new_zeros(*images.shape[:3], self.canvas["height"], self.canvas["width"])
            for (down, across), part in zip(self.regions, parts, strict=True):
                images[..., down, across] = part
        return Batch(images, self.labels[rows], self.component_width, self.regions)


def load(folder: Path, device: str) -> dict[str, ImageSplit]:
    """Read a split image task (columns image and label) from its folder."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    width = about["component_width"]
    splits = {name: ImageSplit(member["image"][:], member["label"][:], width, device, about) for name, member in members.items()}
    for name, member in members.items() if "components" in about else ():
        splits[name].combinations = np.stack([member["label"][:], member["right_label"][:]], 1)
    return splits
