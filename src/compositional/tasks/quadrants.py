"""The toy problem: predict Y_1 from (X_1, X_2), which are drawn by quadrant; training never shows the test quadrant.

The sign of X_1 alone determines Y_1. X_2 is redundant: in training, (Y_1, Y_2) = (1, 1) does not occur (setting A).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict

from compositional import randomness
from compositional.datasets import quadrants

KIND = "point"
DATASET = "quadrants"
PARAMETERS = {
    "setting": {
        "enum": ["A", "B"],
        "default": "A",
        "description": "A: training never shows the quadrant (1, 1); B: it shows all four, so that X_2 says nothing about Y_1",
    },
    "train_points": {"type": "integer", "minimum": 1, "default": 10000, "description": "training (and validation) points"},
    "test_side": {
        "type": "integer",
        "minimum": 1,
        "default": 100,
        "description": "points per side of the lattice that covers the test quadrant, so that accuracy is a share of its area",
    },
    "grid_side": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "points per side of the grid over the complete square, for decision boundaries; 0: no grid",
    },
}
_TEST = (1, 1)


def _member(points: np.ndarray) -> Dataset:
    return Dataset.from_dict({"point": points.astype(np.float32).tolist(), "label": (points[:, 0] > 0).astype(int).tolist()})


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation, test and (if grid_side is set) grid: columns point (X_1, X_2) and label Y_1. Reads no file."""
    every = [(first, second) for first in (0, 1) for second in (0, 1)]
    seen = every if parameters["setting"] == "B" else [pair for pair in every if pair != _TEST]
    members = {}
    for name in ("train", "validation"):
        source = randomness.generator(randomness.derive("quadrants", name))
        members[name] = quadrants.sample(source, seen, parameters["train_points"])
    middles = (np.arange(parameters["test_side"]) + 0.5) / parameters["test_side"]
    lattice = np.array(list(product(middles, repeat=2)))
    # In random order, so that the first points, on which curves are measured, also cover the quadrant.
    members["test"] = randomness.generator(randomness.derive("quadrants", "test")).permutation(lattice)
    if parameters["grid_side"]:
        members["grid"] = np.array(list(product(np.linspace(-1, 1, parameters["grid_side"]), repeat=2)))
    about = {
        "in_distribution": "validation",
        "classes": 2,
        "inputs": 2,
        "disjoint": [{"columns": ["point"], "members": ["validation", "test"]}],
    }
    return DatasetDict({name: _member(points) for name, points in members.items()}), about
