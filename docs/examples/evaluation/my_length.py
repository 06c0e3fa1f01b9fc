"""How many test sentences get a prediction with as many symbols as the target? A metric that is computed after training."""

from __future__ import annotations

from torch import Tensor

from compositional.evaluation import decoding
from compositional.kinds.sequence import SequenceSplit
from compositional.training.problem import Problem


def scores(problem: Problem, weights: dict[str, Tensor]) -> list[dict[tuple[str, str], float]]:
    """For each run {(split, metric): value}, empty if this is no task of sentences. Weights are (R, ...), axis 0: runs."""
    if not isinstance(problem.splits["test"], SequenceSplit):
        return [{} for _ in range(len(next(iter(weights.values()))))]
    results: list[dict[tuple[str, str], float]] = []
    for rows in decoding.predictions(problem, weights, "test", 200):  # of one run: (input, target, prediction) of 200 examples
        equal = [len(target.split()) == len(prediction.split()) for _, target, prediction in rows]
        results.append({("test", "right length"): sum(equal) / len(equal)})
    return results
