"""Conjunction-wise additivity and salience, as functions of arrays: how outputs and representations depend on combinations.

A kernel model on a compositionally structured representation can only add up values of conjunctions (sets of components with
their items) that occurred in training: Lippl and Stachenfeld (ICLR 2025), theorem 4.1. The additivity index measures how well
outputs have this form. Salience measures the share of a representation's geometry that each set of components determines.
`evaluation.conjunctions` applies both to networks.

Everywhere items is (Z, C): Z combinations of C components, whose names are `names`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as subsets

import numpy as np

from compositional.measures import kernels


def patterns(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """All sets of components by name, as index into a kernel (2, ..., 2): "none", "first", "second", "first+second", ..."""
    count = len(names)
    found = {}
    for size in range(count + 1):
        for chosen in subsets(range(count), size):
            found["+".join(names[index] for index in chosen) or "none"] = tuple(int(index in chosen) for index in range(count))
    return found


def by_pattern(values: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Entries of an array (2, ..., 2) by the name of the set of components."""
    return {name: float(values[index]) for name, index in patterns(names).items()}


def features(items: np.ndarray, trained: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Indicators of all conjunctions of 1 to C components that occur in some trained combination.

    Args:
        items: (Z, C). trained: (Z,) of bool.

    Returns:
        (Z, F) of 0 and 1, and the names of the F conjunctions, such as "context=0 feature1=3".
    """
    columns, labels = [], []
    for pattern in list(patterns(names).values())[1:]:
        chosen = np.flatnonzero(pattern)
        for key in np.unique(items[trained][:, chosen], axis=0):
            columns.append((items[:, chosen] == key).all(1))
            labels.append(" ".join(f"{names[int(index)]}={item}" for index, item in zip(chosen, key, strict=True)))
    return np.stack(columns, 1).astype(np.float64), labels


def describe(items: np.ndarray, outputs: np.ndarray, trained: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Additivity index and, if there is a single output, the values of all trained conjunctions.

    The index is R^2 of the best conjunction-wise additive fit to the outputs of all combinations, trained or not. The values are
    the coefficients with the smallest norm (the original uses ridge regression with a penalty of 1e-10, which is equivalent).

    Args:
        items: (Z, C). outputs: (Z, D), mean outputs of each combination. trained: (Z,) of bool.
    """
    matrix, labels = features(items, trained, names)
    centered, deviations = matrix - matrix.mean(0), outputs - outputs.mean(0)
    coefficients = np.linalg.lstsq(centered, deviations, rcond=None)[0]
    left, spread = ((deviations - centered @ coefficients) ** 2).sum(), (deviations**2).sum()
    found = {"additivity": float(1 - left / spread) if spread > 0 else 1.0}
    if outputs.shape[1] == 1:
        found["value of intercept"] = float((outputs.mean(0) - matrix.mean(0) @ coefficients)[0])
        found |= {f"value of {label}": float(value) for label, value in zip(labels, coefficients[:, 0], strict=True)}
    return found


def geometry(items: np.ndarray, products: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Salience of every set of components in a representation, and how uniform the underlying similarities are.

    The kernel's entry for a set of components is the mean inner product over pairs of inputs that agree in exactly these.

    Args:
        items: (Z, C).
        products: inner products (Z, Z) of the combinations' representations. The diagonal holds products of two different
            examples of a combination, if there are several.

    Returns:
        "salience of ...", "similarity of ..." (0 for inputs that share nothing, 1 for identical ones) and "similarity_spread
        of ..." (its standard deviation over pairs). Empty if one of the kinds of pairs does not occur, or if the representation
        does not distinguish inputs at all.
    """
    count = len(names)
    agree = kernels.overlap(items, items)
    pairs = [products[agree == index] for index in range(2**count)]
    if any(len(own) == 0 for own in pairs):
        return {}
    span = pairs[-1].mean() - pairs[0].mean()
    if not span > 0:
        return {}
    similarity = np.array([own.mean() for own in pairs]).reshape((2,) * count)
    spread = np.array([own.std() for own in pairs]).reshape((2,) * count)
    kinds = {
        "salience": kernels.salience(similarity, count),
        "similarity": (similarity - pairs[0].mean()) / span,
        "similarity_spread": spread / span,
    }
    return {f"{kind} of {name}": value for kind, array in kinds.items() for name, value in by_pattern(array, names).items()}
