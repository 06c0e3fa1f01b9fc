"""Two images of mnist side by side; the label is the left digit. See compositional.pairs for the settings."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import pairs
from compositional.datasets import mnist

KIND = "image"
DATASET = "mnist"
PARAMETERS = pairs.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation and test of `compositional.pairs.build`."""
    return pairs.build(mnist.load(raw), parameters)
