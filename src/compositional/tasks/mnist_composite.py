"""Images of several MNIST images in their own channels, displaced by a distance. See compositional.composites."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import mnist
from compositional.kinds import composite as composites

KIND = "composite"
DATASET = "mnist"
PARAMETERS = composites.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `compositional.composites.build`, of the training file's images, as in the original."""
    return composites.build(*mnist.load(raw)["train"], [0.1307], [0.3081], parameters)
