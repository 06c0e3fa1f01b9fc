"""Two-stream sequence-to-sequence model after CGPS (Li, Zhao, Wang, Hestness: "Compositional Generalization for Primitive
Substitutions", EMNLP 2019): *what* an output word is comes from one embedding of the input words, *where* to attend from
another. The decoder sees no output words, so it cannot learn which word follows which.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear
from compositional.layers.recurrent import attend, decode, encode, initialize_lstm

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "primitive_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 16,
        "description": "width of the *what* embedding",
    },
    "function_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 8,
        "description": "width of the *where* embedding",
    },
    "encoder_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 32,
        "description": "encoder units per direction; the decoder has twice as many",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    weights = initialize_encoder(parameters, task, source)
    decoder = initialize_lstm(source, 1, 2 * parameters["encoder_width"], "decoder")
    weights |= {"decoder.recurrent": decoder["decoder.recurrent"], "decoder.bias": decoder["decoder.bias"]}
    return weights | initialize_linear(source, parameters["primitive_width"], len(task["target_words"]), "output")


def initialize_encoder(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """What `encode_both` reads. Embeddings are uniform in [-1, 1), the scale to which the noise of `entropy` relates."""
    words, function = len(task["source_words"]), parameters["function_width"]
    weights = {
        "primitive_embedding": randomness.uniform_tensor(source, (words, parameters["primitive_width"]), -1, 1),
        "function_embedding": randomness.uniform_tensor(source, (words, function), -1, 1),
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, function, parameters["encoder_width"], f"encoder.{direction}")
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Logits (R, N, actions) in chunk order; teacher forcing makes no difference here."""
    mask, batch = batch.input_mask, batch.last()
    primitive, states, ends = batch.once("encoded", lambda: encode_both(weights, batch, tap))
    queries = decode(weights, None, ends, batch.layout, batch.past)
    mixed = attend(queries, states, primitive, mask, batch.layout)
    return linear(mixed, weights["output.weight"], weights["output.bias"])


def encode_both(weights: Weights, batch: Batch, tap) -> tuple[Tensor, Tensor, Tensor]:
    """*What* each input word is, (R, B, S, E), the encoder's states, (R, B, S, 2 H), and its ends, (R, B, 2 H)."""
    mask = batch.input_mask
    primitive = tap("word_embedding", embedding(batch.inputs, weights["primitive_embedding"]), mask)
    function = tap("word_embedding", embedding(batch.inputs, weights["function_embedding"]), mask)
    states, ends = encode(weights, function, batch.layout.reading, batch.input_lengths, mask)
    return primitive, tap("encoder_states", states, mask), ends
