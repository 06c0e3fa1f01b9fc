"""Pairs of images side by side, labelled by the left one: the right one is redundant (or not informative at all).

Li, Zhao, Hestness, Church, Elhoseiny, "Gradient Descent Resists Compositionality" (ICLR 2021 submission), section 4 and
appendix A.
"""

from __future__ import annotations

import numpy as np
from datasets import Array2D, Dataset, DatasetDict, Features, Value

from compositional import randomness

CLASSES = 10
PARAMETERS = {
    "setting": {
        "enum": ["A", "B"],
        "default": "A",
        "description": "A: in training the right digit is the left one or its successor; B: any digit",
    },
    "train_pairs": {"type": "integer", "minimum": 1, "default": 20000, "description": "training pairs"},
    "test_pairs": {"type": "integer", "minimum": 1, "default": 10000, "description": "pairs of each evaluation set"},
}

# The right digit is the left one plus an offset modulo 10.
_SEEN, _UNSEEN, _ANY = (0, 1), tuple(range(2, CLASSES)), tuple(range(CLASSES))


def _member(images: np.ndarray, labels: np.ndarray, offsets: tuple[int, ...], pairs: int, key: int) -> Dataset:
    source = randomness.generator(key)
    by_class = [np.flatnonzero(labels == digit) for digit in range(CLASSES)]
    left = source.integers(CLASSES, size=pairs)
    right = (left + source.choice(offsets, size=pairs)) % CLASSES
    chosen = [
        np.array(
            [by_class[digit][int(share * len(by_class[digit]))] for digit, share in zip(side, source.random(pairs), strict=True)]
        )
        for side in (left, right)
    ]
    height, width = images.shape[1], 2 * images.shape[2]
    columns = {
        "image": np.concatenate([images[chosen[0]], images[chosen[1]]], axis=2),
        "label": left,
        "right_label": right,
        "left_index": chosen[0],
        "right_index": chosen[1],
    }
    features = Features({name: Value("int64") for name in columns} | {"image": Array2D((height, width), "uint8")})
    return Dataset.from_dict(columns, features=features)


def build(sources: dict[str, tuple[np.ndarray, np.ndarray]], parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation (pairs as in training, images never seen) and test (combinations never seen).

    Args:
        sources: members "train" and "test" of (images (n, height, width) uint8, labels (n,)).
        parameters: as in PARAMETERS.

    Returns:
        Columns image (height, 2 width), label (left digit), right_label and the numbers of both source images.
    """
    seen = _SEEN if parameters["setting"] == "A" else _ANY
    plan = {
        "train": ("train", seen, parameters["train_pairs"]),
        "validation": ("test", seen, parameters["test_pairs"]),
        "test": ("test", _UNSEEN, parameters["test_pairs"]),
    }
    members = DatasetDict(
        {
            name: _member(*sources[source], offsets, pairs, randomness.derive("pairs", name, source))
            for name, (source, offsets, pairs) in plan.items()
        }
    )
    disjoint = [{"columns": ["image"], "members": ["validation", "test"]}]
    if parameters["setting"] == "A":
        disjoint.append({"columns": ["label", "right_label"], "members": ["test"]})
    about = {
        "in_distribution": "validation",
        "classes": CLASSES,
        "component_width": int(sources["train"][0].shape[2]),
        "components": ["left", "right"],
        "disjoint": disjoint,
    }
    return members, about
