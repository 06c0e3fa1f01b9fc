"""Which side of a line is a point on? Describe here what is learned, and what is new in the test set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict

from compositional import randomness

KIND = "point"
DATASET = "quadrants"
PARAMETERS = {
    "train_points": {"type": "integer", "minimum": 1, "default": 1000, "description": "training points"},
    "test_points": {"type": "integer", "minimum": 1, "default": 200, "description": "test points"},
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of everything random in the task"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test: columns point (X_1, X_2) and label, whether X_1 is positive. Reads no file.

    Training never shows points with two positive coordinates; the test set has only these.
    """
    members = {}
    for name in ("train", "test"):
        source = randomness.generator(randomness.derive(Path(__file__).stem, parameters["draw"], name))
        points = source.uniform(-1, 1, (8 * parameters[f"{name}_points"] + 64, 2)).astype(np.float32)
        wanted = (points > 0).all(1) == (name == "test")
        own = points[wanted][: parameters[f"{name}_points"]]
        members[name] = Dataset.from_dict({"point": own.tolist(), "label": (own[:, 0] > 0).astype(int).tolist()})
    about = {
        "in_distribution": "train",
        "classes": 2,
        "inputs": 2,
        "disjoint": [{"columns": ["point"], "members": ["test"]}],
    }
    return DatasetDict(members), about
