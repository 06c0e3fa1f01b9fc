"""What a model hands its representations to in training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from compositional.regularizers import Regularizer, Representation, Step


class Tap:
    """What a model hands its representations to: records them, lets the regularizer perturb them, and drops units out.

    Args:
        step: where representations are recorded.
        regularizer: whose `perturb` changes them; None: nobody's.
        noise: fresh standard normal noise of a shape, (R, *shape), from the run's own stream for dropout.
    """

    def __init__(self, step: Step, regularizer: Regularizer | None, noise: Callable[[torch.Size], Tensor]) -> None:
        self.step, self.noise = step, noise
        self.perturb = regularizer.perturb if regularizer else None

    def __call__(self, name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        shown = Representation(name, values, mask)
        self.step.representations.append(shown)
        return values if self.perturb is None else self.perturb(self.step, shown)
