"""Images of several MNIST images in their own channels, displaced by a distance. See `tasks.shared.composite_images`."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import mnist
from compositional.tasks.shared import composite_images

KIND = "composite"
DATASET = "mnist"
PARAMETERS = composite_images.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `tasks.shared.composite_images.build`, made of the images of the training file, as in the original."""
    return composite_images.build(*mnist.load(raw)["train"], [0.1307], [0.3081], parameters)
