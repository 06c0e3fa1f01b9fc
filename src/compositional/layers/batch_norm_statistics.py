"""Statistics for batch normalization in evaluation, computed from training batches with the weights that are evaluated.

They are not running averages collected during training (Wu and Johnson, "Rethinking 'Batch' in BatchNorm", 2021: PreciseBN).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor

BatchT = TypeVar("BatchT")
See = Callable[[str, Tensor], None]


def statistics(forward: Callable[[BatchT, See], object], batches: Iterable[BatchT]) -> dict[str, Tensor]:
    """Mean and variance (R, channels) of each batch normalization's inputs, averaged over the batches, by name.

    forward: (batch, see), the forward pass; it calls `see` with each layer's name and inputs, (R, B, channels, H, W).
    """
    sums: dict[str, Tensor] = {}
    count = 0

    def see(name: str, values: Tensor) -> None:
        # Run by run: the last bits of a sum over all runs at once would depend on the number of runs.
        variance, mean = map(torch.stack, zip(*(torch.var_mean(own, (0, 2, 3)) for own in values), strict=True))
        for key, value in ((f"{name}.mean", mean), (f"{name}.variance", variance)):
            sums[key] = sums[key] + value if key in sums else value

    with torch.no_grad():
        for batch in batches:
            forward(batch, see)
            count += 1
    return {name: total / count for name, total in sums.items()}
