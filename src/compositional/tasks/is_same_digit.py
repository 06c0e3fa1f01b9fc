"""Do two of scikit-learn's images on a canvas show the same digit? IsSameClass without download; see tasks.shared.same_class."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import digits
from compositional.tasks.shared import same_class

KIND = "image"
DATASET = "digits"
PARAMETERS = same_class.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test of `tasks.shared.same_class.build`, from the first two thirds of the images and the last third."""
    members = {name: (images[:, None], labels) for name, (images, labels) in digits.load(raw).items()}
    pixels = members["train"][0] / 255
    return same_class.build(members, ([float(pixels.mean())], [float(pixels.std())]), parameters)
