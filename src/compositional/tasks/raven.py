"""Puzzles like Raven's matrices. The label states which rules hold, for example whether the rule for colors is "constant"."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict, Features, Image, Value

from compositional.datasets import raven

KIND = "puzzle"
DATASET = "raven"
PARAMETERS = {
    "target": {
        "type": "string",
        "pattern": "^((constant|progression|arithmetic|distribute_three)_(configuration|number|position|shape|size|color)"
        "|(configuration|shape|color)_rule|matrix_type)$",
        "default": "constant_color",
        "description": "the label. <rule>_<attribute>: whether any component follows this rule for this attribute; "
        "<attribute>_rule: the first component's rule, one of four; matrix_type: one of six",
    },
    "train_puzzles": {"type": "integer", "minimum": 1, "default": 128, "description": "puzzles to train on"},
    "validation_puzzles": {
        "type": "integer",
        "minimum": 1,
        "default": 1200,
        "description": "puzzles for validation; nothing is selected on them",
    },
    "image_size": {"type": "integer", "minimum": 48, "default": 128, "description": "side of an image in pixels"},
    "puzzle_seed": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the puzzles, the same for every run"},
}


def _classes(target: str) -> list[str]:
    """Names of the target's classes, in the order of their labels."""
    if target == "matrix_type":
        return list(raven.TYPES)
    return list(raven.RULES) if target.endswith("_rule") else ["no", "yes"]


def label(matrix: raven.Matrix, target: str) -> int:
    """The class of a matrix; PARAMETERS describes the targets."""
    if target == "matrix_type":
        return list(raven.TYPES).index(matrix.type)
    if target.endswith("_rule"):
        place = {"configuration": 0, "shape": 1, "color": 3}[target.removesuffix("_rule")]
        return raven.RULES.index(matrix.rules[0][place].name)
    name, _, attribute = target.rpartition("_")
    return int(matrix.has(name, attribute))


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and validation: columns image (PNG), label, matrix_type and rules. Reads no file.

    Raises:
        ValueError: all training puzzles have the same class, so there is nothing to learn.
    """
    target, size = parameters["target"], parameters["image_size"]
    features = Features({"image": Image(), "label": Value("int64"), "matrix_type": Value("string"), "rules": Value("string")})
    counts = {"train": parameters["train_puzzles"], "validation": parameters["validation_puzzles"]}
    members, start = {}, 0
    for name, count in counts.items():
        matrices = [raven.generate(parameters["puzzle_seed"], number) for number in range(start, start + count)]
        start += count
        columns = {
            "image": [raven.render(matrix, size) for matrix in matrices],
            "label": [label(matrix, target) for matrix in matrices],
            "matrix_type": [matrix.type for matrix in matrices],
            "rules": ["; ".join(" ".join(map(str, rules)) for rules in matrix.rules) for matrix in matrices],
        }
        members[name] = Dataset.from_dict(columns, features=features)
    classes = _classes(target)
    present = sorted(set(members["train"]["label"][:]))
    if len(present) < 2:
        raise ValueError(
            f"target {target!r}: all {len(members['train'])} training puzzles are {classes[present[0]]!r}; "
            "choose a rule that varies (sizes are always constant) or more puzzles"
        )
    about = {
        "in_distribution": "validation",
        "classes": len(classes),
        "image_shape": [1, size, size],
        "references": references(members["validation"], len(classes) == 2),
        "disjoint": [{"columns": ["image"], "members": ["validation"]}],
    }
    return DatasetDict(members), about


def references(member: Dataset, binary: bool) -> dict[str, float]:
    """Accuracies that need no network: of the majority class and, for binary targets, of "the matrix is a shape in a shape"."""
    labels = np.array(member["label"])
    found = {"majority class": float(np.bincount(labels).max() / len(labels))}
    if binary:
        inside = np.array(member["matrix_type"]) == "shape_in_shape"
        found["shape in shape"] = float((inside == labels).mean())
    return found
