"""The tap that receives a model's representations in evaluation and ignores them; and dropout, which acts only in training."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

from torch import Tensor

from compositional.layers import dropout_compiled


def silent_tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
    """The tap of evaluation: it records and changes nothing."""
    return values


def dropout(tap: Callable, values: Tensor, rate: float) -> Tensor:
    """Set a share `rate` of the units (R, ...) to zero and scale up the others. It acts only in training, if the tap has noise.

    A unit is dropped if its normal number is below the quantile of `rate`; each run draws its own numbers.
    """
    noise = getattr(tap, "noise", None)
    if noise is None or rate == 0:
        return values
    drawn, quantile, factor = noise(values.shape[1:]), NormalDist().inv_cdf(rate), 1 / (1 - rate)
    if values.device.type == "cpu":
        return dropout_compiled.keep(values, drawn, quantile, factor)
    return values * (drawn > quantile).to(values.dtype).mul_(factor)
