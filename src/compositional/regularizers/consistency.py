"""Two passes with different dropout must agree, and the states of one word must resemble each other wherever it stands.

Yin et al., "Consistency Regularization Training for Compositional Generalization" (ACL 2023): R = alpha * contrast + beta *
divergence. Contrast: supervised InfoNCE (Khosla et al., NeurIPS 2020) on the encoder's states of both passes; positives of a
state are all states of the same word in the batch, its twin in the other pass among them; cosine similarity over a temperature;
mean over states. Divergence: Jensen-Shannon divergence between the two passes' predictions, sum over positions, mean over the
batch.
The paper's alpha and beta are .01 and 1 on COGS, .5 and 3 on translation; lambda scales both. A model without dropout has no
divergence. A second pass doubles the cost of a step. The paper's temperature is not known to us: the default is our choice.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from compositional.regularization import Step

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states",)
PARAMETERS = {
    "alpha": {"type": "number", "minimum": 0, "default": 0.01, "description": "weight of the contrast of word states"},
    "beta": {"type": "number", "minimum": 0, "default": 1.0, "description": "weight of the divergence of predictions"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 0.1, "description": "what similarities are divided by"},
}


def contrast(states: Tensor, words: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """Supervised InfoNCE: states (R, M, D), words (R, M), valid (R, M) -> (R,), the mean over valid states with a positive."""
    directions = functional.normalize(states, dim=-1)
    similarity = torch.bmm(directions, directions.transpose(1, 2)) / temperature
    others = valid.unsqueeze(1) & ~torch.eye(states.shape[1], dtype=torch.bool, device=states.device)
    # A padding state has no finite comparison of its own; its row is left out below.
    logits = similarity.masked_fill(~others, -math.inf).log_softmax(-1)
    positive = others & (words.unsqueeze(1) == words.unsqueeze(2))
    count = positive.sum(-1)
    anchor = valid & (count > 0)
    mean = logits.masked_fill(~positive, 0.0).sum(-1) / count.clamp(min=1)
    return -(mean * anchor).sum(-1) / anchor.sum(-1).clamp(min=1)


def divergence(left: Tensor, right: Tensor) -> Tensor:
    """Jensen-Shannon divergence of softmax distributions: logits (..., V) twice -> (...)."""
    ours, theirs = left.log_softmax(-1), right.log_softmax(-1)
    middle = torch.logaddexp(ours, theirs) - math.log(2)
    return ((ours.exp() * (ours - middle)).sum(-1) + (theirs.exp() * (theirs - middle)).sum(-1)) / 2


def penalty(step: Step) -> Tensor:
    """(R,)."""
    batch, options = step.batch, step.parameters
    outputs, representations = step.again(batch)
    (first,) = step.named(REPRESENTATIONS)
    (second,) = (shown for shown in representations if shown.name in REPRESENTATIONS)
    states = torch.cat([first.values.flatten(1, 2), second.values.flatten(1, 2)], 1)
    words, valid = (values.flatten(1, 2).repeat(1, 2) for values in (batch.inputs, batch.input_mask))
    apart = divergence(step.outputs, outputs) * batch.target_mask
    return (
        options["alpha"] * contrast(states, words, valid, options["temperature"])
        + options["beta"] * apart.sum(1) / (batch.inputs.shape[1])
    )
