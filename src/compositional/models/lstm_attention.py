"""The ordinary recurrent sequence-to-sequence model: bidirectional LSTM encoder, LSTM decoder with attention.

Widths after Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), appendix A: embeddings 32,
encoder 16 per direction, decoder 64, whose initial state is the encoder's first and last states side by side. Attention
("general" scores of Luong, Pham, Manning 2015) follows the decoder's LSTM and does not feed back into it, so all target
positions are computed in one pass under teacher forcing.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from compositional import packed, randomness
from compositional.lstm import lstm
from compositional.recurrent import Weights, attend, encode, initialize_linear, initialize_lstm, stacked
from compositional.sequences import Batch

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "encoder_states")
PARAMETERS = {
    "embedding_width": {
        "type": "integer",
        "minimum": 1,
        "default": 32,
        "description": "width of input and output word embeddings",
    },
    "encoder_width": {
        "type": "integer",
        "minimum": 1,
        "default": 16,
        "description": "encoder units per direction; the decoder has four times as many",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    words, actions = len(task["source_words"]), len(task["target_words"])
    embedding, width = parameters["embedding_width"], parameters["encoder_width"]
    weights = {
        "input_embedding": randomness.uniform_tensor(source, (words, embedding), -1, 1),
        "output_embedding": randomness.uniform_tensor(source, (actions, embedding), -1, 1),
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, embedding, width, f"encoder.{direction}")
    weights |= initialize_lstm(source, embedding, 4 * width, "decoder")
    weights |= initialize_linear(source, 2 * width, 4 * width, "key")
    return weights | initialize_linear(source, 6 * width, actions, "output")


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Logits (R, N, actions) in chunk order, under teacher forcing with `batch.previous`."""
    layout = batch.layout
    words = tap("word_embedding", packed.embedding(batch.inputs, weights["input_embedding"]), batch.input_mask)
    states, _ = encode(weights, words, batch)
    states = tap("encoder_states", states, batch.input_mask)
    last = (batch.input_lengths - 1)[..., None, None].expand(-1, -1, 1, states.shape[-1])
    hidden = torch.cat([states[:, :, 0], states.gather(2, last).squeeze(2)], -1)
    to_chunks, to_steps = layout.to_chunks.to(hidden.device), layout.to_steps.to(hidden.device)
    previous = packed.embedding(batch.previous[:, to_steps], weights["output_embedding"])
    decoded = lstm(previous, hidden, torch.zeros_like(hidden), stacked(weights, "decoder"), layout.sizes)
    queries = packed.reorder(decoded, to_chunks, to_steps)
    keys = packed.linear(states, weights["key.weight"], weights["key.bias"])
    context = attend(queries, keys, states, batch.input_mask, layout)
    return packed.linear(torch.cat([queries, context], -1), weights["output.weight"], weights["output.bias"])
