"""Images of several of scikit-learn's digits, each in its own channel, at a distance. See `tasks.shared.composite_images`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import DatasetDict

from compositional.datasets import digits
from compositional.tasks.shared import composite_images

KIND = "composite"
DATASET = "digits"
PARAMETERS = composite_images.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `tasks.shared.composite_images.build`, made of all 1,797 digits. Reads no file."""
    images, labels = (np.concatenate(parts) for parts in zip(*digits.load(raw).values(), strict=True))
    return composite_images.build(images, labels, [0.3053], [0.3760], parameters)
