"""Batches of combinations of items, shown to models as one-hot vectors, with a number or a sign as the target."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.shared.labelled import LabelledSplit

LOSSES = ("squared", "logistic")
SAID = ("sizes", "target")
COLUMNS = {"items": (), "target": ("Value",), "set": ("Value",)}
INPUTS = ("items", "set")


class Targeted:
    """Mixin for batches: dataclasses with `targets` (R, B). The model's outputs are (R, B, K), one column per fitted machine.

    signs: True if the targets are -1 and 1, of which only the sign must be right; False if they are whole numbers.
    """

    targets: Tensor
    signs: bool

    def output_shape(self, about: dict) -> tuple[int | None, ...]:
        """Shape of one run's outputs: (B, K)."""
        return self.targets.shape[1], None

    def packed(self, outputs: Tensor) -> Tensor:
        """Adds the run axis to a single run's outputs: (B, K) -> (1, B, K)."""
        return outputs.unsqueeze(0)

    def losses(self, outputs: Tensor, loss: str) -> Tensor:
        """Loss of every example, the mean over the columns: (R, B, K) -> (R, B).

        loss: "squared": (f - y)^2; "logistic": log(1 + exp(-y f)), where y is a sign.

        Raises:
            ValueError: the loss is logistic and the targets are not signs.
        """
        return self.column_losses(outputs, loss).mean(-1)

    def column_losses(self, outputs: Tensor, loss: str) -> Tensor:
        """The losses before the mean over the columns: (R, B, K)."""
        targets = self.targets.unsqueeze(-1)
        if loss == "squared":
            return (outputs - targets).square()
        if not self.signs:
            raise ValueError("training.loss: 'logistic' is for targets that are signs, this task's are numbers; take 'squared'")
        # The library computes full vectors and the remainder at the end by different code. Padding makes every run's numbers fill
        # full vectors.
        margins = (targets * outputs).flatten(1)
        whole = functional.pad(margins, (0, -margins.shape[1] % 64))
        return functional.softplus(-whole)[:, : margins.shape[1]].view_as(outputs)

    def example_losses(self, losses: Tensor) -> Tensor:
        """The losses unchanged, (R, B): each example has one."""
        return losses

    def metrics(self, outputs: Tensor) -> dict[str, Tensor]:
        """What is reported besides the loss: by name, one value per example, (R, B)."""
        return {"accuracy": self.correct(outputs)}

    def correct(self, outputs: Tensor) -> Tensor:
        """Share of the columns that are right, (R, B)."""
        return self.column_correct(outputs).to(outputs.dtype).mean(-1)

    def column_correct(self, outputs: Tensor) -> Tensor:
        """Whether the sign is right or, for numbers, the target is the nearest whole number: (R, B, K) of bool."""
        targets = self.targets.unsqueeze(-1)
        return outputs * targets > 0 if self.signs else (outputs - targets).abs() < 0.5


@dataclass(frozen=True)
class Batch(Targeted):
    """items (R, B, C), numbers of items; targets (R, B); sets (R, B): which training set an example belongs to.

    sizes: the number of items of each component.
    """

    items: Tensor
    targets: Tensor
    sets: Tensor
    sizes: tuple[int, ...]
    signs: bool

    def one_hot(self) -> Tensor:
        """The components' one-hot vectors side by side, (R, B, sum of sizes)."""
        parts = [functional.one_hot(self.items[..., index], size) for index, size in enumerate(self.sizes)]
        return torch.cat(parts, -1).to(torch.float32)

    def single(self) -> Tensor:
        """Input of a `Network`, which computes one run: the one-hot vectors, (B, sum of sizes)."""
        return self.one_hot()[0]


class CombinationSplit(LabelledSplit[Batch]):
    """One member of a split symbolic task as tensors on a device. `combinations` (n, C) holds its items, for analyses."""

    def __init__(
        self, items: np.ndarray, targets: np.ndarray, sets: np.ndarray, sizes: tuple[int, ...], signs: bool, device: str
    ) -> None:
        self.combinations, self.sets = np.array(items, dtype=np.int64), np.array(sets, dtype=np.int64)
        self.labels = torch.from_numpy(np.array(targets, dtype=np.float32)).to(device)
        self._items = torch.from_numpy(self.combinations).to(device)
        self._sets = torch.from_numpy(self.sets).to(device)
        self.sizes, self.signs, self.device = tuple(sizes), signs, device

    def batch(self, rows: Tensor) -> Batch:
        """The examples `rows` (R, B) as a batch."""
        return Batch(self._items[rows], self.labels[rows], self._sets[rows], self.sizes, self.signs)

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Every example once if the batch is as large as the training set; otherwise drawn as in other tasks."""
        if batch_size == len(self):
            return np.tile(np.arange(batch_size), (len(steps), 1))
        return super().draw(key, steps, batch_size)


def load(folder: Path, device: str) -> dict[str, CombinationSplit]:
    """Read a split symbolic task (columns items, target and set) from its folder."""
    from datasets import DatasetDict

    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    members = DatasetDict.load_from_disk(str(folder)).with_format("numpy")
    return {
        name: CombinationSplit(
            member["items"][:], member["target"][:], member["set"][:], about["sizes"], about["target"] == "sign", device
        )
        for name, member in members.items()
    }
