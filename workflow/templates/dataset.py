"""Points in the plane, drawn at random: describe here what the data are, who made them, and what one example is."""

from __future__ import annotations

import numpy as np

# By name, each with "sha256", "mirror" and "url" (stages/download.py); {} if nothing is downloaded.
FILES: dict = {}


def sample(source: np.random.Generator, count: int) -> np.ndarray:
    """Points (count, 2), uniform in the square from -1 to 1."""
    return source.uniform(-1, 1, (count, 2))
