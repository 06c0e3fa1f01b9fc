"""Do two CIFAR-10 images on a canvas show the same class? See tasks.shared.same_class.

The paper draws training pairs from the 50,000 training images and test pairs from the 10,000 test images. Here the last 10,000 of
the training images are held out for the test pairs, because not every source has the complete test set.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import cifar10
from compositional.tasks.shared import same_class

KIND = "image"
DATASET = "cifar10"
PARAMETERS = same_class.PARAMETERS
HELD_OUT = 10_000
_MOMENTS = ([0.491, 0.482, 0.446], [0.247, 0.243, 0.261])  # of red, green and blue in CIFAR-10, as in the paper's code


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test of `tasks.shared.same_class.build`."""
    images, labels = cifar10.load(raw)["train"]
    cut = len(labels) - HELD_OUT
    members = {"train": (images[:cut], labels[:cut]), "test": (images[cut:], labels[cut:])}
    return same_class.build(members, _MOMENTS, parameters)
