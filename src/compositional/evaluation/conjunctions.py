"""Conjunction-wise additivity and salience (`additivity`) of networks whose task is made of known components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compositional.evaluation import activations, stimuli
from compositional.evaluation.metrics import BATCH, calibrated
from compositional.kinds import Batch, Composed
from compositional.measures import additivity
from compositional.training.problem import Problem


class _Means:
    """Sums of the representations of R runs per combination, from which means and products of different examples follow."""

    def __init__(self, combinations: int) -> None:
        self.combinations = combinations
        self.sums = torch.zeros(())  # (R, Z, D)
        self.squares = torch.zeros(())  # (R, Z), of norms

    def add(self, places: Tensor, values: Tensor) -> None:
        """places (B,) of the combinations; values (R, B, D)."""
        # In float32 and with one product of fixed shape per run, so that a run's numbers do not depend on the number of runs.
        member = torch.nn.functional.one_hot(places, self.combinations).to(values.dtype).T
        runs = [own.clone() for own in values]  # all with the same memory alignment
        sums = torch.stack([member @ own for own in runs]).double()
        squares = torch.stack([member.double() @ own.double().square().sum(-1) for own in runs])
        self.sums, self.squares = self.sums + sums, self.squares + squares

    def products(self, run: int, counts: np.ndarray) -> np.ndarray:
        """Mean inner products (Z, Z). The diagonal uses pairs of different examples, if there are any."""
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
    trained is None if outputs are not analyzed."""

    batches: Iterable[tuple[np.ndarray, Batch]]
    items: np.ndarray
    counts: np.ndarray
    trained: np.ndarray | None
    names: Sequence[str]


def _examples(problem: Problem, runs: int) -> _Examples | None:
    """Examples whose components are known and cover all combinations, if the task has such examples."""
    if (probe := stimuli.phrases(problem, runs)) and probe.factors is not None:
        return _Examples(probe.batches, probe.factors, np.ones(len(probe.items), dtype=int), None, probe.names)
    asked = [problem.splits.get(name) for name in (problem.about.get("in_distribution", ""), "test")]
    members = [split for split in asked if isinstance(split, Composed)]
    names = problem.about.get("components")
    if not names or len(members) < 2 or problem.about.get("sets", 1) > 1:
        return None
    items, inverse, counts = np.unique(
        np.concatenate([member.combinations for member in members]), axis=0, return_inverse=True, return_counts=True
    )
    trained = np.zeros(len(items), dtype=bool)
    trained[inverse[: len(members[0])]] = True

    def batches() -> Iterator[tuple[np.ndarray, Batch]]:
        start = 0
        for member in members:
            for rows, batch in member.evaluation_batches(runs, BATCH):
                yield inverse[start + rows.numpy()], batch
            start += len(member)

    return _Examples(batches(), items, counts, trained, names)


def measure(problem: Problem, weights: dict[str, Tensor], outputs: bool = True) -> list[dict[tuple[str, str], float]]:
    """Additivity, values of conjunctions and saliences of every run, {(split, metric): value}, under split "all".

    They are computed from the in-distribution and test examples, which together cover all combinations. A combination counts as
    trained if it occurs in distribution. For SCAN they are computed from the commands made of one verb and a template ("twice",
    "around left", ...), and only saliences of mean representations over positions are given: since all untrained combinations
    share one item ("jump"), every function is conjunction-wise additive. Empty for tasks that do not declare what their examples
    are made of.

    Args:
        weights: (R, ...) by name.
        outputs: whether to analyze outputs, too, or only representations.
    """
    runs = next(iter(weights.values())).shape[0]
    examples = _examples(problem, runs)
    if examples is None:
        return [{} for _ in range(runs)]
    weights = calibrated(problem, weights)
    means: dict[str, _Means] = {}
    for places, batch in examples.batches:
        values, representations = activations.shown(problem, weights, batch)
        vectors = {name: activations.by_example(*own) for name, own in representations.items()}
        if outputs and examples.trained is not None:
            vectors["output"] = values
        where = torch.from_numpy(places).to(problem.device)
        for name, own in vectors.items():
            means.setdefault(name, _Means(len(examples.items))).add(where, own[:, : len(places)])
    output = means.pop("output", None)
    results: list[dict[tuple[str, str], float]] = []
    for run in range(runs):
        found: dict[str, float] = {}
        if output and examples.trained is not None:
            mean = output.sums[run].cpu().numpy() / examples.counts[:, None]
            found |= additivity.describe(examples.items, mean, examples.trained, examples.names)
        for name, kept in means.items():
            measured = additivity.geometry(examples.items, kept.products(run, examples.counts), examples.names)
            found |= {f"{metric} in {name}": value for metric, value in measured.items()}
        results.append({("all", metric): value for metric, value in found.items()})
    return results
