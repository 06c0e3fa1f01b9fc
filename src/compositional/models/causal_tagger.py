"""A decoder-only transformer that writes a symbol at each word and never reads what it wrote.

It follows the repository of An and Du (arXiv 2601.18858, see datasets.repeated_verbs): sinusoidal positions, normalization after
each block and once more before the output, dropout in attention and on the output of each block, but not within the feed-forward
block, and PyTorch's own initialization. `operators` adds a small network for each word named, which the output does not use: the
term `modifier_homomorphism` trains it together with the network.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from compositional.layers.attention import sinusoids

KIND = "tagging"
REPRESENTATIONS = {"word_embedding": "words", "middle_states": "middle", "last_states": "last"}
PARAMETERS = {
    "layers": {
        "type": "integer",
        "minimum": 2,
        "default": 4,
        "description": "layers; `middle_states` are those after half of them",
    },
    "width": {"type": "integer", "minimum": 2, "multipleOf": 2, "default": 128, "description": "width of all states"},
    "heads": {"type": "integer", "minimum": 1, "default": 4, "description": "heads of every attention; they divide `width`"},
    "feedforward_width": {"type": "integer", "minimum": 1, "default": 256, "description": "hidden units of every layer"},
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "share of attention weights and of the units of block outputs that is dropped in training",
    },
    "operators": {
        "type": "array",
        "items": {"type": "string"},
        "uniqueItems": True,
        "default": [],
        "description": "words with an operator, a network that maps the states of two words to one; a term of the loss trains it",
    },
}


class Network(nn.Module):
    """The network of one run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        width = parameters["width"]
        self.words = nn.Embedding(len(task["source_words"]), width)
        own = width, parameters["heads"], parameters["feedforward_width"], parameters["dropout"], "gelu"
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(*own, batch_first=True) for _ in range(parameters["layers"])])
        for layer in self.layers:
            layer.dropout = nn.Identity()  # the dropout within the feed-forward block
        self.middle, self.last = nn.Identity(), nn.Identity()
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, len(task["target_words"]))
        # Operators are drawn last: the rest of the network starts from the same numbers with and without them.
        self.operators = nn.ModuleDict(
            {
                word: nn.Sequential(nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
                for word in parameters["operators"]
            }
        )

    def forward(self, batch) -> Tensor:
        """Logits (B, S, symbols); batch: `kinds.tagging.Single`. Position t sees no later word, so padding needs no mask."""
        states = self.words(batch.inputs)
        length, width = states.shape[1:]
        states = states + sinusoids(torch.arange(length, device=states.device, dtype=states.dtype), width)
        later = torch.ones(length, length, dtype=torch.bool, device=states.device).triu(1)
        for place, layer in enumerate(self.layers, start=1):
            states = layer(states, src_mask=later, is_causal=True)
            if place == len(self.layers) // 2:
                states = self.middle(states)
        return self.output(self.norm(self.last(states)))
