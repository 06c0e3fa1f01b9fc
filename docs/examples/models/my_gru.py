"""One GRU reads, another writes: an ordinary torch.nn.Module for one run."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

KIND = "sequence"
REPRESENTATIONS = {"word_embedding": "words", "encoder_states": "states"}  # name: the submodule that outputs it
PARAMETERS = {
    "width": {"type": "integer", "minimum": 1, "default": 64, "description": "width of embeddings and states"},
}


class Network(nn.Module):
    """The network of one run: it has no run axis and knows no other run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        width, symbols = parameters["width"], len(task["target_words"])
        self.words, self.symbols = nn.Embedding(len(task["source_words"]), width), nn.Embedding(symbols, width)
        self.encoder, self.decoder = nn.GRU(width, width, batch_first=True), nn.GRU(width, width, batch_first=True)
        self.states, self.output = nn.Identity(), nn.Linear(width, symbols)

    def forward(self, batch) -> Tensor:
        """Logits (B, T, symbols) from inputs (B, S), input_lengths (B,), and previous (B, T), the target one step earlier."""
        words, lengths = self.words(batch.inputs), batch.input_lengths.cpu()
        states, _ = self.encoder(pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False))
        states = self.states(pad_packed_sequence(states, batch_first=True, total_length=batch.inputs.shape[1])[0])
        last = states[range(len(states)), batch.input_lengths - 1]  # of the shown states, so that a term can perturb them
        decoded, _ = self.decoder(self.symbols(batch.previous), last.unsqueeze(0))
        return self.output(decoded)
