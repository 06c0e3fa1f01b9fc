"""Syntactic attention (Russin, Jo, O'Reilly, Bengio, "Compositional generalization in a deep seq2seq model by separating syntax
and semantics", 2019): *where* to look is found from a word's surroundings alone, *what* to write from the word alone.

Semantics of a word is its embedding, without context. Its syntax comes from two bidirectional LSTMs: of the first, at each word
the forward state before it and the backward state after it, so that a lone word's syntax is that of any lone word; the second
reads these, with a learned vector instead of the end symbol's. Where the second ends says where to look first. The decoder's
LSTM is driven by the syntax it looks at and sees no output words; the same look reads the semantics, from which a linear map
gives the output. The original trains on single examples; here the gradient is the mean of a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, linear, padding_bias, reorder
from compositional.layers.recurrent import cell_step, encode, initialize_linear, initialize_lstm, look, looked_at
from compositional.layers.tap import dropout

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "semantic_width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 120,
        "description": "width of the semantic embedding",
    },
    "width": {
        "type": "integer",
        "minimum": 8,
        "multipleOf": 8,
        "default": 200,
        "description": "encoder units per direction; half as many in its first layer and the embedding, twice in the decoder",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the units of embeddings that is dropped in training",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run. Embeddings are standard normal, as in the original."""
    words, semantic, width = len(task["source_words"]), parameters["semantic_width"], parameters["width"]
    half, double = width // 2, 2 * width
    weights = {
        "semantic_embedding": torch.from_numpy(source.standard_normal((words, semantic), dtype=np.float32)),
        "syntactic_embedding": torch.from_numpy(source.standard_normal((words, half), dtype=np.float32)),
        "end": torch.from_numpy(source.standard_normal(width, dtype=np.float32)),
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, half, half, f"surroundings.{direction}")
        weights |= initialize_lstm(source, width, width, f"encoder.{direction}")
    weights |= initialize_lstm(source, double, double, "decoder")
    weights |= initialize_linear(source, double, double, "start")
    return weights | initialize_linear(source, semantic, len(task["target_words"]), "output")


def surroundings(states: Tensor, width: int) -> Tensor:
    """States of both directions side by side (R, B, S, 2 H), each moved on by a word: what stands at a word has not seen it.

    Zeros come in from either end. Of an input that ends before S, the last position's backward part means nothing.
    """
    ahead, back = states.split(width, -1)
    return torch.cat([functional.pad(ahead, (0, 0, 1, 0))[:, :, :-1], functional.pad(back, (0, 0, 0, 1))[:, :, 1:]], -1)


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order; teacher forcing or not makes no difference here."""
    mask, layout, rate = batch.input_mask, batch.layout, parameters["dropout"]
    semantics = tap("word_embedding", embedding(batch.inputs, weights["semantic_embedding"]), mask)
    words = tap("word_embedding", embedding(batch.inputs, weights["syntactic_embedding"]), mask)
    reading, lengths = batch.layout.reading, batch.input_lengths
    states, _ = encode(weights, dropout(tap, words, rate), reading, lengths, mask, "surroundings")
    context = surroundings(states, parameters["width"] // 2)
    at_end = torch.arange(mask.shape[2], device=mask.device) == lengths.unsqueeze(2) - 1
    context = torch.where(at_end.unsqueeze(3), weights["end"][:, None, None], context)
    syntax, ends = encode(weights, context, reading, lengths, mask)
    syntax = tap("encoder_states", syntax, mask)
    blocked = padding_bias(mask, syntax.dtype).unsqueeze(2)
    # What the syntax of every word adds to the decoder's gates: attended gates are gates of the attended syntax.
    gates_of = linear(syntax, weights["decoder.input"])
    query = linear(ends, weights["start.weight"], weights["start.bias"]).relu()
    hidden = cell = torch.zeros_like(query)
    bias, recurrent = weights["decoder.bias"].unsqueeze(1), weights["decoder.recurrent"]
    looks: list[Tensor] = []
    for size in layout.writing.sizes:
        # Only when some rows have ended: the gradient of a slice is as large as what it is cut from.
        if not looks or size < query.shape[1]:
            query, hidden, cell, syntax, blocked, gates_of = (
                of[:, :size] for of in (query, hidden, cell, syntax, blocked, gates_of)
            )
            key, block, gate = (of.flatten(0, 1) for of in (syntax, blocked, gates_of))
        looks.append(look(query, key, block))
        attended = torch.bmm(looks[-1], gate).view(*hidden.shape[:2], -1)
        hidden, cell = cell_step(torch.baddbmm(bias, hidden, recurrent) + attended, cell)
        query = hidden
    looks = [of.unflatten(0, (len(mask), -1)).squeeze(2) for of in looks]
    where = reorder(torch.cat(looks, 1), layout.to_chunks, layout.to_steps)
    semantics = dropout(tap, semantics, rate)
    return linear(looked_at(where, semantics, layout), weights["output.weight"], weights["output.bias"])
