"""The ordinary recurrent sequence-to-sequence model: bidirectional LSTM encoder, LSTM decoder with attention.

Widths follow Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), appendix A: embeddings 32, encoder
16 per direction, decoder 64. The decoder's initial state is the concatenation of the encoder's first and last states. Attention
("general" scores of Luong, Pham, Manning 2015) follows the decoder's LSTM and does not feed back into it, so all target
positions are computed in one pass under teacher forcing.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear
from compositional.layers.recurrent import (
    SMALLEST,
    at_last,
    attend,
    decode,
    encode,
    initialize_lstm,
    symbols_alike,
)
from compositional.layers.tap import dropout

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "embedding_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 32,
        "description": "width of input and output word embeddings",
    },
    "encoder_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 16,
        "description": "encoder units per direction; the decoder has four times as many",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0,
        "description": "share of the units of embeddings and of decoder states that is dropped in training",
    },
    "copying": {
        "type": "boolean",
        "default": False,
        "description": "whether an output symbol can also be copied from the input, if an input word is spelled like it",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    words, actions = len(task["source_words"]), len(task["target_words"])
    embedding_width, width = parameters["embedding_width"], parameters["encoder_width"]
    weights = {
        "input_embedding": randomness.uniform_tensor(source, (words, embedding_width), -1, 1),
        "output_embedding": randomness.uniform_tensor(source, (actions, embedding_width), -1, 1),
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, embedding_width, width, f"encoder.{direction}")
    weights |= initialize_lstm(source, embedding_width, 4 * width, "decoder")
    weights |= initialize_linear(source, 2 * width, 4 * width, "key")
    weights |= initialize_linear(source, 6 * width, actions, "output")
    if parameters["copying"]:
        weights |= initialize_linear(source, 2 * width, 4 * width, "copied_key")
        weights |= initialize_linear(source, 6 * width, 1, "copied")
    return weights


def buffers(parameters: dict, task: dict, seed: int) -> Weights:
    """With copying: which symbol is spelled like each input word."""
    return {"alike": symbols_alike(task)} if parameters["copying"] else {}


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Logits (R, N, actions) in chunk order, under teacher forcing with `batch.previous`.

    With copying they are log probabilities of a mixture of two distributions: symbols that the decoder generates, and symbols
    copied from the words to which a second attention attends (See, Liu and Manning, ACL 2017, equation 9). Attention to words
    without a symbol is dropped, and the loss normalizes the rest to 1. Unlike in the paper, such attention costs nothing.
    """
    batch, rate = batch.last(), parameters["dropout"]
    layout = batch.layout
    states = batch.once("encoded", lambda: _encoded(weights, batch, tap, rate))
    hidden = torch.cat([states[:, :, 0], at_last(states, batch.input_lengths)], -1)
    previous = dropout(tap, embedding(batch.previous[:, layout.to_steps], weights["output_embedding"]), rate)
    queries = decode(weights, previous, hidden, layout, batch.past)
    keys = batch.once("keys", lambda: linear(states, weights["key.weight"], weights["key.bias"]))
    context = attend(queries, keys, states, batch.input_mask, layout)
    decided = dropout(tap, torch.cat([queries, context], -1), rate)
    logits = linear(decided, weights["output.weight"], weights["output.bias"])
    if not parameters["copying"]:
        return logits
    keys = batch.once("copied_keys", lambda: linear(states, weights["copied_key.weight"], weights["copied_key.bias"]))
    written_alike = batch.once("alike", lambda: embedding(batch.inputs, weights["alike"]))
    copied = attend(queries, keys, written_alike, batch.input_mask, layout)[..., : logits.shape[-1]]
    share = linear(decided, weights["copied.weight"], weights["copied.bias"]).sigmoid()
    return ((1 - share) * logits.softmax(-1) + share * copied).clamp_min(SMALLEST).log()


def _encoded(weights: Weights, batch: Batch, tap, rate: float) -> Tensor:
    """The encoder's states (R, B, S, H)."""
    words = tap("word_embedding", embedding(batch.inputs, weights["input_embedding"]), batch.input_mask)
    states, _ = encode(weights, dropout(tap, words, rate), batch.layout.reading, batch.input_lengths, batch.input_mask)
    return tap("encoder_states", states, batch.input_mask)
