"""The tap that receives a model's representations in training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from compositional.regularizers import Regularizer, Representation, Step


class Tap:
    """Receives a model's representations, records them, and lets the regularizer perturb them. It also has dropout's noise.

    Args:
        step: where representations are recorded.
        regularizer: its `perturb` changes representations; None: they stay unchanged.
        noise: from a shape to fresh standard normal noise (R, *shape), from each run's own stream for dropout.
    """

    def __init__(self, step: Step, regularizer: Regularizer | None, noise: Callable[[torch.Size], Tensor]) -> None:
        self.step, self.noise = step, noise
        self.perturb = regularizer.perturb if regularizer else None

    def __call__(self, name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        shown = Representation(name, values, mask)
        self.step.representations.append(shown)
        return values if self.perturb is None else self.perturb(self.step, shown)
