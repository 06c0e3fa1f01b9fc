"""Batches of sequences of symbols with a number as the target.

A task of this kind has the columns

    input        text; each character is a symbol and must be among the `symbols` of task.json
    target       the number
    form         sequences of the same form have the same kinds of parts in the same places: only these are recombined
    equivalent   optional: another input with the same target
    category     optional: the category of a test example

and in task.json `component_width`, the number of symbols of the first component, or null if that varies.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.combination import Targeted
from compositional.kinds.shared import epochs
from compositional.kinds.shared.labelled import LabelledSplit

LOSSES = ("squared",)
SAID = ("symbols", "component_width")
COLUMNS = {"input": ("Value",), "target": ("Value",), "form": ("Value",)}
INPUTS = ("input",)
BATCH_MULTIPLE = 16  # so that every run's numbers begin at multiples of 64 bytes


@dataclass(frozen=True)
class Single:
    """Input of a `Network`, which computes one run. inputs, input_mask: (B, S); input_lengths: (B,). Its outputs are (B, 1)."""

    inputs: Tensor
    input_mask: Tensor
    input_lengths: Tensor


@dataclass(frozen=True)
class Batch(Targeted):
    """inputs: (R, B, S); equivalents: (R, B, S), or None if the task has none; input_lengths, targets, forms: (R, B)."""

    inputs: Tensor
    input_lengths: Tensor
    targets: Tensor
    forms: Tensor
    equivalents: Tensor | None
    component_width: int | None

    signs = False

    @property
    def input_mask(self) -> Tensor:
        """Which positions are before an input's end, (R, B, S)."""
        return torch.arange(self.inputs.shape[2], device=self.inputs.device) < self.input_lengths.unsqueeze(-1)

    def single(self) -> Single:
        """The batch of a single run without the run axis."""
        return Single(self.inputs[0], self.input_mask[0], self.input_lengths[0])

    def partner(self) -> Tensor:
        """Index of each row's partner, (B,): rows 0 and 1, 2 and 3, ... are partners. Rows are sorted by form."""
        return torch.arange(self.inputs.shape[1], device=self.inputs.device) ^ 1

    def recombine(self) -> Batch:
        """Each row's first component followed by the rest of its partner; a row whose partner has another form stays unchanged.

        The targets are not changed: they are those of the original rows.

        Raises:
            ValueError: first components differ in length.
        """
        if self.component_width is None:
            raise ValueError(
                "this task's first operands differ in length and cannot be exchanged: smallest and largest must have "
                "equally many digits"
            )
        partner = self.partner()
        rest = self.inputs.index_select(1, partner)
        recombined = torch.cat([self.inputs[..., : self.component_width], rest[..., self.component_width :]], -1)
        alike = (self.forms == self.forms.index_select(1, partner)).unsqueeze(-1)
        return replace(self, inputs=torch.where(alike, recombined, self.inputs))

    def exchanged(self, exchange: str = "lexicon") -> Batch:
        """Inputs of the same value; `exchange` as in `recombination`.

        Raises:
            ValueError: the task has no such inputs, or `exchange` is not "lexicon".
        """
        if exchange != "lexicon":
            raise ValueError(f"recombination: exchange: {exchange} is not for expressions; leave it at lexicon")
        if self.equivalents is None:
            raise ValueError("this task has no expressions of equal value to exchange: use only the operators + and *")
        return replace(self, inputs=self.equivalents)


class SequenceRegressionSplit(LabelledSplit[Batch]):
    """One member of a split task as tensors on a device."""

    def __init__(
        self,
        inputs: Sequence[str],
        targets: np.ndarray,
        forms: Sequence[str],
        symbols: str,
        component_width: int | None,
        device: str,
        *,
        equivalents: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
    ) -> None:
        def encoded(texts: Sequence[str]) -> Tensor:
            longest = max(map(len, texts))
            # After an input's end any symbol will do.
            return torch.tensor([[symbols.index(symbol) for symbol in text.ljust(longest, symbols[0])] for text in texts])

        self.inputs, self.lengths = encoded(inputs).to(device), torch.tensor([len(text) for text in inputs], device=device)
        self.equivalents = None if equivalents is None else encoded(equivalents).to(device)
        self.labels = torch.from_numpy(np.array(targets, dtype=np.float32)).to(device)
        self.sorted_forms = np.unique(forms, return_inverse=True)[1]
        self.forms = torch.from_numpy(self.sorted_forms).to(device)
        self.categories = None if categories is None else np.asarray(categories)
        self.component_width, self.device = component_width, device

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        return Batch(
            inputs=self.inputs[rows],
            input_lengths=self.lengths[rows],
            targets=self.labels[rows],
            forms=self.forms[rows],
            equivalents=None if self.equivalents is None else self.equivalents[rows],
            component_width=self.component_width,
        )

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example indices (steps, batch_size) of one run's training batches, epoch by epoch, each batch sorted by form."""
        drawn = epochs.draw(key, steps, len(self), batch_size)
        return np.take_along_axis(drawn, np.argsort(self.sorted_forms[drawn], axis=1, kind="stable"), 1)

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, Batch]]:
        """All examples (or the first `limit`), the same for every run, as pairs (rows, batch).

        The last batch is padded by repeating its last example; `rows` names each example once.
        """
        batches = []
        for part in torch.arange(min(len(self), limit or len(self))).split(batch_size):
            rows = torch.cat([part, part[-1:].expand(-len(part) % BATCH_MULTIPLE)])
            batches.append((part, self.batch(rows.to(self.device).expand(runs, -1))))
        return batches


def load(folder: Path, device: str) -> dict[str, SequenceRegressionSplit]:
    """Read a split task from its folder."""
    from datasets import DatasetDict

    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    splits = {}
    for name, member in DatasetDict.load_from_disk(str(folder)).items():
        optional = {
            f"{plural}": member[column][:] if column in member.column_names else None
            for column, plural in (("equivalent", "equivalents"), ("category", "categories"))
        }
        splits[name] = SequenceRegressionSplit(
            member["input"][:],
            np.array(member["target"][:]),
            member["form"][:],
            about["symbols"],
            about["component_width"],
            device,
            **optional,
        )
    return splits
