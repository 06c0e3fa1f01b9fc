"""What a network shows of itself while it computes: the representations that a model hands to its tap."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from compositional.kinds import Batch
from compositional.training.problem import Problem


def shown(problem: Problem, weights: dict[str, Tensor], batch: Batch) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor | None]]]:
    """What R runs compute on a batch.

    Returns:
        Outputs (R, B, ...), and by name every representation (R, B, ...) with the mask (R, B, S) of its valid positions, None
        where it has none. A model's second one of a name is called name_2.
    """
    found: dict[str, tuple[Tensor, Tensor | None]] = {}
    times: Counter[str] = Counter()

    def tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        times[name] += 1
        found[name if times[name] == 1 else f"{name}_{times[name]}"] = values, mask
        return values

    with torch.no_grad():
        outputs = problem.model.forward(problem.model_parameters, weights, batch, tap)
    return outputs, found


def by_example(values: Tensor, mask: Tensor | None) -> Tensor:
    """A representation as one vector per example, (R, B, D): of a sequence, the mean over its positions."""
    if mask is not None:
        share = mask.to(values.dtype) / mask.sum(-1, keepdim=True)
        values = (values * share.unsqueeze(-1)).sum(-2)
    return values.flatten(2)
