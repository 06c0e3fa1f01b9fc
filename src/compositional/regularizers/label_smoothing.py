"""Label smoothing as a plain regularizer, for comparison: R = (mean over classes k of the loss if the label were k) - loss.

L + lambda R is then (1 - lambda) L plus lambda times the loss against a uniform label. With cross entropy this is the loss of
Szegedy et al. ("Rethinking the Inception Architecture", CVPR 2016, section 7), and lambda is their epsilon. R can be negative.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from compositional.kinds.sequence import Batch as Sentences
from compositional.regularizers import Step

APPLIES_TO = ("sequence", "image")
REPRESENTATIONS: tuple = ()
LAMBDA_BELOW = 1  # at 1 the label has no effect, and above it the network learns to avoid it
PARAMETERS: dict = {}


def penalty(step: Step) -> Tensor:
    """R, (R,): summed over the positions of a sequence, averaged over the batch."""
    batch, outputs = step.batch, step.outputs
    own = batch.losses(outputs, step.loss)
    if isinstance(batch, Sentences):
        uniform = -outputs.log_softmax(-1).mean(-1) * batch.target_mask
        return (uniform - own).sum(1) / batch.inputs.shape[1]
    labels = [torch.full_like(batch.labels, label) for label in range(outputs.shape[-1])]
    uniform = sum(replace(batch, labels=label).losses(outputs, step.loss) for label in labels) / len(labels)
    return (uniform - own).mean(1)
