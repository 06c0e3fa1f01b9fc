"""How much representations change from symbol to symbol: the quantity that `smoothness` penalizes, measured in all runs."""

from __future__ import annotations

import torch
from torch import Tensor

from compositional.evaluation import activations
from compositional.evaluation.metrics import BATCH, calibrated
from compositional.kinds.sequence_regression import SequenceRegressionSplit
from compositional.training.problem import Problem


def measure(problem: Problem, weights: dict[str, Tensor]) -> list[dict[tuple[str, str], float]]:
    """For each run {("train", "change of <representation>"): value}, for every representation that has positions.

    The value is the squared difference between neighboring positions, averaged over width, steps and all training examples.
    Empty for kinds of tasks other than sequence regression.

    Args:
        weights: (R, ...) by name.
    """
    runs = next(iter(weights.values())).shape[0]
    train = problem.splits["train"]
    if not isinstance(train, SequenceRegressionSplit):
        return [{} for _ in range(runs)]
    weights = calibrated(problem, weights)
    sums: dict[str, Tensor] = {}
    steps = 0
    for rows, batch in train.evaluation_batches(runs, BATCH):
        valid = batch.input_mask[0, : len(rows), 1:]
        steps += int(valid.sum())
        for name, (values, mask) in activations.shown(problem, weights, batch)[1].items():
            if mask is not None:
                changes = (values[:, : len(rows), 1:] - values[:, : len(rows), :-1]).double().square().mean(-1)
                sums[name] = sums.get(name, torch.zeros(runs, dtype=torch.float64)) + (changes * valid).sum((1, 2)).cpu()
    return [{("train", f"change of {name}"): float(total[run]) / steps for name, total in sums.items()} for run in range(runs)]
