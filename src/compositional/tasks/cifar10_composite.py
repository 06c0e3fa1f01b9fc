"""Images of several CIFAR-10 images in their own channels. See compositional.composites."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import cifar10
from compositional.kinds import composite as composites

KIND = "composite"
DATASET = "cifar10"
PARAMETERS = composites.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `compositional.composites.build`, of the training files' images, as in the original."""
    return composites.build(*cifar10.load(raw)["train"], [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010], parameters)
