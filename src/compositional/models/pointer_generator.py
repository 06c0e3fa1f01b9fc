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
from compositional.layers.recurrent import SMALLEST, cell_step, encode, looked_at
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
    blocked = padding_bias(batch.input_mask, keys.dtype)

    # Known for all steps in advance, in step order: the part of the gates that comes from previous symbols, and dropout's mask.
    previous = embedding(batch.previous[:, layout.to_steps], weights["output_embedding"])
    gates_of_symbols, carried = lstm_input_feeding.gates_of(weights, previous)
    kept = dropout(tap, previous.new_ones(*previous.shape[:2], hidden.shape[2]), parameters["dropout"])

    zeros = torch.zeros_like(hidden)
    hidden, cell, decision = batch.resumed(hidden=hidden, cell=zeros, decision=zeros)
    decisions: list[Tensor] = []
    looks: list[Tensor] = []
    sizes = layout.writing.sizes
    # Split once, and slice only when some rows have ended: the gradient of each slice is as large as the tensor it is cut from.
    for size, gate_of_symbol, keep in zip(sizes, gates_of_symbols.split(sizes, 1), kept.split(sizes, 1), strict=True):
        if size < hidden.shape[1]:
            hidden, cell, decision, keys, states, blocked = (
                of[:, :size] for of in (hidden, cell, decision, keys, states, blocked)
            )
        hidden, cell = cell_step(torch.baddbmm(gate_of_symbol, torch.cat([decision, hidden], 2), carried), cell)
        query = linear(hidden, weights["query.weight"], weights["query.bias"])
        scores = ((query.unsqueeze(2) + keys).tanh() * weights["score.weight"].transpose(1, 2).unsqueeze(1)).sum(3)
        looks.append((scores + blocked).softmax(2))
        context = torch.bmm(looks[-1].flatten(0, 1).unsqueeze(1), states.flatten(0, 1)).view_as(hidden)
        decision = linear(torch.cat([context, hidden], 2), weights["combined.weight"], weights["combined.bias"]) * keep
        decisions.append(decision)
    batch.keep(hidden=hidden, cell=cell, decision=decision)
    decided, looked = (reorder(torch.cat(of, 1), layout.to_chunks, layout.to_steps) for of in (decisions, looks))

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
