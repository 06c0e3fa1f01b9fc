"""Conjunction-wise additivity and salience of any network whose task is made of known components.

A kernel model on a compositionally structured representation can only add up values of conjunctions (sets of components with
their items) that it has seen in training: Lippl and Stachenfeld (ICLR 2025), theorem 4.1. The additivity index says how far
this holds of a network's outputs; salience says how much of a representation's geometry each set of components makes up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations as subsets
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositional import activations, kernels, probes
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
    coefficients, of least norm (in the original: ridge regression with a penalty of 1e-10, which comes to the same).

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


@dataclass(frozen=True)
class _Examples:
    """batches: pairs (combinations of a batch's first rows, batch). items (Z, C), counts and trained (Z,) of Z combinations;
    trained is None where outputs are not analyzed."""

    batches: Iterable[tuple[np.ndarray, Any]]
    items: np.ndarray
    counts: np.ndarray
    trained: np.ndarray | None
    names: Sequence[str]


def _examples(problem: Problem, runs: int) -> _Examples | None:
    """Examples whose components are known and cover all combinations, if the task has such."""
    if problem.about.get("kind") == "sequence":
        probe = probes.phrases(problem, runs)
        if probe is None:
            return None
        return _Examples(probe.batches, probe.factors, np.ones(len(probe.items), dtype=int), None, probe.names)
    members = [problem.splits[name] for name in (problem.about.get("in_distribution"), "test") if name in problem.splits]
    names = problem.about.get("components")
    if not names or len(members) < 2 or problem.about.get("sets", 1) > 1:
        return None
    items, inverse, counts = np.unique(
        np.concatenate([member.combinations for member in members]), axis=0, return_inverse=True, return_counts=True
    )
    trained = np.zeros(len(items), dtype=bool)
    trained[inverse[: len(members[0])]] = True

    def batches() -> Iterator[tuple[np.ndarray, Any]]:
        start = 0
        for member in members:
            for rows, batch in member.evaluation_batches(runs, BATCH):
                yield inverse[start + rows.numpy()], batch
            start += len(member)

    return _Examples(batches(), items, counts, trained, names)


def measure(problem: Problem, weights: dict[str, Tensor], outputs: bool = True) -> list[dict[tuple[str, str], float]]:
    """Additivity, values of conjunctions and saliences of every run, {(split, metric): value}, under split "all".

    Taken over examples in distribution and of the test set, which together cover the combinations; a combination counts as
    trained if it occurs in distribution. Of SCAN, over the commands of one verb and a template ("twice", "around left", ...), and
    saliences alone, in the mean over an input's positions: where all untrained combinations share one item ("jump"), every
    function is conjunction-wise additive. Empty for tasks that do not say what their examples are made of.

    Args:
        weights: (R, ...) by name. outputs: whether the outputs are analyzed too, or representations alone.
    """
    runs = next(iter(weights.values())).shape[0]
    examples = _examples(problem, runs)
    if examples is None:
        return [{} for _ in range(runs)]
    weights = calibrated(problem, weights)
    means: dict[str, _Means] = {}
    for places, batch in examples.batches:
        values, representations = activations.shown(problem, weights, batch)
        kept = {name: activations.by_example(*own) for name, own in representations.items()}
        if outputs and examples.trained is not None:
            kept["output"] = values
        where = torch.from_numpy(places).to(problem.device)
        for name, own in kept.items():
            means.setdefault(name, _Means(len(examples.items))).add(where, own[:, : len(places)])
    output = means.pop("output", None)
    results: list[dict[tuple[str, str], float]] = []
    for run in range(runs):
        found = {}
        if output:
            mean = output.sums[run].cpu().numpy() / examples.counts[:, None]
            found |= describe(examples.items, mean, examples.trained, examples.names)
        for name, kept in means.items():
            own = geometry(examples.items, kept.products(run, examples.counts), examples.names)
            found |= {f"{metric} in {name}": value for metric, value in own.items()}
        results.append({("all", metric): value for metric, value in found.items()})
    return results
