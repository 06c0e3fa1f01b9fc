"""Pairs of images side by side, labelled by the left image. The right one is redundant (or not informative at all).

Li, Zhao, Hestness, Church, Elhoseiny, "Gradient Descent Resists Compositionality" (ICLR 2021 submission), section 4 and
appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    "evaluation_images": {
        "enum": ["shared", "separate"],
        "default": "shared",
        "description": "shared: all evaluation members use the same images; separate: the test set has one half of the images "
        "that training lacks, and the other members have the other half",
    },
    "validation_pairs": {
        "type": "integer",
        "minimum": 0,
        "maximum": 5,
        "default": 0,
        "description": "how many of the combinations (1, 2), (3, 4), ... are held out of training as the member `compositional`; "
        "needs setting A and separate images",
    },
    "validation_offset": {
        "type": ["integer", "null"],
        "minimum": 2,
        "maximum": 9,
        "default": None,
        "description": "pairs whose right digit exceeds the left one by this number are the member `compositional`, not in the "
        "test set; needs setting A and separate images",
    },
}

# The right digit is the left one plus an offset modulo 10.
_SEEN, _UNSEEN, _ANY = (0, 1), tuple(range(2, CLASSES)), tuple(range(CLASSES))


@dataclass(frozen=True)
class _Member:
    """The plan of a member: the source of its images, of which it uses all (half: None) or every second one of each class; the
    offsets of its pairs; and excluded combinations (left, right)."""

    source: str
    offsets: tuple[int, ...]
    pairs: int
    half: int | None = None
    excluded: frozenset[tuple[int, int]] = frozenset()


def _drawn(member: _Member, images: np.ndarray, labels: np.ndarray, key: int) -> Dataset:
    source = randomness.generator(key)
    by_class = [np.flatnonzero(labels == digit) for digit in range(CLASSES)]
    if member.half is not None:
        by_class = [of_class[member.half :: 2] for of_class in by_class]
    left = source.integers(CLASSES, size=member.pairs)
    right = (left + source.choice(member.offsets, size=member.pairs)) % CLASSES
    excluded = np.zeros((CLASSES, CLASSES), dtype=bool)
    excluded[tuple(zip(*member.excluded, strict=True)) or ([], [])] = True
    while len(again := np.flatnonzero(excluded[left, right])):
        left[again] = source.integers(CLASSES, size=len(again))
        right[again] = (left[again] + source.choice(member.offsets, size=len(again))) % CLASSES
    chosen = []
    for side in (left, right):
        shares = zip(side, source.random(member.pairs), strict=True)
        chosen.append(np.array([by_class[digit][int(share * len(by_class[digit]))] for digit, share in shares]))
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


def _members(parameters: dict) -> dict[str, _Member]:
    """The plan of every member.

    Raises:
        ValueError: options exclude each other.
    """
    seen = _SEEN if parameters["setting"] == "A" else _ANY
    offset, held = parameters["validation_offset"], parameters["validation_pairs"]
    if offset and held:
        raise ValueError("validation_offset and validation_pairs both make the member `compositional`: set one of them")
    if (offset or held) and (parameters["setting"], parameters["evaluation_images"]) != ("A", "separate"):
        option = "validation_offset" if offset else "validation_pairs"
        raise ValueError(
            f"{option} needs setting A, where not every combination is trained, and evaluation_images: separate, so that the "
            "test set shows no image on which settings are chosen"
        )
    own, other = (0, 1) if parameters["evaluation_images"] == "separate" else (None, None)
    pairs = parameters["test_pairs"]
    trained = {(digit, (digit + step) % CLASSES) for digit in range(CLASSES) for step in _SEEN}
    lost = {(digit, (digit + 1) % CLASSES) for digit in range(1, 2 * held, 2)}
    found = {
        "train": _Member("train", seen, parameters["train_pairs"], excluded=frozenset(lost)),
        "validation": _Member("test", seen, pairs, own, excluded=frozenset(lost)),
        "test": _Member("test", tuple(o for o in _UNSEEN if o != offset), pairs, other),
    }
    if held:
        found["compositional"] = _Member("test", _SEEN, pairs, own, excluded=frozenset(trained - lost))
    elif offset:
        found["compositional"] = _Member("test", (offset,), pairs, own)
    return found


def build(sources: dict[str, tuple[np.ndarray, np.ndarray]], parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, validation (pairs as in training, new images), test (new combinations) and, if an option requires it,
    compositional (other new combinations, for choosing settings).

    Args:
        sources: members "train" and "test" of (images (n, height, width) uint8, labels (n,)).
        parameters: as in PARAMETERS.

    Returns:
        Columns image (height, 2 width), label (left digit), right_label and the numbers of both source images.

    Raises:
        ValueError: options that exclude each other.
    """
    plan = _members(parameters)
    members = DatasetDict(
        {
            name: _drawn(member, *sources[member.source], randomness.derive("pairs", name, member.source))
            for name, member in plan.items()
        }
    )
    evaluated = [name for name in plan if name != "train"]
    disjoint = [{"columns": ["image"], "members": evaluated}]
    if parameters["setting"] == "A":
        disjoint.append({"columns": ["label", "right_label"], "members": [name for name in evaluated if name != "validation"]})
    height, width = sources["train"][0].shape[1:]
    about = {
        "in_distribution": "validation",
        "image_shape": [1, height, 2 * width],
        "classes": CLASSES,
        "component_width": width,
        "components": ["left", "right"],
        "disjoint": disjoint,
    }
    return members, about
