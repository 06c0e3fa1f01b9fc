"""What models hand their representations to where no one looks, and what only training does to these: dropout."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

from torch import Tensor


def silent_tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
    """The tap of evaluation: nothing recorded, nothing changed."""
    return values


def dropout(tap: Callable, values: Tensor, rate: float) -> Tensor:
    """Zero a share `rate` of the units (R, ...) and scale the others up, in training (where the tap has noise) only.

    The units are those whose normal number lies below the quantile of `rate`: every run draws its own.
    """
    noise = getattr(tap, "noise", None)
    if noise is None or rate == 0:
        return values
    keep = noise(values.shape[1:]) > NormalDist().inv_cdf(rate)
    return values * keep.to(values.dtype).mul_(1 / (1 - rate))
