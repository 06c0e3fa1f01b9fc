"""Parallelogram rule: the representation of a pair is a sum of its parts.

R = mean over the batch of |r(a, b) + r(c, d) - r(a, d) - r(c, b)|^2 (sum over the width), where (a, b) and (c, d) are the
components of a row and of its partner. The components of an expression are its first operand and the rest. If partners have
different operators, R of the pair is zero. The exchanged pairs can be combinations of the test set, without their targets.
"""

from __future__ import annotations

from torch import Tensor

from compositional.kinds import Recombined
from compositional.regularizers import Step

APPLIES_TO = ("image", "sequence_regression")
REPRESENTATIONS = ("penultimate",)
PAIRED = True  # it pairs the examples of a batch, so the batch size must be even
PARAMETERS: dict = {}


def penalty(step: Step[Recombined]) -> Tensor:
    """R of the model's last representation with a suitable name, (R,).

    One more pass suffices: partners exchange their components, so r(c, b) of a row is r(a, d) of its partner.
    """
    partner = step.batch.partner()
    pairs = step.named(REPRESENTATIONS)[-1]
    _, shown = step.again(step.batch.recombine())
    exchanged = [other for other in shown if other.name in REPRESENTATIONS][-1]
    sides = [side.values + side.values.index_select(1, partner) for side in (pairs, exchanged)]
    return (sides[0] - sides[1]).square().sum(-1).mean(-1)
