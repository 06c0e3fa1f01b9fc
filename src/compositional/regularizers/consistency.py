"""Two passes with different dropout must agree, and the states of one word must resemble each other wherever it stands.

Yin et al., "Consistency Regularization Training for Compositional Generalization" (ACL 2023): R = alpha * contrast + beta *
divergence. Contrast: supervised InfoNCE (Khosla et al., NeurIPS 2020) on the encoder's states of both passes; positives of a
state are all states of the same word in the batch, its twin in the other pass among them; cosine similarity over a temperature;
mean over states, times the target symbols an example has in the batch: the paper adds it to a mean over symbols, and the task's
loss here is their sum. Divergence: Jensen-Shannon divergence between the two passes' predictions, sum over positions, mean over
the batch.
The paper's alpha and beta are .01 and 1 on COGS, .5 and 3 on translation; lambda scales both. A model without dropout has no
divergence. A second pass doubles the cost of a step.

The authors' code (ARIES-LM/CSR4CG at 579793d) differs from the paper's text: the divergence is the mean of the two
Kullback-Leibler divergences, several times as large; both passes' task losses count; the contrast is on the decoder's states,
through a small network. The default temperature is theirs on COGS.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.layers.functional import aligned, divergence, padding_bias
from compositional.regularizers import Step

APPLIES_TO = ("sequence",)
REPRESENTATIONS = ("encoder_states",)
PARAMETERS = {
    "alpha": {"type": "number", "minimum": 0, "default": 0.01, "description": "weight of the contrast of word states"},
    "beta": {"type": "number", "minimum": 0, "default": 1.0, "description": "weight of the divergence of predictions"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 0.07, "description": "what similarities are divided by"},
}


def prepare(parameters: dict, split: SequenceSplit) -> int:
    """How many words there are, filled up for products with a column per word."""
    return aligned(len(split.source))


def contrast(states: Tensor, words: Tensor, valid: Tensor, temperature: float, vocabulary: int) -> Tensor:
    """Supervised InfoNCE: states (R, M, D), words (R, M) below `vocabulary`, valid (R, M) -> (R,), the mean over valid states
    with a positive."""
    directions = functional.normalize(states, dim=-1)
    # Its M x M entries are passed over as rarely as can be: nothing is masked after the product, and the mean similarity to a
    # word's other states is that to their sum.
    bias = padding_bias(valid, states.dtype).unsqueeze(1).repeat(1, states.shape[1], 1)
    bias.diagonal(dim1=1, dim2=2).fill_(-math.inf)
    similarity = torch.baddbmm(bias, directions / temperature, directions.transpose(1, 2))
    members = functional.one_hot(words, vocabulary).to(states.dtype) * valid.unsqueeze(-1)
    others = torch.bmm(members, torch.bmm(members.transpose(1, 2), directions)) - directions
    count = members.sum(1).gather(1, words) - 1
    mean = (directions * others).sum(-1) / (temperature * count.clamp(min=1))
    anchor = valid & (count > 0)
    return ((similarity.logsumexp(-1) - mean) * anchor).sum(-1) / anchor.sum(-1).clamp(min=1)


def penalty(step: Step[Batch]) -> Tensor:
    """(R,)."""
    batch, options = step.batch, step.parameters
    outputs, representations = step.again(batch)
    (first,) = step.named(REPRESENTATIONS)
    (second,) = (shown for shown in representations if shown.name in REPRESENTATIONS)
    # Without the padding behind short inputs: the contrast's cost is quadratic.
    row, place = batch.layout.reading.positions.unbind(1)
    read = row * batch.inputs.shape[2] + place
    states, words, valid = (
        torch.cat([values.flatten(1, 2).index_select(1, read) for values in both], 1)
        for both in ((first.values, second.values), [batch.inputs] * 2, [batch.input_mask] * 2)
    )
    apart = divergence(step.outputs.log_softmax(-1), outputs.log_softmax(-1)) * batch.target_mask
    rows = batch.inputs.shape[1]
    symbols = batch.target_mask.sum(1) / rows
    alike = symbols * contrast(states, words, valid, options["temperature"], step.prepared)
    return options["alpha"] * alike + options["beta"] * apart.sum(1) / rows
