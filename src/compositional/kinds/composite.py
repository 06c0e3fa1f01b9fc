"""Batches of images made of several component images, each in channels of its own, displaced by a distance.

Lippl and Stachenfeld (ICLR 2025), appendix on image tasks: an item of a component is a class of images; the components share
the canvas (distance 0: one on top of another, in separate channels) or stand apart. A task keeps the component images once, and
an example as the numbers of its images; the canvas is made when a batch is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.combination import Targeted
from compositional.kinds.shared.labelled import LabelledSplit
from compositional.tasks.shared import designs as symbolic

LOSSES = ("squared", "logistic")

PARAMETERS = {
    "problem": {
        "enum": ["addition", "context_dependence", "transitive_equivalence"],
        "default": "addition",
        "description": "which combinations train, and what the target is; options as of the symbolic task of this name",
    },
    "trained_items": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 0, "maximum": 8},
        "default": [4],
        "description": "of addition",
    },
    "shuffle": {"type": "integer", "minimum": 0, "default": 1, "description": "of addition"},
    "level": {"enum": [1, 2, 3], "default": 3, "description": "of context dependence"},
    "class_size": {"type": "integer", "minimum": 2, "default": 5, "description": "of transitive equivalence"},
    "trained_per_class": {"type": "integer", "minimum": 1, "default": 1, "description": "of transitive equivalence"},
    "distance": {"type": "integer", "minimum": 0, "default": 0, "description": "pixels from one component to the next"},
    "samples": {
        "type": "integer",
        "minimum": 1,
        "default": 20000,
        "description": "training examples; every combination that trains gets the same number, rounded down",
    },
    "pool": {
        "type": "integer",
        "minimum": 1,
        "default": 200,
        "description": "images of each class that training examples are made of; the others are for evaluation",
    },
    "evaluation_samples": {
        "type": "integer",
        "minimum": 1,
        "default": 100,
        "description": "evaluation examples of each combination, of images never trained on",
    },
    "draw": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "seed of everything random in the task: which class stands for which item, and which images are taken",
    },
    "augment": {
        "type": "boolean",
        "default": False,
        "description": "in training, shift every component at random (up to 4 pixels, zeros beyond the edge) and mirror half "
        "of them",
    },
}
_SHIFT = 4
_VARIANTS = 2 * (2 * _SHIFT + 1) ** 2  # of one augmented component


@dataclass(frozen=True)
class Batch(Targeted):
    """images (R, B, C * channels, height, width), normalized; targets (R, B).

    noise: (R, B) of integers, the examples' source of randomness in training (`uniform_noise`); None in evaluation.
    """

    images: Tensor
    targets: Tensor
    signs: bool
    noise: Tensor | None

    kind = "composite"


def uniform_noise(keys: Tensor, stream: int, shape: tuple[int, ...]) -> Tensor:
    """Numbers in [0, 1) that depend on each example's key and the stream alone: keys (R, B) -> (R, B, *shape).

    A counter-based generator in integer arithmetic, so that it is the same on every device and can be part of a CUDA graph:
    two rounds of the 32-bit mixer of Chris Wellons ("lowbias32", hash-prospector), of the position and of the key.
    """

    def mix(values: Tensor) -> Tensor:
        values = values & 0xFFFFFFFF
        values = ((values ^ (values >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        values = ((values ^ (values >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        return values ^ (values >> 16)

    count = int(np.prod(shape))
    place = mix(torch.arange(count, device=keys.device) + (stream + 1) * 0x9E3779B9)
    return (mix(place ^ mix(keys).unsqueeze(-1)) >> 8).to(torch.float32).mul_(2**-24).unflatten(-1, shape)


class CompositeSplit(LabelledSplit):
    """One member of a split image task as tensors on a device. `combinations` (n, C) are its items, for the analysis.

    pool: component images (N, channels, height, width) of all members; chosen: numbers of each example's images (n, C).
    """

    def __init__(
        self, pool: Tensor, chosen: np.ndarray, items: np.ndarray, targets: np.ndarray, about: dict, device: str
    ) -> None:
        self.pool, self.device, self.about = pool, device, about
        self.combinations = np.array(items, dtype=np.int64)
        self.chosen = torch.from_numpy(np.array(chosen, dtype=np.int64)).to(device)
        self.labels = torch.from_numpy(np.array(targets, dtype=np.float32)).to(device)
        self.mean, self.std = (torch.tensor(about[key], device=device)[:, None, None] for key in ("mean", "std"))

    def batch(self, rows: Tensor, layout: None = None) -> Batch:
        """The examples `rows` (R, B) as a training batch; rows as from `draw`."""
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
        """Shift and mirror components (R, B, C, channels, height, width), each on its own."""
        height, width = images.shape[-2:]
        variant = (uniform_noise(noise, 0, (images.shape[2],)) * _VARIANTS).long().flatten()
        span = 2 * _SHIFT + 1
        down = (variant // 2 // span)[:, None] + torch.arange(height, device=images.device)
        across = (variant // 2 % span)[:, None] + torch.arange(width, device=images.device)
        across = torch.where((variant % 2 == 1)[:, None], across.flip(1), across)
        # Normalized as in the original: zeros before normalization.
        edge = (-self.mean / self.std).expand(images.shape[3], 1, 1)
        padded = functional.pad(images.flatten(0, 2) - edge, (_SHIFT,) * 4) + edge
        number = torch.arange(len(padded), device=images.device)[:, None, None]
        return padded.movedim(1, -1)[number, down[:, :, None], across[:, None, :]].movedim(-1, 1).unflatten(0, images.shape[:3])

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example numbers (steps, batch_size), uniform with replacement, plus a random multiple of the number of examples.

        What is left of a row number after the example is taken out of it is the example's own source of noise.
        """
        examples = super().draw(key, steps, batch_size)
        noise = np.stack(
            [randomness.generator(randomness.derive(key, "noise"), step).integers(2**32, size=batch_size) for step in steps]
        )
        return examples + len(self) * noise

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples, or about `limit` evenly spaced ones, the same for every run and without noise, as pairs (rows, batch)."""
        count = min(len(self), limit or len(self))
        rows = torch.arange(count) * len(self) // count  # examples stand sorted by combination
        return [(part, self._batch(part.to(self.device).expand(runs, -1), None)) for part in rows.split(batch_size)]


def _design(parameters: dict) -> symbolic.Design:
    return getattr(symbolic, parameters["problem"])(parameters)


def build(
    images: np.ndarray, labels: np.ndarray, mean: list[float], std: list[float], parameters: dict
) -> tuple[DatasetDict, dict]:
    """Members train, validation (trained combinations, new images), test (new combinations, new images), and the images.

    Item i of component c is the class permutation_c(i) of the first classes; a permutation a component.

    Args:
        images: (n, height, width) or (n, channels, height, width), uint8; labels: (n,).
        mean, std: a number a channel, of pixels in [0, 1].

    Returns:
        Columns items, images (numbers of rows of the member images) and target; member images with one column.

    Raises:
        ValueError: a class has no images left for evaluation, or there are fewer samples than combinations.
    """
    design = _design(parameters)
    source = randomness.generator(randomness.derive("composites", parameters["draw"]))
    images = images[:, None] if images.ndim == 3 else images
    permutations = [source.permutation(size) for size in design.sizes]
    by_class = [source.permutation(np.flatnonzero(labels == number)) for number in range(max(design.sizes))]
    if (fewest := min(map(len, by_class))) <= parameters["pool"]:
        raise ValueError(f"pool must be less than {fewest}, the images of the rarest class; it is {parameters['pool']}")
    pools = {True: [own[: parameters["pool"]] for own in by_class], False: [own[parameters["pool"] :] for own in by_class]}
    each = parameters["samples"] // int(design.trained.sum())
    if each < 1:
        raise ValueError(
            f"samples must be at least {int(design.trained.sum())}, one a trained combination; it is {parameters['samples']}"
        )
    plan = {
        "train": (design.trained, each, True),
        "validation": (design.trained, parameters["evaluation_samples"], False),
        "test": (~design.trained, parameters["evaluation_samples"], False),
    }
    members = {}
    for name, (wanted, count, training) in plan.items():
        rows = np.repeat(np.flatnonzero(wanted), count)
        items = design.combinations[rows]
        chosen = np.empty_like(items)
        for component, permutation in enumerate(permutations):
            for item, number in enumerate(permutation):
                own = items[:, component] == item
                chosen[own, component] = source.choice(pools[training][number], own.sum())
        members[name] = {"items": items, "images": chosen, "target": design.targets[rows]}
    used, places = np.unique(np.concatenate([member["images"].ravel() for member in members.values()]), return_inverse=True)
    start = 0
    for member in members.values():
        size = member["images"].size
        member["images"] = places[start : start + size].reshape(member["images"].shape)
        start += size
    splits = {
        name: Dataset.from_dict({key: values.tolist() for key, values in member.items()}) for name, member in members.items()
    }
    kept = images[used]
    splits["images"] = Dataset.from_dict({"pixels": [image.tobytes() for image in kept]})
    count, channels, (height, width) = len(design.sizes), kept.shape[1], kept.shape[2:]
    about = {
        "in_distribution": "validation",
        "image_shape": [count * channels, height, width + (count - 1) * parameters["distance"]],
        "component_shape": [channels, height, width],
        "classes": 1,
        "distance": parameters["distance"],
        "augment": parameters["augment"],
        "mean": mean,
        "std": std,
        "class_of_item": [permutation.tolist() for permutation in permutations],
        "disjoint": [{"columns": ["items"], "members": ["test"]}, {"columns": ["images"], "members": ["validation", "test"]}],
    }
    return DatasetDict(splits), about | design.about()


def load(folder: Path, device: str) -> dict[str, CompositeSplit]:
    """Read a split image task from its folder."""
    about = json.loads((folder / "task.json").read_text())
    members = DatasetDict.load_from_disk(str(folder))
    pixels = b"".join(members.pop("images")["pixels"][:])
    pool = torch.from_numpy(np.frombuffer(pixels, np.uint8).reshape(-1, *about["component_shape"]).copy()).to(device)
    members = members.with_format("numpy")
    return {
        name: CompositeSplit(pool, member["images"][:], member["items"][:], member["target"][:], about, device)
        for name, member in members.items()
    }
