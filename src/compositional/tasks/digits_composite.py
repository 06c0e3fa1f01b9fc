"""Images of several of scikit-learn's 8 x 8 digits, each in its own channel, at a distance. See compositional.composites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import DatasetDict

from compositional.datasets import digits
from compositional.kinds import composite as composites

KIND = "composite"
DATASET = "digits"
PARAMETERS = composites.PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members of `compositional.composites.build`; all 1,797 digits are one pool. Reads no file."""
    images, labels = (np.concatenate(parts) for parts in zip(*digits.load(raw).values(), strict=True))
    return composites.build(images, labels, [0.3053], [0.3760], parameters)
