"""The values recorded during training: the metrics of evaluation, what a model shows of itself (`observe`) and, if requested, the
influence of components and single outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from compositional.evaluation import metrics
from compositional.kinds import Batch, Described, Influenced, Margined, Split
from compositional.layers.tap import silent_tap
from compositional.training.problem import Problem

Batches = Sequence[tuple[Tensor, Batch]]  # as returned by `Split.evaluation_batches`


def _influence(problem: Problem, weights: dict[str, Tensor], batches: Batches) -> Iterator[tuple[str, list]]:
    """Pairs (metric, values of all runs): means of the batches' `influence` over the examples."""

    def forward(batch: Batch, tap: Callable) -> Tensor:
        return problem.model.forward(problem.model_parameters, weights, batch, tap)

    norms = []
    for rows, batch in batches:
        if not isinstance(batch, Influenced):
            raise TypeError(f"{type(batch)} has no `influence`, as a kind of task with INFLUENCE must; see compositional.kinds")
        norms.append(torch.stack([norm[:, : len(rows)] for norm in batch.influence(forward, problem.about)]))
    for component, values in zip(("relevant", "redundant"), torch.cat(norms, 2).double().mean(2), strict=True):
        yield f"influence_{component}", values.tolist()


def _outputs(problem: Problem, weights: dict[str, Tensor], split: Split, batches: Batches) -> Iterator[tuple[str, list]]:
    """Pairs (metric, values of all runs): one per example, named by the split's `describe`."""
    for rows, batch in batches:
        with torch.no_grad():
            outputs = problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
        if not isinstance(split, Described) or not isinstance(batch, Margined):
            raise TypeError(f"{type(split)} has no `describe` or its batches no `margins`; see MARGINS in compositional.kinds")
        for description, margins in zip(split.describe(rows), batch.margins(outputs)[:, : len(rows)].T.tolist(), strict=True):
            yield f"margin at {description}", margins


def measure(problem: Problem, weights: dict[str, Tensor], examples: int) -> list[dict[tuple[str, str], float]]:
    """For each run {(split, metric): value} on `examples` of each split; weights (R, ...) by name."""
    results = metrics.measure(problem, weights, examples)
    settings = problem.settings
    if settings["influence_examples"] or settings["record_outputs"]:
        # Only gradients with respect to inputs are needed, not weights.
        weights = metrics.calibrated(problem, {name: weight.detach() for name, weight in weights.items()})
    with torch.no_grad():
        observed = problem.model.observe(problem.model_parameters, weights, problem.about)
    for metric, found in observed.items():
        for result, value in zip(results, found.tolist(), strict=True):
            result["model", metric] = value
    for name, split in problem.splits.items():
        more: list[tuple[str, list]] = []
        if settings["influence_examples"]:
            batches = split.evaluation_batches(len(results), metrics.BATCH, settings["influence_examples"])
            more += _influence(problem, weights, batches)
        if name in settings["record_outputs"]:
            more += _outputs(problem, weights, split, split.evaluation_batches(len(results), metrics.BATCH, examples))
        for metric, values in more:
            for result, value in zip(results, values, strict=True):
                result[name, metric] = value
    return results
