"""From gradients to new weights, for many runs at once; and the learning rate of every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from compositional.training import optimizers_compiled

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# group_rmsprop as in the code of Razin, Maman and Cohen (ICML 2022). With the gradient g of all weights w and t = 1, 2, ...:
# s <- 0.99 s + 0.01 |g|^2; w <- w - rate g / (sqrt(s / (1 - 0.99^t)) + 1e-6).
_GROUP_BETA, _GROUP_EPSILON = 0.99, 1e-6


def moment_size(settings: dict[str, Any], weights: int) -> int:
    """How many numbers each moment of a run has, given its number of weights; group_rmsprop has one for the whole gradient."""
    return 1 if settings["optimizer"] == "group_rmsprop" else weights


def scales(settings: dict[str, Any], step: int) -> list[float]:
    """The learning rate, and the two factors that correct the bias of the moments (Kingma and Ba 2015, section 3)."""
    every = settings["decay_every"]
    rate = settings["learning_rate"] * settings["decay"] ** (step // every if every else step / 100)
    if step < settings["warmup"]:
        rate *= (step + 1) / settings["warmup"]
    betas = (_BETA1, _GROUP_BETA if settings["optimizer"] == "group_rmsprop" else _BETA2)
    return [rate, *(1 / (1 - beta ** (step + 1)) for beta in betas)]


def _clear_unhealthy(rows: Tensor, healthy: Tensor) -> None:
    """Set the rows (R, P) of runs that are not `healthy` (R,) to zero, in place."""
    if rows.device.type != "cpu":
        rows.masked_fill_(~healthy.unsqueeze(1), 0.0)
    elif not healthy.all():  # on the CPU this check is cheaper than a pass over all weights
        rows[~healthy] = 0.0


def update(
    settings: dict[str, Any],
    gradient: Tensor,
    norm: Tensor,
    healthy: Tensor,
    weights: Tensor,
    first: Tensor,
    second: Tensor,
    scale: Tensor,
) -> Tensor | None:
    """One step: change weights and moments in place, after clipping each run's gradient and adding the decay of its weights.

    Args:
        gradient: (R, P); it may be overwritten.
        norm: (R,), the norm of the gradient.
        healthy: (R,), whether a run's loss and gradient are finite. The weights of the other runs stay.
        weights: (R, P).
        first, second: the moments, (R, P); for group_rmsprop (R, 1).
        scale: (3,), the result of `scales`.

    Returns:
        The step size of group_rmsprop, (R,).
    """
    clip, decay, kind = settings["clip"], settings["weight_decay"], settings["optimizer"]
    factors = None if clip is None else (clip / norm).clamp(max=1)
    if weights.device.type == "cpu" and kind != "group_rmsprop":
        rate, *corrections = scale.numpy()
        changed = (weights.numpy(), healthy.numpy(), first.numpy())
        ones = np.ones(len(norm), np.float32)
        used = (gradient.numpy(), ones if factors is None else factors.numpy(), np.float32(decay), *changed)
        if kind == "sgd":
            optimizers_compiled.sgd(*used, np.float32(settings["momentum"]), rate)
            return None
        optimizers_compiled.adam_moments(*used, second.numpy(), (_BETA1, _BETA2), corrections[1])
        gradient.sqrt_()  # not compiled, because PyTorch's square roots are not always the closest numbers
        optimizers_compiled.adam_weights(gradient.numpy(), *changed, corrections[0], np.float32(_EPSILON), rate)
        return None
    gradient = gradient if factors is None else gradient * factors.unsqueeze(1)
    gradient = gradient + decay * weights if decay else gradient
    _clear_unhealthy(gradient, healthy)
    pace = None
    rate, first_correction, second_correction = scale.unbind()
    if kind == "sgd":
        change = first.mul_(settings["momentum"]).add_(gradient) * rate
    elif kind == "group_rmsprop":
        used_norm = gradient.square().sum(1).sqrt() if decay else norm if clip is None else norm.clamp(max=clip)
        second.mul_(_GROUP_BETA).add_((1 - _GROUP_BETA) * used_norm.square().unsqueeze(1))
        pace = 1 / ((second * second_correction).sqrt() + _GROUP_EPSILON)
        change = gradient * pace * rate
    else:
        first.mul_(_BETA1).add_(gradient, alpha=1 - _BETA1)
        second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        change = (first * first_correction) / ((second * second_correction).sqrt() + _EPSILON) * rate
    _clear_unhealthy(change, healthy)
    weights.sub_(change)
    return None if pace is None else pace.squeeze(1) * rate
