"""Tasks of recovering a matrix or tensor from few measurements: single entries (completion) or random projections (sensing).

Razin, Maman, Cohen (ICML 2022), appendix on the experiments. There is no noise. The members are train, test (held-out
measurements) and target (every entry). The relative error on target is the normalized reconstruction error.
"""

from __future__ import annotations

import math

import numpy as np
from datasets import Array2D, Dataset, DatasetDict, Features, Value

from compositional import randomness
from compositional.datasets import low_rank

SHARED = {
    "norm": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 64,
        "description": "Frobenius norm to which the target is scaled",
    },
    "train_measurements": {"type": "integer", "minimum": 1, "default": 2048, "description": "measurements for training"},
    "test_measurements": {"type": "integer", "minimum": 1, "default": 2048, "description": "held out"},
    "number": {"type": "integer", "minimum": 0, "default": 0, "description": "which target and measurements are drawn"},
}
MATRIX_PARAMETERS = {
    "side": {"type": "integer", "minimum": 1, "default": 64, "description": "rows, and columns, of the matrix"},
    "rank": {"type": "integer", "minimum": 1, "default": 5, "description": "of the matrix"},
    "symmetric": {"type": "boolean", "default": False, "description": "whether the matrix is U U^T instead of U V^T"},
} | SHARED
TENSOR_PARAMETERS = {
    "target": {
        "enum": ["cp", "hierarchical"],
        "default": "cp",
        "description": "what has the low rank: a sum of outer products, or a hierarchical factorization",
    },
    "order": {"type": "integer", "minimum": 2, "default": 3, "description": "modes of the tensor"},
    "dimension": {"type": "integer", "minimum": 1, "default": 16, "description": "of every mode"},
    "ranks": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [5],
        "description": "cp: the number of outer products; hierarchical: the width of each level of the mode tree, leaves first",
    },
} | SHARED


def matrix_target(parameters: dict) -> np.ndarray:
    """The matrix of MATRIX_PARAMETERS."""
    source = randomness.generator(randomness.derive("matrix", parameters["number"]))
    return low_rank.matrix(source, *(parameters[name] for name in ("side", "rank", "norm", "symmetric")))


def tensor_target(parameters: dict) -> np.ndarray:
    """The tensor of TENSOR_PARAMETERS.

    Raises:
        ValueError: `ranks` does not fit the target.
    """
    order, dimension, ranks, norm = (parameters[name] for name in ("order", "dimension", "ranks", "norm"))
    source = randomness.generator(randomness.derive("tensor", parameters["target"], parameters["number"]))
    levels = 1 if parameters["target"] == "cp" else math.ceil(math.log2(order))
    if len(ranks) != levels:
        raise ValueError(f"a target {parameters['target']!r} of order {order} needs {levels} ranks, not {ranks}")
    if parameters["target"] == "cp":
        return low_rank.cp(source, order, dimension, ranks[0], norm)
    return low_rank.hierarchical(source, order, dimension, ranks, norm)


def _entries(target: np.ndarray, flat: np.ndarray) -> dict[str, np.ndarray]:
    return {"entry": flat, "value": target.reshape(-1)[flat]}


def _members(target: np.ndarray, train: dict, test: dict, features: Features) -> tuple[DatasetDict, dict]:
    every = _entries(target, np.arange(target.size))
    members = {
        "train": Dataset.from_dict(train, features=features),
        "test": Dataset.from_dict(test, features=features),
        "target": Dataset.from_dict(every, features=Features({"entry": Value("int64"), "value": Value("float32")})),
    }
    return DatasetDict(members), {"in_distribution": "train", "shape": list(target.shape)}


def completion(target: np.ndarray, parameters: dict) -> tuple[DatasetDict, dict]:
    """Measurements are distinct entries in random order: columns entry (its index, last mode fastest) and value.

    Raises:
        ValueError: there are fewer entries than measurements.
    """
    train, test = parameters["train_measurements"], parameters["test_measurements"]
    if train + test > target.size:
        raise ValueError(f"{train} + {test} measurements are more than the {target.size} entries of the target {target.shape}")
    order = randomness.generator(randomness.derive("completion", parameters["number"])).permutation(target.size)
    features = Features({"entry": Value("int64"), "value": Value("float32")})
    parts = _entries(target, order[:train]), _entries(target, order[train : train + test])
    members, about = _members(target, *parts, features)
    return members, about | {"disjoint": [{"columns": ["entry"], "members": ["test"]}]}


def sensing(target: np.ndarray, parameters: dict) -> tuple[DatasetDict, dict]:
    """Measurements <A, target> with random A: columns probe (A, or its vectors as rows) and value.

    For a matrix, A has normal entries of variance 1 / size. For a tensor, A is an outer product of normal vectors whose entries
    have the same variance.
    """
    source = randomness.generator(randomness.derive("sensing", target.ndim, parameters["number"]))
    shape = target.shape if target.ndim == 2 else (target.ndim, target.shape[0])
    spread = target.size ** (-1 / 2 if target.ndim == 2 else -1 / (2 * target.ndim))
    features = Features({"probe": Array2D(shape, "float32"), "value": Value("float32")})
    parts = {}
    for name in ("train", "test"):
        probes = (spread * source.standard_normal((parameters[f"{name}_measurements"], *shape))).astype(np.float32)
        parts[name] = {"probe": probes, "value": measure(target, probes)}
    members, about = _members(target, parts["train"], parts["test"], features)
    return members, about | {"disjoint": [{"columns": ["probe"], "members": ["test"]}]}


def measure(target: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """<A, target>, (n,), for probes (n, rows, columns) of a matrix, or (n, order, dimension) of a tensor."""
    if target.ndim == 2:
        return np.einsum("nij,ij->n", probes, target)
    values = np.tensordot(probes[:, 0].astype(np.float64), target, 1)
    for mode in range(1, target.ndim):
        values = np.einsum("ni,ni...->n...", probes[:, mode], values)
    return values
