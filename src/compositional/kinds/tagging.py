"""Batches of sentences with a symbol to predict at each word, from the sentence alone.

A task of this kind has the columns

    input        words separated by spaces
    output       symbols separated by spaces. Symbol t belongs to word t. Symbols after the last word are left out, and words
                 after the last symbol have none
    category     optional: the category of a test example

Losses and accuracies count symbols, not sentences. An example's loss and its number of right symbols are divided by the mean
number of symbols of the examples of its category (of its member, if it has no categories). The mean over a category is then the
mean over its symbols, and the mean over a member weights categories by their numbers of examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.shared import epochs, sentence_pairs
from compositional.language.vocabulary import PAD, Vocabulary

LOSSES = ("cross_entropy",)
SAID = ("source_words", "target_words")
COLUMNS = {"input": ("Value",), "output": ("Value",)}
INPUTS = ("input",)


@dataclass(frozen=True)
class Single:
    """Input of a `Network`, which computes one run. inputs, input_mask: (B, S). Its outputs are (B, S, symbols)."""

    inputs: Tensor
    input_mask: Tensor


@dataclass(frozen=True)
class Batch:
    """inputs, input_mask, targets, target_mask: (R, B, S); typical: (R, B), by what an example's sums are divided."""

    inputs: Tensor
    input_mask: Tensor
    targets: Tensor
    target_mask: Tensor
    typical: Tensor

    def output_shape(self, about: dict) -> tuple[int, ...]:
        """Shape of one run's outputs: (B, S, symbols)."""
        return *self.inputs.shape[1:], len(about["target_words"])

    def single(self) -> Single:
        """The batch of a single run without the run axis."""
        return Single(self.inputs[0], self.input_mask[0])

    def packed(self, outputs: Tensor) -> Tensor:
        """Adds the run axis to a single run's outputs: (B, S, symbols) -> (1, B, S, symbols)."""
        return outputs.unsqueeze(0)

    def losses(self, logits: Tensor, loss: str) -> Tensor:
        """Cross entropy at every word, zero where there is no symbol: (R, B, S, symbols) -> (R, B S)."""
        each = functional.cross_entropy(logits.flatten(0, 2), self.targets.flatten(), reduction="none").view(self.targets.shape)
        return (each * self.target_mask / self.typical.unsqueeze(-1)).flatten(1)

    def example_losses(self, losses: Tensor) -> Tensor:
        """Sums over an example's words: (R, B S) -> (R, B)."""
        return losses.view(self.inputs.shape).sum(2)

    def metrics(self, logits: Tensor) -> dict[str, Tensor]:
        """What is reported besides the loss: by name, one value per example, (R, B)."""
        right = (logits.argmax(-1) == self.targets) & self.target_mask
        return {"accuracy": right.sum(2) / self.typical}


class TaggingSplit:
    """One member of a split task as tensors on a device."""

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        source: Vocabulary,
        target: Vocabulary,
        device: str,
        categories: Sequence[str] | None = None,
    ) -> None:
        words, read = _without_end(*source.encode(inputs))
        symbols, written = _without_end(*target.encode(outputs))
        symbols = np.pad(symbols, ((0, 0), (0, max(0, words.shape[1] - symbols.shape[1]))), constant_values=PAD)
        written = np.minimum(read, written)
        self.source, self.target, self.device = source, target, device
        self.categories = None if categories is None else np.asarray(categories)
        groups = np.unique([""] * len(read) if categories is None else categories, return_inverse=True)[1]
        typical = (np.bincount(groups, written) / np.bincount(groups))[groups]
        place = np.arange(words.shape[1])
        self.inputs, self.targets, self.input_mask, self.target_mask, self.typical = (
            torch.from_numpy(values).to(device)
            for values in (
                words,
                symbols[:, : words.shape[1]].copy(),
                place < read[:, None],
                place < written[:, None],
                typical.astype(np.float32),
            )
        )

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        own = self.inputs, self.input_mask, self.targets, self.target_mask, self.typical
        return Batch(*(values[rows] for values in own))

    def training_batches(self, batch_size: int) -> Callable[[Tensor], Batch]:
        """A function that turns rows (R, batch_size) into a batch: `batch`, whatever the size."""
        return self.batch

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example indices (steps, batch_size) of one run's training batches, epoch by epoch."""
        return epochs.draw(key, steps, len(self), batch_size)

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples, or `limit` of them, evenly spaced, the same for every run, as pairs (rows, batch)."""
        count = min(len(self), limit or len(self))
        rows = torch.from_numpy(np.linspace(0, len(self) - 1, count).round().astype(np.int64))
        return [(part, self.batch(part.to(self.device).expand(runs, -1))) for part in rows.split(batch_size)]


def _without_end(tokens: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n, longest) and lengths (n,) of sentences without their end symbol."""
    longest = max(int(lengths.max()) - 1, 1)
    return np.where(np.arange(longest) < lengths[:, None] - 1, tokens[:, :longest], PAD), lengths - 1


def load(folder: Path, device: str) -> dict[str, TaggingSplit]:
    """Read a split task (columns input, output and, in some members, category) from its folder."""
    return sentence_pairs.load(folder, device, TaggingSplit)
