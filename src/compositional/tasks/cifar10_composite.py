"""Images of several CIFAR-10 images in their own channels. See `tasks.shared.composite_images`."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import cifar10
from compositional.tasks.shared import composite_images

KIND = "composite"
DATASET = "cifar10"
PARAMETERS = composite_images.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `tasks.shared.composite_images.build`, made of the images of the training files, as in the original."""
    return composite_images.build(*cifar10.load(raw)["train"], [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010], parameters)
