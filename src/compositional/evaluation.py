"""Metrics of trained runs, computed for a whole pack at once."""

from __future__ import annotations

import torch
from torch import Tensor

from compositional.regularization import silent_tap
from compositional.training import Problem

BATCH = 256


def measure(problem: Problem, weights: dict[str, Tensor], examples: int | None = None) -> list[dict[tuple[str, str], float]]:
    """Accuracy and mean loss of every run on every split (or on `examples` of each).

    Args:
        weights: (R, ...) by name.

    Returns:
        For each run {(split, metric): value}; loss is summed over positions, mean over examples.
    """
    runs = next(iter(weights.values())).shape[0]
    results: list[dict[tuple[str, str], float]] = [{} for _ in range(runs)]
    for name, split in problem.splits.items():
        hits, total, count = 0.0, 0.0, 0
        for rows, batch in split.evaluation_batches(runs, BATCH, examples):
            with torch.no_grad():
                outputs = problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
            real = len(rows)
            hits = hits + batch.correct(outputs)[:, :real].double().sum(1)
            loss = batch.example_losses(batch.losses(outputs, problem.settings["loss"]))
            total = total + loss[:, :real].double().sum(1)
            count += real
        for run, (accuracy, loss) in enumerate(zip((hits / count).tolist(), (total / count).tolist(), strict=True)):
            results[run][(name, "accuracy")] = accuracy
            results[run][(name, "loss")] = loss
    return results
