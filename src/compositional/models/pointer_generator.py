"""The recurrent model of OpenNMT (Klein et al., ACL 2017) with copying: the plain LSTM of published results on GeoQuery in FunQL.

The decision of a decoder step, its state combined with the attended states, is an input of the next step (Luong, Pham and
Manning 2015, section 3.3). The output is a mixture of two distributions: symbols that the decoder writes, and symbols spelled
like the words that its attention reads (See, Liu and Manning, ACL 2017, equation 9). Words that are not symbols stand for
padding, which is never right, so copying them is penalized. Attention is additive (Bahdanau, Cho and Bengio 2015).

As in OpenNMT-py 1.2, all weights start uniform in +-0.1, and dropout acts on decisions only. Unlike there, the decoder's cell
state starts with zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, linear, padding_bias, reorder
from compositional.layers.input_feeding import input_feeding
from compositional.layers.recurrent import SMALLEST, encode, looked_at
from compositional.layers.tap import dropout
from compositional.models import lstm_input_feeding

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "embedding_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 64,
        "description": "width of input and output word embeddings",
    },
    "width": {
        "type": "integer",
        "minimum": 8,
        "multipleOf": 8,
        "default": 512,
        "description": "units of the decoder; the encoder has half as many per direction",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the units of decisions that is dropped in training",
    },
}
_BOUND = 0.1  # OpenNMT's `param_init`


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    words, symbols = len(task["source_words"]), len(task["target_words"])
    embedding_width, width = parameters["embedding_width"], parameters["width"]
    half = width // 2
    shapes: dict[str, tuple[int, ...]] = {
        "input_embedding": (words, embedding_width),
        "output_embedding": (symbols, embedding_width),
    }
    for name, inputs, units in (
        ("encoder.forward", embedding_width, half),
        ("encoder.backward", embedding_width, half),
        ("decoder", embedding_width + width, width),
    ):
        shapes |= {f"{name}.input": (inputs, 4 * units), f"{name}.recurrent": (units, 4 * units), f"{name}.bias": (4 * units,)}
    shapes |= {"key.weight": (width, width), "query.weight": (width, width), "query.bias": (width,), "score.weight": (width, 1)}
    for name, inputs, outputs in (("combined", 2 * width, width), ("output", width, symbols), ("copied", width, 1)):
        shapes |= {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}
    return {name: randomness.uniform_tensor(source, shape, -_BOUND, _BOUND) for name, shape in shapes.items()}


buffers = lstm_input_feeding.buffers


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Log probabilities (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`."""
    batch = batch.last()
    layout = batch.layout
    hidden, states, keys = batch.once("encoded", lambda: _encoded(weights, batch, tap))
    blocked = padding_bias(batch.input_mask, keys.dtype).unsqueeze(2)

    # Known for all steps in advance, in step order: the part of the gates that comes from previous symbols, and dropout's mask.
    previous = embedding(batch.previous[:, layout.to_steps], weights["output_embedding"])
    gates_of_symbols, carried = lstm_input_feeding.gates_of(weights, previous)
    # Dropout acts on decisions, and not a second time on those that enter a step.
    everything = previous.new_ones(1).expand(*previous.shape[:2], hidden.shape[2])
    kept_in, kept_out = everything, dropout(tap, everything, parameters["dropout"])

    state = batch.resumed(hidden=hidden, cell=torch.zeros_like(hidden), decision=torch.zeros_like(hidden))
    of_context, of_hidden = weights["combined.weight"].chunk(2, 1)
    combined = torch.cat([of_hidden, of_context], 1), weights["combined.bias"]
    scoring = weights["query.weight"], weights["query.bias"], weights["score.weight"].squeeze(2)
    decisions, looks, (hidden, cell, decision) = input_feeding(
        gates_of_symbols, state, carried, keys, states, blocked, combined, (kept_in, kept_out), layout.writing, scoring
    )
    batch.keep(hidden=hidden, cell=cell, decision=decision)
    decided, looked = (reorder(of, layout.to_chunks, layout.to_steps) for of in (decisions, looks))

    logits = linear(decided, weights["output.weight"], weights["output.bias"])
    share = linear(decided, weights["copied.weight"], weights["copied.bias"]).sigmoid()
    copied = looked_at(looked, lstm_input_feeding.alike_of(weights, batch), layout)[..., : logits.shape[2]]
    return ((1 - share) * logits.softmax(2) + share * copied).clamp_min(SMALLEST).log()


def _encoded(weights: Weights, batch: Batch, tap: Callable) -> tuple[Tensor, Tensor, Tensor]:
    """The encoder's ends, (R, B, 2 H), its states, (R, B, S, 2 H), and their keys."""
    words = tap("word_embedding", embedding(batch.inputs, weights["input_embedding"]), batch.input_mask)
    states, ends = encode(weights, words, batch.layout.reading, batch.input_lengths, batch.input_mask)
    states = tap("encoder_states", states, batch.input_mask)
    return ends, states, linear(states, weights["key.weight"])
