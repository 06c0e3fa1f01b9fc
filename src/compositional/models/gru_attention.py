"""A recurrent sequence-to-sequence model in standard PyTorch: bidirectional GRU encoder, GRU decoder with attention.

Cho et al. (EMNLP 2014) with the attention of Luong, Pham and Manning (2015, "general" scores); the widths are those of
`models.lstm_attention`. It is a `Network` (`training.networks`): one run, padded batches, no run axis.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

KIND = "sequence"
REPRESENTATIONS = {"word_embedding": "words", "encoder_states": "states"}
PARAMETERS = {
    "embedding_width": {"type": "integer", "minimum": 1, "default": 32, "description": "width of input and output embeddings"},
    "encoder_width": {
        "type": "integer",
        "minimum": 1,
        "default": 32,
        "description": "encoder units per direction; the decoder has twice as many",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0,
        "description": "share of the units of embeddings and of decoder states that is dropped in training",
    },
}


class Network(nn.Module):
    """The network of one run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        embedding, width = parameters["embedding_width"], parameters["encoder_width"]
        symbols = len(task["target_words"])
        self.words = nn.Embedding(len(task["source_words"]), embedding)
        self.symbols = nn.Embedding(symbols, embedding)
        self.encoder = nn.GRU(embedding, width, bidirectional=True, batch_first=True)
        self.states = nn.Identity()  # what a regularizer sees as "encoder_states"
        self.decoder = nn.GRU(embedding, 2 * width, batch_first=True)
        self.key = nn.Linear(2 * width, 2 * width)
        self.output = nn.Linear(4 * width, symbols)
        self.dropout = nn.Dropout(parameters["dropout"])

    def forward(self, batch) -> Tensor:
        """Logits (B, T, symbols) under teacher forcing; batch: `kinds.sequence.Single`."""
        # Packed, because the backward direction would otherwise start in the padding.
        packed = pack_padded_sequence(
            self.dropout(self.words(batch.inputs)), batch.input_lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.encoder(packed)
        states = self.states(pad_packed_sequence(states, batch_first=True, total_length=batch.inputs.shape[1])[0])
        decoded, _ = self.decoder(self.dropout(self.symbols(batch.previous)), torch.cat([*last], -1).unsqueeze(0))
        scores = decoded @ self.key(states).transpose(1, 2)
        looked_at = scores.masked_fill(~batch.input_mask.unsqueeze(1), float("-inf")).softmax(-1) @ states
        return self.output(self.dropout(torch.cat([decoded, looked_at], -1)))
