"""A transformer for episodes that reads the query separately with each study pair; its decoder attends to all of them.

It follows the networks that Lake and Baroni (Nature 2023) train by meta-learning for compositionality on SCAN and COGS
(brendenlake/MLC-ML): no sequence of the encoder is longer than the query and one pair, and a learned vector marks the pair from
which a state comes. Layers, embeddings and positions are those of `transformer`, with ReLU; the original has GELU and absolute
positions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import PAD
from compositional.layers import Weights
from compositional.layers.attention import Encoded, glorot
from compositional.layers.functional import embedding
from compositional.layers.ragged import Chunks
from compositional.models import transformer

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "command_states")  # every word of the query occurs once per pair
PARAMETERS = transformer.PARAMETERS


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run.

    Raises:
        ValueError: the task's inputs are not queries with study pairs.
    """
    if "study" not in task:
        raise ValueError(
            "pairwise_transformer: inputs must be a query and study pairs with a separator before each, as in scan_jump_mlc; "
            'task.json says nothing of them ("study")'
        )
    weights = transformer.initialize(parameters, task, source)
    return weights | {"pair_embedding": glorot(source, task["study"]["pairs"], parameters["width"])}


def buffers(parameters: dict, task: dict, seed: int) -> Weights:
    """The number of the word before every pair, (1,), and the positions of a query with its longest pair, (L,)."""
    study = task["study"]
    separator = list(task["source_words"]).index(study["separator"])
    return {"separator": torch.tensor([separator]), "places": torch.arange(study["longest"])}


def parted(batch: Batch, separator: Tensor, places: Tensor, pairs: int) -> tuple[Tensor, Tensor]:
    """The query with each study pair, and which of its positions are filled: (R, B, pairs, L), without the input's last symbol.

    Args:
        separator: (R, 1), the number of the word before every pair. places: (R, L), 0, 1, ..., L - 1.
    """
    separates = batch.inputs == separator.unsqueeze(2)
    before = separates.cumsum(2)
    starts = torch.stack([((before == number) & separates).int().argmax(2) for number in range(1, pairs + 1)], 2)
    ends = torch.cat([starts[..., 1:], (batch.input_lengths - 1).unsqueeze(2)], 2)
    query, place = starts[..., :1, None], places[:, None, None, :]
    index = torch.where(place < query, place, starts.unsqueeze(3) + place - query)
    filled = index < ends.unsqueeze(3)
    read = index.clamp(max=batch.inputs.shape[2] - 1).flatten(2)
    return batch.inputs.gather(2, read).view(index.shape).masked_fill(~filled, PAD), filled


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`."""
    encoded = batch.once("encoded", lambda: _encoded(parameters, weights, batch, tap))
    return transformer.decode(parameters, weights, encoded, batch, tap)


def _encoded(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Encoded:
    """The command with every pair, one after the other, and the encoder's states as the tap returns them."""
    runs, rows, _ = batch.inputs.shape
    pairs, width = weights["pair_embedding"].shape[1:]
    tokens, filled = parted(batch, weights["separator"], weights["places"], pairs)
    words = tap("word_embedding", embedding(tokens.flatten(2), weights["input_embedding"]), filled.flatten(2))
    apart = words.reshape(runs, rows * pairs, -1, width)
    chunks = Chunks((rows * pairs,), (apart.shape[2] + 1,))
    encoded = transformer.encode(parameters, weights, apart, filled.flatten(1, 2), chunks, tap)
    states = encoded.states.view(runs, rows, pairs, -1, width) + weights["pair_embedding"][:, None, :, None, :]
    mask = encoded.masks[0].view(runs, rows, -1)
    shown = tap("command_states", states.flatten(2, 3), mask)
    return Encoded.of(shown, mask, Chunks((rows,), (mask.shape[2],)))
