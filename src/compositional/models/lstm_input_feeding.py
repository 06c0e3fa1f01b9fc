"""The recurrent semantic parser of Andreas, "Good-Enough Compositional Data Augmentation" (ACL 2020).

The decision of a decoder step, its state combined with the attended states, is an input of the next step (Luong, Pham and
Manning 2015, section 3.3). A symbol that occurs in the input can only be copied: "copy" is one of the choices of a step, and the
attention then selects the word. As in the original, the attention is supervised at copied symbols. The original has two losses,
each a mean over its own symbols. Here both choices form one distribution, and the gradient of the attention at copied symbols is
multiplied by `copying_weight`, the number of symbols per copied one. Words that are not symbols stand for padding, which is never
right, so attending to them is penalized. A regularizer that reads the outputs of all symbols, such as `label_smoothing`, has its
gradient multiplied, too.

As in the original, encoder states are projected, the decoder starts with the sum of both directions' last states, embeddings
start standard normal, and dropout applies to everything that enters or leaves the decoder's LSTM. Unlike in the original, the
decoder's cell state starts with zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import PAD
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear, padding_bias, reorder
from compositional.layers.input_feeding import input_feeding
from compositional.layers.recurrent import (
    SMALLEST,
    encode,
    initialize_lstm,
    looked_at,
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
        "default": 64,
        "description": "width of input and output word embeddings",
    },
    "width": {
        "type": "integer",
        "minimum": 4,
        "multipleOf": 4,
        "default": 512,
        "description": "units of the encoder per direction, and of the decoder",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the units of embeddings and decisions that is dropped in training",
    },
    "copying_weight": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 40,
        "description": "factor on the gradient of the attention at copied symbols; GeoQuery copies one symbol in 41",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run. The last column of the output is the choice to copy."""
    words, symbols = len(task["source_words"]), len(task["target_words"])
    embedding_width, width = parameters["embedding_width"], parameters["width"]
    weights = {
        f"{side}_embedding": torch.from_numpy(source.standard_normal((size, embedding_width), dtype=np.float32))
        for side, size in (("input", words), ("output", symbols))
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, embedding_width, width, f"encoder.{direction}")
    weights |= initialize_linear(source, 2 * width, width, "annotation")
    weights |= initialize_linear(source, width, width, "key")
    weights |= initialize_lstm(source, embedding_width + width, width, "decoder")
    weights |= initialize_linear(source, 2 * width, width, "combined")
    return weights | initialize_linear(source, width, symbols + 1, "output")


def buffers(parameters: dict, task: dict, seed: int) -> Weights:
    """Which symbol is spelled like each input word; words without such a symbol stand for padding."""
    alike = symbols_alike(task)
    alike[alike.sum(1) == 0, PAD] = 1
    return {"alike": alike}


def alike_of(weights: Weights, batch: Batch) -> Tensor:
    """Which symbol is spelled like each input word, (R, B, S, symbols), padded as by `symbols_alike`; zeros at padding."""
    return batch.once("alike", lambda: embedding(batch.inputs, weights["alike"]) * batch.input_mask.unsqueeze(-1))


def gates_of(weights: Weights, previous: Tensor) -> tuple[Tensor, Tensor]:
    """What previous symbols (R, N, E) and the bias add to the decoder's gates, (R, N, 4 H), and weights (R, 2 H, 4 H) of what
    is known only step by step: the last decision and the hidden state."""
    from_symbols, from_decision = weights["decoder.input"].tensor_split([previous.shape[2]], 1)
    return linear(previous, from_symbols, weights["decoder.bias"]), torch.cat([from_decision, weights["decoder.recurrent"]], 1)


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Log probabilities (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`."""
    batch, rate = batch.last(), parameters["dropout"]
    layout = batch.layout
    ends, annotations, keys = batch.once("encoded", lambda: _encoded(weights, batch, tap, rate))
    blocked = padding_bias(batch.input_mask, keys.dtype).unsqueeze(2)

    # Known for all steps in advance, in step order: the part of the gates that comes from previous symbols, and dropout's masks.
    previous = dropout(tap, embedding(batch.previous[:, layout.to_steps], weights["output_embedding"]), rate)
    gates_of_symbols, carried = gates_of(weights, previous)
    everything = previous.new_ones(*previous.shape[:2], ends.shape[2] // 2)
    kept_in, kept_out = dropout(tap, everything, rate), dropout(tap, everything, rate)

    zeros = torch.zeros_like(ends[..., : ends.shape[2] // 2])
    state = batch.resumed(hidden=ends.unflatten(2, (2, -1)).sum(2), cell=zeros, decision=zeros)
    combined = weights["combined.weight"], weights["combined.bias"]
    decisions, looks, (hidden, cell, decision) = input_feeding(
        gates_of_symbols, state, carried, keys, annotations, blocked, combined, (kept_in, kept_out), layout.writing
    )
    batch.keep(hidden=hidden, cell=cell, decision=decision)
    decided, looked = (reorder(of, layout.to_chunks, layout.to_steps) for of in (decisions, looks))
    logits = linear(decided, weights["output.weight"], weights["output.bias"])

    symbols = logits.shape[2] - 1
    alike = alike_of(weights, batch)
    in_input = (alike.amax(2) > 0)[:, layout.positions[:, 0], :symbols]
    writing, copying = logits.tensor_split([symbols], 2)
    both = torch.cat([writing.masked_fill(in_input, float("-inf")), copying], 2).log_softmax(2)
    where = looked_at(looked, alike, layout)[..., :symbols].clamp_min(SMALLEST).log()
    where = where.detach() + parameters["copying_weight"] * (where - where.detach())  # same value, larger gradient
    return torch.where(in_input, where + both[..., symbols:], both[..., :symbols])


def _encoded(weights: Weights, batch: Batch, tap: Callable, rate: float) -> tuple[Tensor, Tensor, Tensor]:
    """The encoder's ends, (R, B, 2 H), and annotations and keys of the input words, (R, B, S, H)."""
    words = tap("word_embedding", embedding(batch.inputs, weights["input_embedding"]), batch.input_mask)
    states, ends = encode(weights, dropout(tap, words, rate), batch.layout.reading, batch.input_lengths, batch.input_mask)
    states = tap("encoder_states", states, batch.input_mask)
    annotations = linear(states, weights["annotation.weight"], weights["annotation.bias"])
    return ends, annotations, linear(annotations, weights["key.weight"], weights["key.bias"])
