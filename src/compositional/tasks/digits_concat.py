"""Two images of digits side by side; the label is the left digit. See tasks.shared.side_by_side for the settings."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import digits
from compositional.tasks.shared import side_by_side as pairs

KIND = "image"
DATASET = "digits"
PARAMETERS = pairs.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation and test of `tasks.shared.side_by_side.build`."""
    return pairs.build(digits.load(raw), parameters)
