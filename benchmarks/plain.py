"""What a careful user would write instead: one run, standard PyTorch modules, padded batches. The baseline of the benchmarks.

SCAN: the two-stream model with entropy regularization on word embeddings; MNIST: the CNN with entropy regularization on the
penultimate layer. Same sizes, batches, losses and optimizer as the project's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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


class Trainer:
    """One run, ready to take steps."""

    def __init__(self, problem: str, splits: dict, device: str) -> None:
        self.problem, self.data, self.device = problem, splits["train"], device
        if problem == "scan":
            self.model, rate = PrimitiveAttention(len(self.data.source), len(self.data.target)).to(device), 0.01
        else:
            self.model, rate = Convolutional(*self.data.images.shape[2:]).to(device), 0.001
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.96 ** (1 / 100))

    def step(self) -> None:
        """One gradient step on a batch drawn uniformly with replacement."""
        rows = torch.randint(len(self.data), (256 if self.problem == "scan" else 64,), device=self.device)
        if self.problem == "scan":
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
        logits, penalty = self.model(self.data.inputs[rows], self.data.input_lengths[rows], steps)
        targets = targets[:, :steps]
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
        return loss / len(rows), penalty
