"""PyTorch's own transformer, `nn.Transformer` (Vaswani et al., NeurIPS 2017), with sinusoidal positions, as a `Network`.

`models.transformer` has relative positions instead and computes many runs at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

KIND = "sequence"
REPRESENTATIONS = {"word_embedding": "words", "encoder_states": "transformer.encoder"}
PARAMETERS = {
    "encoder_layers": {"type": "integer", "minimum": 1, "default": 2, "description": "layers of the encoder"},
    "decoder_layers": {"type": "integer", "minimum": 1, "default": 2, "description": "layers of the decoder"},
    "width": {"type": "integer", "minimum": 2, "multipleOf": 2, "default": 128, "description": "width of all states"},
    "heads": {"type": "integer", "minimum": 1, "default": 8, "description": "heads of every attention; they divide `width`"},
    "feedforward_width": {"type": "integer", "minimum": 1, "default": 256, "description": "hidden units of every layer"},
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "share of units dropped in training, as nn.Transformer drops them",
    },
}


def positions(length: int, like: Tensor) -> Tensor:
    """Sines and cosines of wavelengths from 2 pi to 20,000 pi, (length, D), for embeddings (..., D)."""
    width = like.shape[-1]
    place = torch.arange(length, device=like.device).unsqueeze(1)
    angles = place * torch.exp(torch.arange(0, width, 2, device=like.device) * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Network(nn.Module):
    """The network of one run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        width, symbols = parameters["width"], len(task["target_words"])
        self.words, self.symbols = nn.Embedding(len(task["source_words"]), width), nn.Embedding(symbols, width)
        self.transformer = nn.Transformer(
            width,
            parameters["heads"],
            parameters["encoder_layers"],
            parameters["decoder_layers"],
            parameters["feedforward_width"],
            parameters["dropout"],
            batch_first=True,
        )
        self.output = nn.Linear(width, symbols)

    def forward(self, batch) -> Tensor:
        """Logits (B, T, symbols) under teacher forcing; batch: `kinds.sequence.Single`."""
        words, past = self.words(batch.inputs), self.symbols(batch.previous)
        steps = past.shape[1]
        decoded = self.transformer(
            words + positions(words.shape[1], words),
            past + positions(steps, past),
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool, device=past.device).triu(1),
            src_key_padding_mask=~batch.input_mask,
            memory_key_padding_mask=~batch.input_mask,
        )
        return self.output(decoded)
