"""Checks of models: outputs must not depend on later target symbols, and a Network draws only the random numbers of its run.

Like `training.guards`, this is in no fingerprint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from compositional.kinds import Batch as AnyBatch
from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import END
from compositional.layers.tap import silent_tap
from compositional.models import Model
from compositional.training.plugin_errors import ROUNDING, forward_of, refuse
from compositional.training.problem import Problem

EXAMPLES = 64  # training examples on which evaluation is tried


def _values(network: nn.Module, kept: bool) -> dict[str, Tensor]:
    """Tensors and arrays that a network holds, by name: those of its state dictionary (kept), or all others."""
    state = network.state_dict(keep_vars=True)
    if kept:
        return {name: values.detach() for name, values in state.items()}
    inside = {id(values) for values in state.values()}
    found = {}
    for path, part in network.named_modules():
        for name, values in (vars(part) | part._buffers).items():
            if isinstance(values, np.ndarray | Tensor) and id(values) not in inside:
                found[f"{path}.{name}".lstrip(".")] = torch.as_tensor(values).detach()
    return found


def _different(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    return [name for name in one if name not in other or not torch.equal(one[name].nan_to_num(), other[name].nan_to_num())]


def check_network(problem: Problem) -> None:
    """Refuse a Network that draws numbers when it is built that are not its run's own, or that are not kept with the run.

    Raises:
        ValueError: the message names the tensors.
    """
    functions = cast(Any, problem.model.forward).__self__  # training.networks._Functions
    first, again, other = (functions.built(np.random.default_rng(seed)) for seed in (0, 0, 1))
    for kept in (True, False):
        if changed := _different(_values(first, kept), _values(again, kept)):
            functions.refuse(
                f"{', '.join(changed)} differs when it is built twice with one seed. Draw random numbers from torch only, not "
                "from NumPy or random"
            )
    if changed := _different(_values(first, False), _values(other, False)):
        functions.refuse(
            f"{', '.join(changed)} depends on the seed but is not in its state dictionary, so no run would keep it. Make it a "
            "parameter, or use register_buffer(..., persistent=True)"
        )


def evaluated(problem: Problem, model: Model, weights: dict[str, Tensor], batch: AnyBatch) -> Tensor:
    """A model's outputs for a batch, as evaluation computes them. weights: (R, ...) by name."""
    with torch.no_grad():
        if model.calibrate:
            weights = weights | model.calibrate(problem.model_parameters, weights, [batch])
        return model.forward(problem.model_parameters, weights, batch, silent_tap)


def check_order(problem: Problem, weights: dict[str, Tensor]) -> None:
    """Refuse a model of sequences whose output at a step depends on later target symbols: evaluation, which knows none, and
    teacher forcing would then be different things.

    Args:
        weights: (R, ...) by name.

    Raises:
        PluginError: it depends on them.
    """
    _, batch = problem.splits["train"].evaluation_batches(len(next(iter(weights.values()))), EXAMPLES, EXAMPLES)[0]
    symbols = len(problem.about.get("target_words", ()))
    if not isinstance(batch, Batch) or symbols < END + 3:  # with one word there is no other
        return
    step = batch.layout.positions[:, 1]
    cut = int(step.max()) // 2

    def other(values: Tensor, later: Tensor) -> Tensor:
        """Another word instead of every later one; the special symbols stay."""
        return torch.where(later & (values > END), END + 1 + (values - END) % (symbols - END - 1), values)

    changed = replace(batch, targets=other(batch.targets, step >= cut), previous=other(batch.previous, step > cut))
    ours, theirs = (evaluated(problem, problem.model, weights, own) for own in (batch, changed))
    valid = (step <= cut) & batch.target_mask
    difference = (ours - theirs).abs().amax(-1)[valid].max() / ours.abs().amax(-1)[valid].max()
    if difference >= ROUNDING:  # not if it is NaN: a run that diverges is no fault of the model
        refuse(forward_of(problem.model), f"its output at a step changes with later target symbols, by {difference:.1e}", "later")
