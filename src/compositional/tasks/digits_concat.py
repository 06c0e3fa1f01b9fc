"""Two images of digits side by side; the label is the left digit. See compositional.pairs for the settings."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import pairs
from compositional.datasets import digits

KIND = "image"
DATASET = "digits"
PARAMETERS = pairs.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation and test of `compositional.pairs.build`."""
    return pairs.build(digits.load(raw), parameters)
