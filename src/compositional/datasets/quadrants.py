"""Random points in [-1, 1] x [-1, 1] by quadrant: components Y_1, Y_2 are 0 or 1, and X_i = Y_i - U[0, 1). No download.

This is the toy problem of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission).
"""

from __future__ import annotations

import numpy as np

FILES: dict = {}


def sample(source: np.random.Generator, quadrants: list[tuple[int, int]], count: int) -> np.ndarray:
    """`count` points (count, 2), whose quadrants are drawn uniformly from the given (Y_1, Y_2)."""
    components = np.array(quadrants)[source.integers(len(quadrants), size=count)]
    return components - source.random((count, 2))
