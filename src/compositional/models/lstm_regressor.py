"""Recurrent network that reads a sequence of symbols and returns a number: embedding, LSTM, linear map of its last state.

The model of "Compositional Regularization: Unexpected Obstacles in Enhancing Neural Network Generalization" (ICBINB workshop,
ICLR 2025) with its variants: a simple recurrent network (Elman 1990) instead of the LSTM, attention over all states instead of
the last state, dropout. The paper does not specify its attention: here `pooling` weighs each state by a linear score of that
state, and `self_attention` is scaled dot-product attention of the last state to all states. The initialization is that of
PyTorch's modules, but with one bias per gate instead of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.sequence_regression import Batch
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear, padding_bias
from compositional.layers.lstm import lstm
from compositional.layers.recurrent import at_last, initialize_lstm, stacked
from compositional.layers.tap import dropout

KIND = "sequence_regression"
REPRESENTATIONS = ("word_embedding", "encoder_states", "penultimate")
PARAMETERS = {
    "cell": {"enum": ["lstm", "rnn"], "default": "lstm", "description": "rnn: h' = tanh(W x + U h + b)"},
    "attention": {
        "enum": ["none", "pooling", "self_attention"],
        "default": "none",
        "description": "what the output is computed from: the last state, or a weighted mean of all states",
    },
    "width": {
        "type": "integer",
        "minimum": 16,
        "multipleOf": 16,
        "default": 64,
        "description": "width of embeddings and states",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0,
        "description": "share of the units that is dropped in training before the output",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    width = parameters["width"]
    table = source.standard_normal((len(task["symbols"]), width), dtype=np.float32)
    weights = {"embedding": torch.from_numpy(table)}
    if parameters["cell"] == "lstm":
        weights |= initialize_lstm(source, width, width, "cell")
    else:
        weights |= initialize_linear(source, width, width, "cell.input")
        weights["cell.recurrent"] = initialize_linear(source, width, width, "recurrent")["recurrent.weight"]
    if parameters["attention"] == "pooling":
        weights |= initialize_linear(source, width, 1, "score")
    if parameters["attention"] == "self_attention":
        for name in ("query", "key", "value"):
            weights |= initialize_linear(source, width, width, name)
    return weights | initialize_linear(source, width, 1, "output")


def _states(parameters: dict, weights: Weights, words: Tensor) -> Tensor:
    """The state of the network after every symbol: (R, B, S, D) -> (R, B, S, H)."""
    runs, rows, length, width = words.shape
    by_step = words.transpose(1, 2).flatten(1, 2)
    hidden = words.new_zeros(runs, rows, width)
    if parameters["cell"] == "lstm":
        # The network also reads the padding after an input's end; states there are ignored.
        flat = lstm(by_step, hidden, hidden, stacked(weights, "cell"), (rows,) * length)
        return flat.unflatten(1, (length, rows)).transpose(1, 2).contiguous()
    states = []
    for inputs in linear(by_step, weights["cell.input.weight"], weights["cell.input.bias"]).split(rows, 1):
        hidden = torch.baddbmm(inputs, hidden, weights["cell.recurrent"]).tanh()
        states.append(hidden)
    return torch.stack(states, 2)


def _scores(kind: str, weights: Weights, states: Tensor, last: Tensor) -> Tensor:
    """Attention scores of the states before the softmax: (R, B, S)."""
    if kind == "pooling":
        return linear(states, weights["score.weight"], weights["score.bias"]).squeeze(-1)
    query = linear(last, weights["query.weight"], weights["query.bias"]).unsqueeze(2)
    keys = linear(states, weights["key.weight"], weights["key.bias"])
    return (query * keys).sum(-1) / math.sqrt(keys.shape[-1])


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Outputs (R, B, 1)."""
    mask, attention = batch.input_mask, parameters["attention"]
    words = tap("word_embedding", embedding(batch.inputs, weights["embedding"]), mask)
    states = tap("encoder_states", _states(parameters, weights, words), mask)
    read = at_last(states, batch.input_lengths)
    if attention != "none":
        looks = (_scores(attention, weights, states, read) + padding_bias(mask, states.dtype)).softmax(-1)
        if attention == "self_attention":
            states = linear(states, weights["value.weight"], weights["value.bias"])
        read = (looks.unsqueeze(-1) * states).sum(2)
    read = tap("penultimate", dropout(tap, read, parameters["dropout"]), None)
    return linear(read, weights["output.weight"], weights["output.bias"])
