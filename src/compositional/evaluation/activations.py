"""What a network shows while it computes: the representations that a model passes to its tap."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch import Tensor

from compositional.evaluation.stimuli import Stimuli
from compositional.kinds import Batch
from compositional.training.problem import Problem


def shown(problem: Problem, weights: dict[str, Tensor], batch: Batch) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor | None]]]:
    """Run R networks on a batch.

    Returns:
        Outputs (R, B, ...), and every representation (R, B, ...) by name with the mask (R, B, S) of its valid positions, or None
        if it has no mask. If a model shows two representations under one name, the second one is called name_2.
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
    """A representation as one vector per example, (R, B, D); for a sequence, the mean over its positions."""
    if mask is not None:
        share = mask.to(values.dtype) / mask.sum(-1, keepdim=True)
        values = (values * share.unsqueeze(-1)).sum(-2)
    return values.flatten(2)


def on_stimuli(problem: Problem, weights: dict[str, Tensor], probe: Stimuli) -> dict[str, np.ndarray]:
    """Every representation of every item of the stimuli, (R, items, D); for sequences the mean over an input's positions."""
    parts: dict[str, list[np.ndarray]] = {}
    places = np.concatenate([rows for rows, _ in probe.batches])
    for rows, batch in probe.batches:
        for name, own in shown(problem, weights, batch)[1].items():
            parts.setdefault(name, []).append(by_example(*own)[:, : len(rows)].double().cpu().numpy())
    # Restore the order of the stimuli.
    return {name: np.concatenate(own, 1)[:, np.argsort(places)] for name, own in parts.items()}
