"""A careful user's alternative to this project: one run, standard PyTorch modules, padded batches. The baseline of the
benchmarks.

SCAN: the two-stream model with entropy regularization on word embeddings. MNIST: the CNN with entropy regularization on the
penultimate layer. COGS: nn.Transformer at the paper's width with absolute positions, its default. Sizes, batches, losses and
optimizer are the same as in the project.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from compositional.language.vocabulary import START

STRENGTH = 0.1  # lambda


class PrimitiveAttention(nn.Module):
    """Two-stream sequence-to-sequence model; see compositional.models.primitive_attention."""

    def __init__(self, words: int, actions: int) -> None:
        super().__init__()
        self.primitive, self.function = nn.Embedding(words, 16), nn.Embedding(words, 8)
        self.encoder = nn.LSTM(8, 32, bidirectional=True, batch_first=True)
        self.decoder = nn.LSTM(1, 64, batch_first=True)
        self.output = nn.Linear(16, actions)
        for table in (self.primitive, self.function):
            nn.init.uniform_(table.weight, -1, 1)

    def forward(self, inputs: Tensor, lengths: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Logits (B, steps, actions) and the penalty."""
        mask = torch.arange(inputs.shape[1], device=inputs.device) < lengths.unsqueeze(1)
        clean = [self.primitive(inputs), self.function(inputs)]
        penalty = sum((words.square().mean(-1) * mask).sum(1).mean() for words in clean)
        primitive, function = (words + torch.randn_like(words) if self.training else words for words in clean)
        packed = pack_padded_sequence(function, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, (hidden, _) = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=inputs.shape[1])
        start = torch.cat([hidden[0], hidden[1]], -1).unsqueeze(0)
        nothing = inputs.new_zeros(len(inputs), steps, 1, dtype=torch.float32)
        decoded, _ = self.decoder(nothing, (start, torch.zeros_like(start)))
        scores = (decoded @ states.transpose(1, 2)).masked_fill(~mask.unsqueeze(1), float("-inf"))
        return self.output(scores.softmax(-1) @ primitive), penalty


class Convolutional(nn.Module):
    """The CNN; see compositional.models.cnn."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        features = 64 * ((height - 2) // 2 - 2) * ((width - 2) // 2 - 2)
        convolutions = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU()]
        self.body = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(features, 64), nn.ReLU())
        self.output = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, 10) and the penalty."""
        hidden = self.body(images)
        return self.output(hidden + 0.3 * torch.randn_like(hidden)), hidden.square().mean(-1).mean()


class Transformer(nn.Module):
    """Two layers in encoder and decoder, 512 wide, 4 heads; see compositional.models.transformer."""

    def __init__(self, words: int, symbols: int, longest: int) -> None:
        super().__init__()
        width = 512
        self.words, self.symbols = nn.Embedding(words, width), nn.Embedding(symbols, width)
        self.places = nn.Parameter(torch.randn(longest + 1, width) / width**0.5)
        self.body = nn.Transformer(width, 4, 2, 2, width, 0.1, batch_first=True)
        self.output = nn.Linear(width, symbols)

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, T, symbols) and no penalty."""
        padding = torch.arange(inputs.shape[1], device=inputs.device) >= lengths.unsqueeze(1)
        causal = nn.Transformer.generate_square_subsequent_mask(previous.shape[1], inputs.device)
        source = self.words(inputs) + self.places[: inputs.shape[1]]
        target = self.symbols(previous) + self.places[: previous.shape[1]]
        masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        states = self.body(source, target, tgt_mask=causal, tgt_is_causal=True, **masks)
        return self.output(states), states.new_zeros(())


BATCH = {"scan": 256, "mnist": 64, "cogs": 128}


class Trainer:
    """One run, ready to take steps. batch_size: replaces the problem's own. compiled: use torch.compile for the model."""

    def __init__(self, problem: str, splits: dict, device: str, batch_size: int | None = None, compiled: bool = False) -> None:
        self.problem, self.data, self.device = problem, splits["train"], device
        self.batch_size = batch_size or BATCH[problem]
        if problem == "scan":
            self.model, rate = PrimitiveAttention(len(self.data.source), len(self.data.target)), 0.01
        elif problem == "cogs":
            longest = max(self.data.targets.shape[1], self.data.inputs.shape[1])
            self.model, rate = Transformer(len(self.data.source), len(self.data.target), longest), 0.0001
        else:
            self.model, rate = Convolutional(*self.data.images.shape[2:]), 0.001
        self.model.to(device)
        if compiled:
            self.model.compile(dynamic=problem != "mnist")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.96 ** (1 / 100))

    def step(self) -> None:
        """One gradient step on a batch drawn uniformly with replacement."""
        rows = torch.randint(len(self.data), (self.batch_size,), device=self.device)
        if self.problem != "mnist":
            loss, penalty = self._sequence_loss(rows)
        else:
            scores, penalty = self.model(self.data.images[rows].float() / 255)
            label = self.data.labels[rows].unsqueeze(-1)
            others = scores.scatter(-1, label, float("-inf")).amax(-1)
            loss = (1 + others - scores.gather(-1, label).squeeze(-1)).clamp(min=0).mean()
        self.optimizer.zero_grad(set_to_none=True)
        (loss + STRENGTH * penalty).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()

    def _sequence_loss(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        targets, lengths = self.data.targets[rows], self.data.target_lengths[rows]
        steps = int(lengths.max())
        targets = targets[:, :steps]
        decoded = functional.pad(targets[:, :-1], (1, 0), value=START) if self.problem == "cogs" else steps
        logits, penalty = self.model(self.data.inputs[rows], self.data.input_lengths[rows], decoded)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
        return loss / len(rows), penalty
