"""CGPS (Li, Zhao, Wang, Hestness: "Compositional Generalization for Primitive Substitutions", EMNLP 2019), with the attention of
the authors' repository (yli1/CGPS, commit f25120b).

There are two streams, as in `primitive_attention`: *what* an output word is comes from one embedding of the input words, *where*
to attend from another, and the decoder sees no output words. Unlike in `primitive_attention`, where to attend is decided in two
stages. First the decoder attends to the encoder's states (Luong, Pham and Manning 2015, scores by projected keys). The result is
an input of the next step (input feeding), and gives one score for each *position* of the input, whatever the word there. As in
the authors' code, the biases of forget gates start higher by 1 and the layers of attention have no bias. Unlike in their code,
the decoder's cell state starts with zeros instead of the encoder's last state, and weights other than embeddings have PyTorch's
usual initialization.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.sequence import Batch
from compositional.layers import Weights
from compositional.layers.functional import aligned, initialize_linear, linear, padding_bias, reorder
from compositional.layers.recurrent import cell_step, initialize_lstm, look, looked_at
from compositional.models import primitive_attention

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = primitive_attention.PARAMETERS | {
    "positions": {
        "type": "integer",
        "minimum": 2,
        "default": 16,
        "description": "input positions that can be attended to: at least the words of the longest input, and one for its end",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    weights, width = primitive_attention.initialize_encoder(parameters, task, source), parameters["encoder_width"]
    # The decoder has two inputs of the same width: the attended states and its own state.
    weights |= initialize_lstm(source, 2 * width, 2 * width, "decoder")
    for name in ("encoder.forward", "encoder.backward", "decoder"):
        _, forget, _, _ = weights[f"{name}.bias"].chunk(4)
        forget += 1
    weights["key.weight"] = initialize_linear(source, 2 * width, 2 * width, "key")["key.weight"]
    weights["attended.weight"] = initialize_linear(source, 4 * width, 2 * width, "attended")["attended.weight"]
    weights |= initialize_linear(source, 2 * width, aligned(parameters["positions"]), "position")
    return weights | initialize_linear(source, parameters["primitive_width"], len(task["target_words"]), "output")


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, actions) in chunk order; teacher forcing makes no difference here.

    Raises:
        ValueError: an input is longer than `positions`.
    """
    batch = batch.last()
    mask, layout = batch.input_mask, batch.layout
    if (longest := mask.shape[2]) > parameters["positions"]:
        raise ValueError(f"cgps: positions: {parameters['positions']} is too few: inputs have up to {longest} with their end")
    primitive, states, hidden = batch.once("encoded", lambda: primitive_attention.encode_both(weights, batch, tap))
    keys = batch.once("keys", lambda: linear(states, weights["key.weight"]))
    blocked = padding_bias(mask, states.dtype).unsqueeze(2)

    carried = torch.cat([weights["decoder.input"], weights["decoder.recurrent"]], 1)
    bias = weights["decoder.bias"].unsqueeze(1)
    zeros = torch.zeros_like(hidden)
    hidden, cell, attended = batch.resumed(hidden=hidden, cell=zeros, attended=zeros)
    found: list[Tensor] = []
    for size in layout.writing.sizes:
        if not found or size < hidden.shape[1]:
            hidden, cell, attended, keys, states, blocked = (
                of[:, :size] for of in (hidden, cell, attended, keys, states, blocked)
            )
            key, value, block = (of.flatten(0, 1) for of in (keys, states, blocked))
        hidden, cell = cell_step(torch.baddbmm(bias, torch.cat([attended, hidden], 2), carried), cell)
        context = torch.bmm(look(hidden, key, block), value).view_as(hidden)
        attended = linear(torch.cat([hidden, context], 2), weights["attended.weight"])
        found.append(attended)
    batch.keep(hidden=hidden, cell=cell, attended=attended)
    decided = reorder(torch.cat(found, 1), layout.to_chunks, layout.to_steps)
    scores = linear(decided, weights["position.weight"], weights["position.bias"])[..., :longest]
    shares = (scores + padding_bias(mask, scores.dtype)[:, layout.positions[:, 0]]).softmax(2)
    return linear(looked_at(shares, primitive, layout), weights["output.weight"], weights["output.bias"])
