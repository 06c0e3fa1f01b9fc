"""Metrics of trained runs, computed for a complete pack at a time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from compositional.layers.tap import silent_tap
from compositional.training.problem import Problem

BATCH = 256
CALIBRATION_EXAMPLES = 512


def calibrated(problem: Problem, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, plus the values that a model needs for evaluation and computes from training examples (`calibrate`)."""
    if problem.model.calibrate is None:
        return weights
    runs = next(iter(weights.values())).shape[0]
    batches = problem.splits["train"].evaluation_batches(runs, BATCH, CALIBRATION_EXAMPLES)
    return weights | problem.model.calibrate(problem.model_parameters, weights, (batch for _, batch in batches))


def measure(problem: Problem, weights: dict[str, Tensor], examples: int | None = None) -> list[dict[tuple[str, str], float]]:
    """Mean loss of every run on every split (or on `examples` of each), and the metrics of its kind of task, such as accuracy.

    Args:
        weights: (R, ...) by name.

    Returns:
        For each run {(split, metric): value}. The loss is summed over positions and averaged over examples.
    """
    runs = next(iter(weights.values())).shape[0]
    weights = calibrated(problem, weights)
    results: list[dict[tuple[str, str], float]] = [{} for _ in range(runs)]
    for name, split in problem.splits.items():
        totals: dict[str, Tensor] = {}
        right: list[Tensor] = []
        count = 0
        for rows, batch in split.evaluation_batches(runs, BATCH, examples):
            with torch.no_grad():
                outputs = problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
            real = len(rows)
            values = batch.metrics(outputs)
            values["loss"] = batch.example_losses(batch.losses(outputs, problem.settings["loss"]))
            for metric, value in values.items():
                added = value[:, :real].double().sum(1)
                totals[metric] = totals[metric] + added if metric in totals else added
            if "accuracy" in values:
                right.append(values["accuracy"][:, :real])
            count += real
        for metric, total in totals.items():
            for result, value in zip(results, (total / count).tolist(), strict=True):
                result[name, metric] = value
        categories = getattr(split, "categories", None)
        if examples is None and categories is not None:
            for result, of in zip(results, by_category(torch.cat(right, 1).cpu(), categories), strict=True):
                result |= {(name, f"accuracy of {category}"): accuracy for category, accuracy in of.items()}
    return results


def by_category(right: Tensor, categories: np.ndarray) -> list[dict[str, float]]:
    """Accuracies of runs (R, n) by category, and by group "a" of categories "a/b"; "a/b; c/d" stands for two categories."""
    of = {text: {name for part in text.split("; ") for name in (part, part.split("/")[0])} for text in set(categories)}
    chosen = {name: torch.tensor([name in of[text] for text in categories]) for name in sorted(set().union(*of.values()))}
    # A group that contains every example is not a category.
    return [
        {name: row[where].double().mean().item() for name, where in chosen.items() if "/" in name or not where.all()}
        for row in right
    ]
