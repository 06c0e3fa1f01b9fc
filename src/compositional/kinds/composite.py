"""Batches of images made of several component images, each in its own channels, displaced by a distance.

Lippl and Stachenfeld (ICLR 2025), appendix on image tasks: an item of a component is a class of images. The components overlap
(distance 0: the same place in separate channels) or are displaced. A task stores each component image once; an example is a
tuple of indices of images. The canvas is made together with the batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.combination import Targeted
from compositional.kinds.shared.labelled import LabelledSplit
from compositional.randomness import uniform_noise

LOSSES = ("squared", "logistic")
SAID = ("image_shape", "component_shape", "classes", "distance", "augment", "mean", "std", "target")
COLUMNS = {"items": (), "images": (), "target": ("Value",)}
INPUTS = ("items", "images")

_SHIFT = 4
_VARIANTS = 2 * (2 * _SHIFT + 1) ** 2  # of one augmented component


@dataclass(frozen=True)
class Batch(Targeted):
    """images (R, B, C * channels, height, width), normalized; targets (R, B).

    noise: (R, B) of integers, each example's source of randomness in training (`uniform_noise`); None in evaluation.
    """

    images: Tensor
    targets: Tensor
    signs: bool
    noise: Tensor | None

    def single(self) -> Tensor:
        """Input of a `Network`, which computes one run: the images, (B, C * channels, height, width)."""
        return self.images[0]


class CompositeSplit(LabelledSplit[Batch]):
    """One member of a split image task as tensors on a device. `combinations` (n, C) holds its items, for analyses.

    pool: component images (N, channels, height, width) of all members; chosen: indices of each example's images (n, C).
    """

    def __init__(
        self, pool: Tensor, chosen: np.ndarray, items: np.ndarray, targets: np.ndarray, about: dict, device: str
    ) -> None:
        self.pool, self.device, self.about = pool, device, about
        self.combinations = np.array(items, dtype=np.int64)
        self.chosen = torch.from_numpy(np.array(chosen, dtype=np.int64)).to(device)
        self.labels = torch.from_numpy(np.array(targets, dtype=np.float32)).to(device)
        self.mean, self.std = (torch.tensor(about[key], device=device)[:, None, None] for key in ("mean", "std"))

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B), as `draw` returns them, as a training batch."""
        return self._batch(rows % len(self), rows // len(self))

    def _batch(self, examples: Tensor, noise: Tensor | None) -> Batch:
        images = self.pool[self.chosen[examples]].to(torch.float32).div_(255).sub_(self.mean).div_(self.std)
        if noise is not None and self.about["augment"]:
            images = self._augmented(images, noise)
        count, distance = images.shape[2], self.about["distance"]
        placed = [
            functional.pad(
                images[:, :, index].flatten(0, 1), (index * distance, (count - 1 - index) * distance, 0, 0), "replicate"
            )
            for index in range(count)
        ]
        canvas = torch.cat(placed, 1).unflatten(0, images.shape[:2])
        return Batch(canvas, self.labels[examples], self.about["target"] == "sign", noise)

    def _augmented(self, images: Tensor, noise: Tensor) -> Tensor:
        """Shift and mirror components (R, B, C, channels, height, width), each independently."""
        height, width = images.shape[-2:]
        variant = (uniform_noise(noise, 0, (images.shape[2],)) * _VARIANTS).long().flatten()
        span = 2 * _SHIFT + 1
        down = (variant // 2 // span)[:, None] + torch.arange(height, device=images.device)
        across = (variant // 2 % span)[:, None] + torch.arange(width, device=images.device)
        across = torch.where((variant % 2 == 1)[:, None], across.flip(1), across)
        # As in the original, the edge is filled with zeros before normalization.
        edge = (-self.mean / self.std).expand(images.shape[3], 1, 1)
        padded = functional.pad(images.flatten(0, 2) - edge, (_SHIFT,) * 4) + edge
        number = torch.arange(len(padded), device=images.device)[:, None, None]
        return padded.movedim(1, -1)[number, down[:, :, None], across[:, None, :]].movedim(-1, 1).unflatten(0, images.shape[:3])

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example indices (steps, batch_size), uniform with replacement, plus random multiples of the number of examples.

        A row divided by the number of examples gives the example (remainder) and its source of noise (quotient).
        """
        examples = super().draw(key, steps, batch_size)
        noise = np.stack(
            [randomness.generator(randomness.derive(key, "noise"), step).integers(2**32, size=batch_size) for step in steps]
        )
        return examples + len(self) * noise

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples, or `limit` evenly spaced ones, the same for every run and without noise, as pairs (rows, batch)."""
        parts = self.evaluation_rows(batch_size, limit)
        return [(part, self._batch(part.to(self.device).expand(runs, -1), None)) for part in parts]


def load(folder: Path, device: str) -> dict[str, CompositeSplit]:
    """Read a split image task from its folder."""
    from datasets import DatasetDict

    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    members = DatasetDict.load_from_disk(str(folder))
    pixels = b"".join(members.pop("images")["pixels"][:])
    pool = torch.from_numpy(np.frombuffer(pixels, np.uint8).reshape(-1, *about["component_shape"]).copy()).to(device)
    members = members.with_format("numpy")
    return {
        name: CompositeSplit(pool, member["images"][:], member["items"][:], member["target"][:], about, device)
        for name, member in members.items()
    }
