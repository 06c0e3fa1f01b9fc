"""Syntactic attention (Russin, Jo, O'Reilly, Bengio, "Compositional generalization in a deep seq2seq model by separating syntax
and semantics", 2019): *where* to attend depends only on a word's surroundings, *what* to write only on the word itself.

The semantics of a word is its embedding, without context. Its syntax comes from two bidirectional LSTMs. From the first, each
word gets the forward state before it and the backward state after it, so that the syntax of a command of one word does not depend
on that word. The second LSTM reads these states, with a learned vector instead of those of the end symbol. Its last states
determine where the decoder attends first. The input of the decoder's LSTM is the attended syntax; it sees no output words. The
same attention weights read the semantics, and a linear map of these gives the output. The original trains on single examples;
here the gradient is the mean over a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear, padding_bias, reorder
from compositional.layers.recurrent import cell_step, encode, initialize_lstm, look, looked_at
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
        "description": "encoder units per direction; its first layer and the embedding have half as many, the decoder has twice "
        "as many",
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
    """Shift the states of both directions (R, B, S, 2 H) by one word, so that the states at a word have not seen that word.

    Zeros enter at both ends. If an input ends before S, the backward part at its last position is meaningless.
    """
    ahead, back = states.split(width, -1)
    return torch.cat([functional.pad(ahead, (0, 0, 1, 0))[:, :, :-1], functional.pad(back, (0, 0, 0, 1))[:, :, 1:]], -1)


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order; teacher forcing makes no difference here."""
    batch, rate = batch.last(), parameters["dropout"]
    mask, layout = batch.input_mask, batch.layout
    semantics, syntax, ends = batch.once("encoded", lambda: _encoded(parameters, weights, batch, tap))
    blocked = padding_bias(mask, syntax.dtype).unsqueeze(2)
    # The input part of the decoder's gates for every word. The map is linear, so attention can be applied to its results.
    gates_of = batch.once("gates", lambda: linear(syntax, weights["decoder.input"]))
    query = linear(ends, weights["start.weight"], weights["start.bias"]).relu()
    zeros = torch.zeros_like(query)
    query, hidden, cell = batch.resumed(query=query, hidden=zeros, cell=zeros)
    bias, recurrent = weights["decoder.bias"].unsqueeze(1), weights["decoder.recurrent"]
    looks: list[Tensor] = []
    for size in layout.writing.sizes:
        # Slice only when some rows have ended: the gradient of a slice is as large as the tensor it is cut from.
        if not looks or size < query.shape[1]:
            query, hidden, cell, syntax, blocked, gates_of = (
                of[:, :size] for of in (query, hidden, cell, syntax, blocked, gates_of)
            )
            key, block, gate = (of.flatten(0, 1) for of in (syntax, blocked, gates_of))
        looks.append(look(query, key, block))
        attended = torch.bmm(looks[-1], gate).view(*hidden.shape[:2], -1)
        hidden, cell = cell_step(torch.baddbmm(bias, hidden, recurrent) + attended, cell)
        query = hidden
    batch.keep(query=query, hidden=hidden, cell=cell)
    looks = [of.unflatten(0, (len(mask), -1)).squeeze(2) for of in looks]
    where = reorder(torch.cat(looks, 1), layout.to_chunks, layout.to_steps)
    semantics = dropout(tap, semantics, rate)
    return linear(looked_at(where, semantics, layout), weights["output.weight"], weights["output.bias"])


def _encoded(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> tuple[Tensor, Tensor, Tensor]:
    """Meaning (R, B, S, E) and syntax (R, B, S, 2 H) of the input words, and the encoder's ends, (R, B, 2 H)."""
    mask, reading, lengths = batch.input_mask, batch.layout.reading, batch.input_lengths
    semantics = tap("word_embedding", embedding(batch.inputs, weights["semantic_embedding"]), mask)
    words = tap("word_embedding", embedding(batch.inputs, weights["syntactic_embedding"]), mask)
    states, _ = encode(weights, dropout(tap, words, parameters["dropout"]), reading, lengths, mask, "surroundings")
    context = surroundings(states, parameters["width"] // 2)
    at_end = torch.arange(mask.shape[2], device=mask.device) == lengths.unsqueeze(2) - 1
    context = torch.where(at_end.unsqueeze(3), weights["end"][:, None, None], context)
    syntax, ends = encode(weights, context, reading, lengths, mask)
    return semantics, tap("encoder_states", syntax, mask), ends
