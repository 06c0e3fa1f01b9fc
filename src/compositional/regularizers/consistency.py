"""Two passes with different dropout should agree, and the states of a word should be similar wherever the word occurs.

Yin et al., "Consistency Regularization Training for Compositional Generalization" (ACL 2023): R = alpha * contrast + beta *
divergence.

The contrast is supervised InfoNCE (Khosla et al., NeurIPS 2020) on the encoder's states of both passes, with cosine similarity
divided by a temperature. The positives of a state are all states of the same word in the batch, including its twin in the other
pass. The mean over states is multiplied by the mean number of target symbols per example, because the paper adds it to a loss
averaged over symbols, and the task's loss here is their sum. The divergence is the Jensen-Shannon divergence between the
predictions of the two passes, summed over positions and averaged over the batch.

The paper's alpha and beta are .01 and 1 on COGS, .5 and 3 on translation; lambda scales both. A model without dropout has no
divergence. The second pass doubles the cost of a step.

The authors' code (ARIES-LM/CSR4CG at 579793d) differs from the paper's text. Its divergence is the mean of the two
Kullback-Leibler divergences, which is several times as large; the task losses of both passes count; and the contrast is computed
from the decoder's states, after a small network. The default temperature is that of the code on COGS.
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
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 0.07, "description": "divisor of the similarities"},
}


def prepare(parameters: dict, split: SequenceSplit) -> int:
    """The number of input words, rounded up so that products with one column per word are aligned."""
    return aligned(len(split.source))


def contrast(states: Tensor, words: Tensor, valid: Tensor, temperature: float, vocabulary: int) -> Tensor:
    """Supervised InfoNCE, averaged over valid states that have a positive.

    states (R, M, D), words (R, M) below `vocabulary`, valid (R, M) -> (R,).
    """
    directions = functional.normalize(states, dim=-1)
    # There are M x M similarities, so passes over them are avoided: the mask is part of the product, and the mean similarity to
    # the other states of a word is computed from the sum of these states.
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
    """R, (R,)."""
    batch, options = step.batch, step.parameters
    outputs, representations = step.again(batch)
    (first,) = step.named(REPRESENTATIONS)
    (second,) = (shown for shown in representations if shown.name in REPRESENTATIONS)
    # The padding after short inputs is left out, because the cost of the contrast is quadratic.
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
