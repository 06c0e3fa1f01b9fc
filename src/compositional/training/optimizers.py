"""From gradients to changes of the weights, for many runs at once; and the learning rate of every step."""

from __future__ import annotations

from typing import Any

from torch import Tensor

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


def clear_unhealthy(rows: Tensor, healthy: Tensor) -> None:
    """Set the rows (R, P) of runs that are not `healthy` (R,) to zero, in place."""
    if rows.device.type != "cpu":
        rows.masked_fill_(~healthy.unsqueeze(1), 0.0)
    elif not healthy.all():  # on the CPU this check is cheaper than a pass over all weights
        rows[~healthy] = 0.0


def clipped(settings: dict[str, Any], gradient: Tensor, norm: Tensor, weights: Tensor) -> Tensor:
    """The gradient (R, P) with norms (R,), clipped run by run, plus the decay of the weights (R, P)."""
    if settings["clip"] is not None:
        gradient = gradient * (settings["clip"] / norm).clamp(max=1).unsqueeze(1)
    if settings["weight_decay"]:
        gradient = gradient + settings["weight_decay"] * weights
    return gradient


def change_of(
    settings: dict[str, Any], gradient: Tensor, norm: Tensor, first: Tensor, second: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor | None]:
    """What a step subtracts from the weights, (R, P), and for group_rmsprop the step size, (R,). Changes the moments in place.

    Args:
        gradient: (R, P), clipped.
        norm: (R,), the norm of the gradient before clipping.
        first, second: the moments, (R, P); for group_rmsprop (R, 1).
        scale: (3,), the result of `scales`.
    """
    rate, first_correction, second_correction = scale.unbind()
    if settings["optimizer"] == "sgd":
        return first.mul_(settings["momentum"]).add_(gradient) * rate, None
    if settings["optimizer"] == "group_rmsprop":
        used_norm = norm if settings["clip"] is None else norm.clamp(max=settings["clip"])
        second.mul_(_GROUP_BETA).add_((1 - _GROUP_BETA) * used_norm.square().unsqueeze(1))
        pace = 1 / ((second * second_correction).sqrt() + _GROUP_EPSILON)
        return gradient * pace * rate, pace.squeeze(1) * rate
    first.mul_(_BETA1).add_(gradient, alpha=1 - _BETA1)
    second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
    return (first * first_correction) / ((second * second_correction).sqrt() + _EPSILON) * rate, None
