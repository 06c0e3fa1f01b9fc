"""Small activations: describe here what the term penalizes, its formula, and who published it.

R = mean over the batch of the mean over the width of r^2.
"""

from __future__ import annotations

from torch import Tensor

from compositional.regularizers import Step

APPLIES_TO = ("image",)
REPRESENTATIONS = ("penultimate",)
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """(R,): one number per run."""
    (shown,) = step.named(REPRESENTATIONS)
    return shown.squared_norm()
