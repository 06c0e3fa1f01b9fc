"""mini-ImageNet classification, the proposal's image baseline: 100 classes; by default a random part of the images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import Array3D, Dataset, DatasetDict, Features, Value

from compositional import randomness
from compositional.datasets import mini_imagenet

KIND = "image"
DATASET = "mini_imagenet"
PARAMETERS = {
    "train_images": {"type": ["integer", "null"], "minimum": 1, "default": 2000, "description": "training images; null: all"},
    "validation_images": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": 500,
        "description": "validation images; null: all",
    },
    "test_images": {"type": ["integer", "null"], "minimum": 1, "default": 500, "description": "test images; null: all"},
}
CLASSES = 100
_MOMENTS = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])  # of red, green and blue in ImageNet
_BY_DESIGN = "whatever pictures the published members have in common"


def _member(images: np.ndarray, labels: np.ndarray, count: int | None, name: str) -> Dataset:
    order = randomness.generator(randomness.derive("mini_imagenet", name)).permutation(len(labels))[:count]
    features = Features({"image": Array3D(images.shape[1:], "uint8"), "label": Value("int64")})
    return Dataset.from_dict({"image": images[order], "label": labels[order]}, features=features)


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation and test: columns image (3, 84, 84) and label. Nothing is recombined: an ordinary test set."""
    members = {
        name: _member(*mini_imagenet.load(raw, name), parameters[f"{name}_images"], name)
        for name in ("train", "validation", "test")
    }
    about = {
        "in_distribution": "validation",
        "image_shape": list(members["train"].features["image"].shape),
        "classes": CLASSES,
        "component_width": None,
        "mean": _MOMENTS[0],
        "std": _MOMENTS[1],
        "disjoint": [{"columns": ["image"], "members": ["validation", "test"], "by_design": _BY_DESIGN}],
    }
    return DatasetDict(members), about
