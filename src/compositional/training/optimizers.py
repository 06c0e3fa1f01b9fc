"""What a gradient is made of: the change of the weights, for many runs at once, and the learning rate of every step."""

from __future__ import annotations

from typing import Any

from torch import Tensor

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Of group_rmsprop, as in the code of Razin, Maman and Cohen (ICML 2022): with g the gradient of all weights w and t = 1, 2, ...,
# s <- 0.99 s + 0.01 |g|^2; w <- w - rate g / (sqrt(s / (1 - 0.99^t)) + 1e-6).
_GROUP_BETA, _GROUP_EPSILON = 0.99, 1e-6


def moment_size(settings: dict[str, Any], weights: int) -> int:
    """How many numbers each moment of a run with so many weights has: group_rmsprop keeps one of the whole gradient."""
    return 1 if settings["optimizer"] == "group_rmsprop" else weights


def scales(settings: dict[str, Any], step: int) -> list[float]:
    """Learning rate, and what corrects the moments' bias (Kingma and Ba 2015, section 3)."""
    every = settings["decay_every"]
    rate = settings["learning_rate"] * settings["decay"] ** (step // every if every else step / 100)
    if step < settings["warmup"]:
        rate *= (step + 1) / settings["warmup"]
    betas = (_BETA1, _GROUP_BETA if settings["optimizer"] == "group_rmsprop" else _BETA2)
    return [rate, *(1 / (1 - beta ** (step + 1)) for beta in betas)]


def clear_unhealthy(rows: Tensor, healthy: Tensor) -> None:
    """Put zeros into the rows (R, P) of runs that are not `healthy` (R,)."""
    if rows.device.type != "cpu":
        rows.masked_fill_(~healthy.unsqueeze(1), 0.0)
    elif not healthy.all():  # on the CPU a look is cheaper than a pass over all weights
        rows[~healthy] = 0.0


def clipped(settings: dict[str, Any], gradient: Tensor, norm: Tensor, weights: Tensor) -> Tensor:
    """The gradient (R, P) of norm (R,), clipped run by run, with the decay of the weights (R, P)."""
    if settings["clip"] is not None:
        gradient = gradient * (settings["clip"] / norm).clamp(max=1).unsqueeze(1)
    if settings["weight_decay"]:
        gradient = gradient + settings["weight_decay"] * weights
    return gradient


def change_of(
    settings: dict[str, Any], gradient: Tensor, norm: Tensor, first: Tensor, second: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor | None]:
    """What a step subtracts from the weights, (R, P), and (group_rmsprop) the step's size, (R,). Changes the moments in place.

    Args:
        gradient: (R, P), clipped. norm: (R,), of the gradient before it was clipped.
        first, second: moments, (R, P) or, of group_rmsprop, (R, 1).
        scale: (3,), as from `scales`.
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
