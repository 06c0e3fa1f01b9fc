"""Encoder-decoder transformer (Vaswani et al., NeurIPS 2017) with relative positions and normalization after each block.

It follows Csordas, Irie, Schmidhuber, "The Devil is in the Detail" (EMNLP 2021), and their code where the paper gives no details.
By default there are no absolute positions, but a start word before every input, from which distances can be seen. Embeddings have
Glorot's initialization and are not scaled. The columns of the output map are the embeddings of the symbols. Words that occur on
both sides have two embeddings.

With `positions: absolute`, sinusoids of the position are added to the embeddings and scaled to their size ("scaledinit" in the
authors' code).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.layers import Weights, attention
from compositional.layers.attention import normalize, project
from compositional.layers.functional import embedding, spaced_linear
from compositional.layers.ragged import Chunks
from compositional.layers.tap import dropout

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "encoder_layers": {"type": "integer", "minimum": 1, "default": 3, "description": "layers of the encoder"},
    "decoder_layers": {"type": "integer", "minimum": 1, "default": 3, "description": "layers of the decoder"},
    "width": {"type": "integer", "minimum": 2, "default": 128, "description": "width of all states; a multiple of `heads`"},
    "heads": {"type": "integer", "minimum": 1, "default": 8, "description": "heads of every attention"},
    "feedforward_factor": {
        "type": "integer",
        "minimum": 1,
        "default": 2,
        "description": "hidden units of a feed-forward block, in multiples of `width`",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the units of block outputs and of hidden layers that is dropped in training; with absolute "
        "positions, also of the embeddings",
    },
    "positions": {
        "enum": ["relative", "absolute"],
        "default": "relative",
        "description": "relative: attention depends on distances; absolute: sinusoids of positions are added to embeddings",
    },
}


def _kaiming(source: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Kaiming's normal initialization of the rows of a table."""
    return torch.from_numpy(source.standard_normal(shape, dtype=np.float32)) * math.sqrt(2 / shape[-1])


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run.

    Raises:
        ValueError: the width is odd or not a multiple of the number of heads.
    """
    width, heads = parameters["width"], parameters["heads"]
    if width % heads or width % 2:
        raise ValueError(f"transformer: width {width} must be even and a multiple of the {heads} heads")
    weights: Weights = {}
    relative = parameters["positions"] == "relative"
    for side, words in (("input", task["source_words"]), ("output", task["target_words"])):
        shape = len(words), width
        weights[f"{side}_embedding"] = attention.glorot(source, *shape) if relative else _kaiming(source, shape)
    bound = math.sqrt(6 / (len(task["source_words"]) + width))  # as if it were one more row of the table
    start = randomness.uniform_tensor(source, (width,), -bound, bound) if relative else _kaiming(source, (width,))
    weights["start"] = start
    hidden = parameters["feedforward_factor"] * width
    for side in ("encoder", "decoder"):
        for layer in range(parameters[f"{side}_layers"]):
            name = f"{side}.{layer}"
            for block in ("past", "across") if side == "decoder" else ("inputs",):
                own = relative and block != "across"
                weights |= attention.initialize_attention(source, width, heads, f"{name}.{block}", own)
                weights |= attention.initialize_normalization(width, f"{name}.{block}.norm")
            weights |= attention.initialize_projection(source, width, hidden, f"{name}.feedforward.hidden", gain=math.sqrt(2))
            weights |= attention.initialize_projection(source, hidden, width, f"{name}.feedforward.output")
            weights |= attention.initialize_normalization(width, f"{name}.feedforward.norm")
    weights["output.bias"] = torch.zeros(len(task["target_words"]))
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`; (R, B, symbols) while decoding."""
    encoded = batch.once("encoded", lambda: _encoded(parameters, weights, batch, tap))
    return decode(parameters, weights, encoded, batch, tap)


def _encoded(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> attention.Encoded:
    """The inputs of a batch, with the words and the encoder's states as the tap returns them."""
    words = tap("word_embedding", embedding(batch.inputs, weights["input_embedding"]), batch.input_mask)
    encoded = encode(parameters, weights, words, batch.input_mask, batch.layout.input_chunks(1), tap)
    states = encoded.chunks.rectangle(encoded.states, words.shape[2] + 1)
    shown = states[:, :, 1:]
    if (changed := tap("encoder_states", shown, batch.input_mask)) is not shown:
        states = torch.cat([states[:, :, :1], changed], 2)
        encoded = replace(encoded, states=encoded.chunks.packed(states))
    return encoded


def _placed(parameters: dict, states: Tensor, places: Tensor, tap: Callable) -> Tensor:
    """Embeddings (R, n, D) plus their absolute positions (n,) if these are configured."""
    if parameters["positions"] == "relative":
        return states
    width = states.shape[-1]
    return dropout(tap, states + attention.sinusoids(places, width) / math.sqrt(width), parameters["dropout"])


def _blocks(parameters: dict, weights: Weights, tap: Callable) -> tuple[Callable, Callable]:
    """Functions of a block's name: the end of any block (states and their change -> states), and the feed-forward block."""
    rate = parameters["dropout"]

    def add(name: str, values: Tensor, change: Tensor) -> Tensor:
        return normalize(weights, f"{name}.norm", values + dropout(tap, change, rate))

    def feed_forward(name: str, values: Tensor) -> Tensor:
        hidden = dropout(tap, project(weights, f"{name}.hidden", values).relu(), rate)
        return add(name, values, project(weights, f"{name}.output", hidden))

    return add, feed_forward


def encode(parameters: dict, weights: Weights, words: Tensor, mask: Tensor, chunks: Chunks, tap: Callable) -> attention.Encoded:
    """Encode a start word and words (R, B, S, D) with their mask (R, B, S), row by row, in the given chunks of 1 + S positions.

    Chunks that are shorter than 1 + S leave out padding.
    """
    add, feed_forward = _blocks(parameters, weights, tap)
    start = weights["start"][:, None, None, :].expand(-1, words.shape[1], -1, -1)
    states, mask = torch.cat([start, words], 2), functional.pad(mask, (1, 0), value=True)
    places = torch.arange(states.shape[2], device=states.device, dtype=states.dtype).expand(1, states.shape[1], -1)
    read = attention.Encoded.of(states, mask, chunks)
    states = _placed(parameters, read.states, chunks.packed(places).squeeze(0), tap)
    for layer in range(parameters["encoder_layers"]):
        name = f"encoder.{layer}.inputs"
        change = attention.attend_own(weights, name, states, chunks, read.masks, parameters["heads"])
        states = feed_forward(f"encoder.{layer}.feedforward", add(name, states, change))
    return replace(read, states=states)


def decode(parameters: dict, weights: Weights, encoded: attention.Encoded, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order, or (R, B, symbols) while decoding."""
    add, feed_forward = _blocks(parameters, weights, tap)
    heads, places = parameters["heads"], batch.layout.positions[:, 1]
    if batch.past is not None:
        places = places.max().expand(batch.inputs.shape[1])
    batch = batch.last()
    states = embedding(batch.previous, weights["output_embedding"])
    states = _placed(parameters, states, places.to(states.dtype), tap)
    for layer in range(parameters["decoder_layers"]):
        name = f"decoder.{layer}.past"
        if batch.past is None:
            change = attention.attend_own(weights, name, states, batch.layout.target_chunks, None, heads)
        else:
            change = attention.attend_past(weights, name, states, batch.past, heads)
        states = add(name, states, change)
        name = f"decoder.{layer}.across"
        change = attention.attend_across(weights, name, states, encoded, batch.layout, heads, batch.once)
        states = add(name, states, change)
        states = feed_forward(f"decoder.{layer}.feedforward", states)
    return spaced_linear(batch.wanted(states), weights["output_embedding"].mT, weights["output.bias"])
