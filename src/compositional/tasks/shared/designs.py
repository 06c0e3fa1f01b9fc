"""The designs of the kernel theory's tasks: which combinations of items are trained, whether items are symbols or images.

Lippl and Stachenfeld, "When does compositional structure yield compositional generalization? A kernel theory" (ICLR 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from datasets import Dataset, DatasetDict

VALUES = np.arange(-4, 5)  # of the nine items of addition
RESPONSES = np.array([-1, -1, -1, 1, 1, 1])  # of the six features of context dependence
# Left out of context dependence, in both contexts: feature 1 in the first set together with feature 2 in the second one.
LEFT_OUT = {1: ({0}, {3}), 2: ({0, 1}, {3, 4}), 3: ({0, 1, 2}, {3, 4, 5})}

ADDITION = {
    "trained_items": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 0, "maximum": 8},
        "default": [4],
        "description": "items (0 to 8, with values -4 to 4) that occur with all others in training; [4]: extrapolation, [0]: "
        "asymmetric extrapolation, [0, 8]: interpolation, [2, 6]: both; empty: the dispersed set",
    },
    "shuffle": {
        "type": "integer",
        "minimum": 0,
        "default": 1,
        "description": "seed of the dispersed training set, two combinations per item and component",
    },
    "sets": {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": "number of dispersed training sets, with the seeds shuffle, shuffle + 1, ...; kernel machines fit each "
        "one separately",
    },
}
CONTEXT_DEPENDENCE = {
    "level": {
        "enum": [1, 2, 3],
        "default": 3,
        "description": "CD-1, CD-2 or CD-3: how many values of each feature are left out together (1, 4 or 9 combinations per "
        "context)",
    },
}
TRANSITIVE_EQUIVALENCE = {
    "class_size": {"type": "integer", "minimum": 2, "default": 2, "description": "items of each of the two classes"},
    "trained_per_class": {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": "items of each class that occur with all others in training",
    },
}


@dataclass(frozen=True)
class Design:
    """All combinations of a task: items (Z, C), targets (Z,), and which of them are trained, (Z,)."""

    components: tuple[str, ...]
    combinations: np.ndarray
    targets: np.ndarray
    trained: np.ndarray
    target: str  # "sign" or "number"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of items of each component."""
        return tuple(int(size) for size in self.combinations.max(0) + 1)

    def about(self) -> dict:
        """The part of task.json that describes the combinations."""
        return {"components": list(self.components), "sizes": list(self.sizes), "target": self.target}


def _design(
    components: Sequence[str], sizes: Sequence[int], target: str, value: Callable[..., float], trains: Callable[..., bool]
) -> Design:
    combinations = np.array(list(product(*map(range, sizes))))
    targets = np.array([value(*items) for items in combinations], dtype=np.float64)
    trained = np.array([bool(trains(*items)) for items in combinations])
    return Design(tuple(components), combinations, targets, trained, target)


def dispersed(shuffle: int) -> np.ndarray:
    """The 9 x 9 training matrix of the dispersed set: each row has two neighboring ones, cyclically; rows are in random order."""
    matrix = np.eye(len(VALUES), dtype=bool)
    return np.random.default_rng(shuffle).permutation(matrix | np.roll(matrix, 1, axis=1))


def addition(parameters: dict) -> Design:
    """Symbolic addition (section 4.1): the sum of two values; its options are ADDITION."""
    trained = set(parameters["trained_items"])
    matrix = dispersed(parameters["shuffle"])

    def trains(first: int, second: int) -> bool:
        return bool(trained & {first, second}) if trained else matrix[first, second]

    return _design(("first", "second"), (9, 9), "number", lambda first, second: float(VALUES[first] + VALUES[second]), trains)


def context_dependence(parameters: dict) -> Design:
    """Context dependence (section 4.2): the context says which of two features determines the response."""
    first_out, second_out = LEFT_OUT[parameters["level"]]
    return _design(
        ("context", "feature1", "feature2"),
        (2, 6, 6),
        "sign",
        lambda context, *features: RESPONSES[features[context]],
        lambda context, first, second: not (first in first_out and second in second_out),
    )


def transitive_equivalence(parameters: dict) -> Design:
    """Transitive equivalence (section 4.3): whether two items have the same class, inferred through trained third items.

    Raises:
        ValueError: every item of a class occurs with all others in training.
    """
    size, trained = parameters["class_size"], parameters["trained_per_class"]
    if trained >= size:
        raise ValueError(
            f"trained_per_class must be less than class_size ({size}), or there is nothing to infer; it is {trained}"
        )
    return _design(
        ("first", "second"),
        (2 * size, 2 * size),
        "sign",
        lambda first, second: 1 if first // size == second // size else -1,
        lambda first, second: first % size < trained or second % size < trained,
    )


def invariance() -> Design:
    """The sign of the first item; training shows only one second item (appendix)."""
    return _design(("first", "second"), (2, 2), "sign", lambda first, second: 2 * first - 1, lambda first, second: second == 0)


def partial_exposure() -> Design:
    """The sign of the first item; training shows all combinations but one (appendix)."""
    return _design(
        ("first", "second"), (2, 2), "sign", lambda first, second: 2 * first - 1, lambda first, second: (first, second) != (1, 1)
    )


def factorial(components: int, items: int) -> Design:
    """All combinations, all trained, labelled by their parity: for the theory of representations, which needs no split."""
    names = [f"component{index + 1}" for index in range(components)]
    return _design(names, [items] * components, "sign", lambda *own: 1 - 2 * (sum(own) % 2), lambda *own: True)


def build(designs: Sequence[Design]) -> tuple[DatasetDict, dict]:
    """Members train and test of a symbolic task. Several designs are several training sets of a problem, numbered by `set`.

    Returns:
        Members with the columns items (C numbers), target and set, in the order of the combinations, and the content of
        task.json.
    """
    members = {}
    for name, wanted in (("train", True), ("test", False)):
        chosen = [np.flatnonzero(design.trained == wanted) for design in designs]
        columns = {
            "items": np.concatenate([design.combinations[rows] for design, rows in zip(designs, chosen, strict=True)]),
            "target": np.concatenate([design.targets[rows] for design, rows in zip(designs, chosen, strict=True)]),
            "set": np.repeat(np.arange(len(designs)), [len(rows) for rows in chosen]),
        }
        if len(columns["set"]):
            members[name] = Dataset.from_dict({key: values.tolist() for key, values in columns.items()})
    disjoint = [{"columns": ["items", "set"], "members": ["test"]}] if "test" in members else []
    return DatasetDict(members), {"in_distribution": "train", "sets": len(designs), "disjoint": disjoint} | designs[0].about()
