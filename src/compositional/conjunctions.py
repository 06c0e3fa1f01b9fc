"""Conjunction-wise additivity and salience of any network whose task is made of known components.

A kernel model on a compositionally structured representation can only add up values of conjunctions (sets of components with
their items) that it has seen in training: Lippl and Stachenfeld (ICLR 2025), theorem 4.1. The additivity index says how far
this holds of a network's outputs; salience says how much of a representation's geometry each set of components makes up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as subsets

import numpy as np
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from compositional import kernels
from compositional.evaluation import BATCH, calibrated
from compositional.training import Problem


def patterns(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """All sets of components as index into a kernel (2, ..., 2): "none", "first", "second", "first+second", ..."""
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
    """Indicators of all conjunctions of order 1 to C that some trained combination has.

    Args:
        items: (Z, C). trained: (Z,) of bool.

    Returns:
        (Z, F) of 0 and 1, and the F conjunctions' names, as in "context=0 feature1=3".
    """
    columns, labels = [], []
    for pattern in list(patterns(names).values())[1:]:
        chosen = np.flatnonzero(pattern)
        for key in np.unique(items[trained][:, chosen], axis=0):
            columns.append((items[:, chosen] == key).all(1))
            labels.append(" ".join(f"{names[index]}={item}" for index, item in zip(chosen, key, strict=True)))
    return np.stack(columns, 1).astype(np.float64), labels


def describe(items: np.ndarray, outputs: np.ndarray, trained: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Additivity index and, of a single output, the values of all trained conjunctions.

    The index is R^2 of the best conjunction-wise additive fit to the outputs of all combinations, trained or not; values are its
    coefficients, of least norm (ridge regression with penalty 1e-10, as in the original).

    Args:
        items: (Z, C). outputs: (Z, D), mean outputs of each combination. trained: (Z,) of bool.
    """
    matrix, labels = features(items, trained, names)
    machine = Ridge(alpha=1e-10, solver="svd").fit(matrix, outputs)
    left = ((outputs - machine.predict(matrix).reshape(outputs.shape)) ** 2).sum()
    spread = ((outputs - outputs.mean(0)) ** 2).sum()
    found = {"additivity": float(1 - left / spread) if spread > 0 else 1.0}
    if outputs.shape[1] == 1:
        found["value of intercept"] = float(np.ravel(machine.intercept_)[0])
        values = machine.coef_.reshape(-1)
        found |= {f"value of {label}": float(value) for label, value in zip(labels, values, strict=True)}
    return found


def geometry(items: np.ndarray, products: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Salience of every set of components in a representation, and how uniform the similarities behind it are.

    The kernel's entry for a set of components is the mean inner product over pairs of inputs that agree exactly in these.

    Args:
        items: (Z, C). products: inner products (Z, Z) of the combinations' representations, on the diagonal of two different
            examples where there are several.

    Returns:
        "salience of ...", "similarity of ..." (0 for inputs that share nothing, 1 for identical ones) and "similarity_spread
        of ..." (its standard deviation over pairs). Empty if the combinations lack one of the kinds of pairs, or if the
        representation does not tell inputs apart at all.
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


class _Means:
    """Sums by combination of what R runs show: enough for means and for products of different examples."""

    def __init__(self, combinations: int) -> None:
        self.combinations = combinations
        self.sums: Tensor | None = None  # (R, Z, D)
        self.squares: Tensor | None = None  # (R, Z), of norms

    def add(self, places: Tensor, values: Tensor) -> None:
        """places (B,) of the combinations; values (R, B, D)."""
        # In float32 and one product a run of one shape: a run's numbers do not depend on how many others there are.
        member = torch.nn.functional.one_hot(places, self.combinations).to(values.dtype).T
        runs = [own.clone() for own in values]  # aligned alike
        sums = torch.stack([member @ own for own in runs]).double()
        squares = torch.stack([member.double() @ own.double().square().sum(-1) for own in runs])
        self.sums = sums if self.sums is None else self.sums + sums
        self.squares = squares if self.squares is None else self.squares + squares

    def products(self, run: int, counts: np.ndarray) -> np.ndarray:
        """Mean inner products (Z, Z); on the diagonal of pairs of different examples, if there are any."""
        sums = self.sums[run].cpu().numpy()
        inner = sums @ sums.T
        apart = inner / np.outer(counts, counts)
        several = counts > 1
        own = (np.diag(inner) - self.squares[run].cpu().numpy())[several] / (counts * (counts - 1))[several]
        apart[np.flatnonzero(several), np.flatnonzero(several)] = own
        return apart


def measure(problem: Problem, weights: dict[str, Tensor], outputs: bool = True) -> list[dict[tuple[str, str], float]]:
    """Additivity, values of conjunctions and saliences of every run, {(split, metric): value}, under split "all".

    Taken over examples in distribution and of the test set, which together cover the combinations; a combination counts as
    trained if it occurs in distribution. Empty for tasks that do not say what their examples are made of.

    Args:
        weights: (R, ...) by name. outputs: whether the outputs are analyzed too, or representations alone.
    """
    runs = next(iter(weights.values())).shape[0]
    members = [problem.splits[name] for name in (problem.about.get("in_distribution"), "test") if name in problem.splits]
    names = problem.about.get("components")
    if not names or len(members) < 2 or problem.about.get("sets", 1) > 1:
        return [{} for _ in range(runs)]
    items, inverse, counts = np.unique(
        np.concatenate([member.combinations for member in members]), axis=0, return_inverse=True, return_counts=True
    )
    trained = np.zeros(len(items), dtype=bool)
    trained[inverse[: len(members[0])]] = True
    weights = calibrated(problem, weights)
    shown: dict[str, _Means] = {}

    def collect(name: str, values: Tensor) -> None:
        shown.setdefault(name, _Means(len(items))).add(places, values.flatten(2))

    def tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        collect(name, values)
        return values

    start = 0
    for member in members:
        for rows, batch in member.evaluation_batches(runs, BATCH):
            places = torch.from_numpy(inverse[start + rows.numpy()]).to(member.device)
            with torch.no_grad():
                collect("output", problem.model.forward(problem.model_parameters, weights, batch, tap))
        start += len(member)
    results: list[dict[tuple[str, str], float]] = []
    for run in range(runs):
        found = {}
        if outputs:
            means = shown["output"].sums[run].cpu().numpy() / counts[:, None]
            found |= describe(items, means, trained, names)
        for name, kept in shown.items():
            if name != "output":
                own = geometry(items, kept.products(run, counts), names)
                found |= {f"{metric} in {name}": value for metric, value in own.items()}
        results.append({("all", metric): value for metric, value in found.items()})
    return results
