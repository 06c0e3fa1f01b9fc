"""Batches of sequence pairs. Their shapes are known before they are drawn, so that (almost) no padding is computed.

Batches are drawn by stratified uniform sampling. The training set is sorted by target length, then by input length, and cut into
as many strata of equal mass as a batch has rows. Each row is drawn from its own stratum. Every example keeps the probability
that it has under uniform sampling with replacement, and the gradient's variance falls. Each row's longest target and input are
known in advance: every batch of every run has the same shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.shared import sentence_pairs
from compositional.language.vocabulary import PAD, START, Vocabulary
from compositional.layers.functional import SMALL_VOCABULARY, swapped
from compositional.layers.ragged import ROWS, Layout
from compositional.layers.softmax import cross_entropy

LOSSES = ("cross_entropy",)
SAID = ("source_words", "target_words")
COLUMNS = {"input": ("Value",), "output": ("Value",)}
INPUTS = ("input",)
BATCH_MULTIPLE = 16  # layers.ragged.ROWS
INFLUENCE = True
REPRESENTED = True
Computed = TypeVar("Computed")


@dataclass(frozen=True)
class Single:
    """Input of a `Network`, which computes one run. inputs, input_mask: (B, S); input_lengths: (B,); previous: (B, T).

    The outputs are logits (B, T, symbols). Rows are padded at their ends, to the longest input of the split and to the longest
    target that a batch can have. `previous` is the target one step earlier (START at step 0); it contains no later symbols.
    """

    inputs: Tensor
    input_mask: Tensor
    input_lengths: Tensor
    previous: Tensor


@dataclass(frozen=True)
class Batch:
    """inputs, input_mask: (R, B, S); input_lengths: (R, B); targets, target_mask, previous: (R, N) in chunk order.

    `previous` is the target one step earlier (START at step 0), for teacher forcing. All sequences end with END.

    While sentences are decoded symbol by symbol, only each row's last position is wanted (`wanted`). `kept` is what a model keeps
    between passes over the same inputs (`once`), `past` what it keeps of earlier positions, by name (R, B, ...). Models that use
    none of these are slower and give the same symbols.
    """

    inputs: Tensor
    input_mask: Tensor
    input_lengths: Tensor
    targets: Tensor
    target_mask: Tensor
    previous: Tensor
    layout: Layout
    kept: dict[str, Any] | None = None
    past: dict[str, Tensor] | None = None

    def once(self, name: str, compute: Callable[[], Computed]) -> Computed:
        """What `compute` returns. It must depend on nothing but weights and inputs: while decoding, it is computed only once."""
        if self.kept is None:
            return compute()
        if name not in self.kept:
            self.kept[name] = compute()
        return self.kept[name]

    def wanted(self, states: Tensor) -> Tensor:
        """Of states (R, N, ...) in chunk order, those whose outputs are wanted: all, or (R, B, ...) while decoding."""
        return states if self.kept is None else torch.cat([chunk[:, :, -1] for chunk in self.layout.chunks(states)], 1)

    def last(self) -> Batch:
        """The batch itself or, if the earlier positions are in `past`, with only the last position of every row."""
        if self.past is None:
            return self
        previous = torch.cat([chunk[:, :, -1] for chunk in self.layout.chunks(self.previous)], 1)
        layout = self.once("layout", lambda: Layout((1,) * previous.shape[1], self.layout.inputs, previous.device))
        return replace(self, previous=previous, layout=layout)

    def resumed(self, **first: Tensor) -> list[Tensor]:
        """A recurrent decoder's state (R, B, ...) before this pass: `first`, or what `keep` stored after the pass before."""
        return [(self.past or {}).get(name, state) for name, state in first.items()]

    def keep(self, **last: Tensor) -> None:
        """Store a recurrent decoder's state (R, B, ...) after this pass, if the batch has a `past`."""
        if self.past is not None:
            self.past.update(last)

    def output_shape(self, about: dict) -> tuple[int, ...]:
        """Shape of one run's outputs: (N, symbols)."""
        return self.previous.shape[1], len(about["target_words"])

    def single(self) -> Single:
        """The batch of a single run without the run axis, and with targets in rows instead of chunk order."""
        row, step = self.layout.positions.unbind(1)
        previous = self.previous.new_full((self.inputs.shape[1], max(self.layout.target_chunks.lengths)), PAD)
        previous[row, step] = self.previous[0]
        return Single(self.inputs[0], self.input_mask[0], self.input_lengths[0], previous)

    def packed(self, outputs: Tensor) -> Tensor:
        """A single run's outputs in chunk order: (B, T, symbols) -> (1, N, symbols).

        Raises:
            ValueError: the outputs have another number of rows or steps.
        """
        row, step = self.layout.positions.unbind(1)
        expected = self.inputs.shape[1], max(self.layout.target_chunks.lengths)
        if outputs.shape[:2] != expected:
            raise ValueError(f"outputs of a Network must be (B, T, symbols), B, T = {expected}; they are {tuple(outputs.shape)}")
        return outputs.flatten(0, 1).index_select(0, row * outputs.shape[1] + step).unsqueeze(0)

    def losses(self, logits: Tensor, loss: str) -> Tensor:
        """Cross entropy of every target position, zero at padding: (R, N, symbols) -> (R, N)."""
        if logits.shape[-1] <= SMALL_VOCABULARY:
            # Symbols before positions: the sums over few symbols then vectorize along the long, contiguous axis of positions.
            return functional.cross_entropy(swapped(logits), self.targets, reduction="none") * self.target_mask
        each = cross_entropy(logits.flatten(0, 1), self.targets.flatten())
        return each.view(self.targets.shape) * self.target_mask

    def example_losses(self, losses: Tensor) -> Tensor:
        """Sums over an example's positions: (R, N) -> (R, B)."""
        return torch.cat([chunk.sum(2) for chunk in self.layout.chunks(losses)], 1)

    def influence(self, forward: Callable, about: dict) -> tuple[Tensor, Tensor]:
        """How strongly the structure of the output depends on primitives, which should not matter, and on all other words.

        The gradient is that of the mean logit of the target symbols that do not stand for a primitive (turns, the end symbol):
        the other words alone determine where these symbols occur. It is taken with respect to the embeddings of the other words
        and the end symbol (relevant) and of the primitives (redundant).

        Args:
            forward: (batch, tap) -> logits; the model passes its embeddings to the tap as "word_embedding".
            about: the content of task.json; "primitives" maps input words to output symbols.

        Returns:
            Norms over the relevant and over the redundant words, (R, B) each; zero for an example without such words.

        Raises:
            ValueError: the task declares no primitives.
        """
        primitives = about.get("primitives")
        if not primitives:
            raise ValueError("influence_examples: this task does not say which of its words are primitives; set it to 0")
        words = [about["source_words"].index(word) for word in primitives]
        symbols = [about["target_words"].index(symbol) for symbol in primitives.values()]
        shown: list[Tensor] = []

        def tap(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
            if name != "word_embedding":
                return values
            shown.append(values.detach().requires_grad_())
            return shown[-1]

        logits = forward(self, tap)
        structural = self.target_mask & ~torch.isin(self.targets, torch.tensor(symbols, device=self.targets.device))
        own = logits.gather(2, self.targets.unsqueeze(-1)).squeeze(-1) * structural
        count = self.example_losses(structural.to(own.dtype))
        # Examples of a batch do not interact, so one backward pass gives every example its own gradient.
        gradients = torch.autograd.grad((self.example_losses(own) / count).sum(), shown)
        squares = sum(gradient.square().sum(-1) for gradient in gradients)
        primitive = torch.isin(self.inputs, torch.tensor(words, device=self.inputs.device))
        return (squares * (self.input_mask & ~primitive)).sum(2).sqrt(), (squares * primitive).sum(2).sqrt()

    def metrics(self, logits: Tensor) -> dict[str, Tensor]:
        """What is reported besides the loss: by name, one value per example, (R, B)."""
        return {"accuracy": self.correct(logits)}

    def correct(self, logits: Tensor) -> Tensor:
        """Whether the complete sequence, including its end symbol, is right under teacher forcing: (R, B).

        Greedy decoding yields the exact target if and only if every teacher-forced argmax is right, because up to the first
        wrong symbol both see the same past. Exact match therefore needs no decoding. `training.model_guards` refuses models whose
        outputs depend on later symbols.
        """
        return self.layout.all_in_row((logits.argmax(-1) == self.targets) | ~self.target_mask)


class SequenceSplit:
    """One member of a split task as tensors on a device, sorted by target length, longest first."""

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        source: Vocabulary,
        target: Vocabulary,
        device: str,
        categories: Sequence[str] | None = None,
    ) -> None:
        input_tokens, input_lengths = source.encode(inputs)
        target_tokens, target_lengths = target.encode(outputs)
        order = np.lexsort((np.arange(len(inputs)), -input_lengths, -target_lengths))
        self.order = order
        self.categories = None if categories is None else np.asarray(categories)[order]
        self.source, self.target, self.device = source, target, device
        self.inputs, self.input_lengths, self.targets, self.target_lengths = (
            torch.from_numpy(values[order]).to(device) for values in (input_tokens, input_lengths, target_tokens, target_lengths)
        )
        self.lengths = target_lengths[order]

    def __len__(self) -> int:
        return len(self.lengths)

    def input_sentences(self) -> list[str]:
        """The inputs as text, in this split's order."""
        return [self.source.decode(row) for row in self.inputs.tolist()]

    def output_sentences(self) -> list[str]:
        """The targets as text, in this split's order."""
        return [self.target.decode(row) for row in self.targets.tolist()]

    def batch(self, rows: Tensor, layout: Layout) -> Batch:
        """The examples `rows` (R, B) as a batch. They must fit the layout."""
        row, step = layout.positions.unbind(1)
        picked = rows[:, row]
        column = step.clamp(max=self.targets.shape[1] - 1)  # a chunk can be padded further than the longest target
        targets = self.targets[picked, column]
        previous = torch.where(step == 0, START, self.targets[picked, (column - 1).clamp(min=0)])
        input_lengths = self.input_lengths[rows]
        return Batch(
            inputs=self.inputs[rows],
            input_mask=torch.arange(self.inputs.shape[1], device=rows.device) < input_lengths.unsqueeze(-1),
            input_lengths=input_lengths,
            targets=targets,
            target_mask=step < self.target_lengths[picked],
            previous=previous,
            layout=layout,
        )

    def training_batches(self, batch_size: int) -> Callable[[Tensor], Batch]:
        """A function that turns rows (R, batch_size), as `draw` returns them, into a batch; layout as in `training_layout`."""
        return partial(self.batch, layout=self.training_layout(batch_size))

    def training_layout(self, batch_size: int) -> Layout:
        """The layout that every stratified batch of `batch_size` (a multiple of ROWS) fits."""
        # By rounding, the last index of a stratum can be the first of the next one.
        edges = np.append(np.arange(batch_size) * len(self) // batch_size, len(self) - 1)
        inputs = self.input_lengths.numpy(force=True)
        longest = [inputs[first : last + 1].max() for first, last in pairwise(edges)]
        return Layout(self.lengths[edges[:-1]].tolist(), longest, self.device)

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example indices (steps, batch_size) of one run's training batches, stratified by target length."""
        strata = np.arange(batch_size)
        return np.stack(
            [
                ((strata + randomness.generator(key, step).random(batch_size)) * len(self) / batch_size).astype(np.int64)
                for step in steps
            ]
        ).clip(max=len(self) - 1)

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples (or `limit` of them, evenly spaced) in order of length, the same for every run.

        Returns pairs (rows, batch). The last batch is padded by repeating its last example; `rows` names each example once.
        """
        chosen = np.arange(len(self))
        if limit is not None and limit < len(self):
            chosen = np.linspace(0, len(self) - 1, limit).round().astype(np.int64)
        batches = []
        for start in range(0, len(chosen), batch_size):
            real = chosen[start : start + batch_size]
            width = ROWS * math.ceil(len(real) / ROWS)
            filled = np.concatenate([real, np.full(width - len(real), real[-1])])
            layout = Layout(self.lengths[filled].tolist(), self.input_lengths.numpy(force=True)[filled].tolist(), self.device)
            rows = torch.from_numpy(filled).to(self.device).expand(runs, -1)
            batches.append((torch.from_numpy(real), self.batch(rows, layout)))
        return batches


def load(folder: Path, device: str) -> dict[str, SequenceSplit]:
    """Read a split task (columns input, output and, in some members, category) from its folder."""
    return sentence_pairs.load(folder, device, SequenceSplit)
