"""Code shared by batches with one class label per example: losses, accuracy, margins and influence of components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds import Batch
from compositional.layers.tap import silent_tap

BatchT = TypeVar("BatchT", bound=Batch)


class Labelled:
    """Mixin for batches: dataclasses with `labels` (R, B) and the model's input in the field that `content` names."""

    labels: Tensor
    content: ClassVar[str]

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Split values (R, B, ...), shaped like the content, into those of the relevant and of the redundant component."""
        raise NotImplementedError

    def output_shape(self, about: dict) -> tuple[int, ...]:
        """Shape of one run's outputs: (B, classes)."""
        return self.labels.shape[1], about["classes"]

    def single(self) -> Tensor:
        """Input of a `Network`, which computes one run: the content, (B, ...)."""
        return getattr(self, self.content)[0]

    def packed(self, outputs: Tensor) -> Tensor:
        """Adds the run axis to a single run's outputs: (B, classes) -> (1, B, classes)."""
        return outputs.unsqueeze(0)

    def losses(self, scores: Tensor, loss: str) -> Tensor:
        """Loss of every example: scores (R, B, classes) -> (R, B).

        loss: "cross_entropy"; "hinge": max(0, 1 + max_{j != y} s_j - s_y) (Crammer and Singer, JMLR 2001);
            "categorical_hinge": the same, but with max(0, max_{j != y} s_j), as in Keras; "squared": half the squared distance
            of the scores from 1 at the label and -1 elsewhere (TensorFlow playground).
        """
        if loss == "cross_entropy":
            return functional.cross_entropy(scores.flatten(0, 1), self.labels.flatten(), reduction="none").view(self.labels.shape)
        if loss == "squared":
            return (scores - (2 * functional.one_hot(self.labels, scores.shape[-1]) - 1)).square().sum(-1) / 2
        own, others = self._own_and_largest_other(scores)
        if loss == "categorical_hinge":
            others = others.clamp(min=0)
        return (1 + others - own).clamp(min=0)

    def example_losses(self, losses: Tensor) -> Tensor:
        """The losses unchanged, (R, B): each example has one."""
        return losses

    def metrics(self, scores: Tensor) -> dict[str, Tensor]:
        """What is reported besides the loss: by name, one value per example, (R, B)."""
        return {"accuracy": self.correct(scores)}

    def correct(self, scores: Tensor) -> Tensor:
        """Whether each example's class is right, (R, B)."""
        return scores.argmax(-1) == self.labels

    def margins(self, scores: Tensor) -> Tensor:
        """The label's score minus the largest other score, (R, B): positive if the predicted class is right."""
        own, others = self._own_and_largest_other(scores)
        return own - others

    def _own_and_largest_other(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        label = self.labels.unsqueeze(-1)
        return scores.gather(2, label).squeeze(-1), scores.scatter(2, label, float("-inf")).amax(-1)

    def influence(self, forward: Callable, about: dict) -> tuple[Tensor, Tensor]:
        """Norms of the gradient of the label's score with respect to the relevant and the redundant component, (R, B) each.

        forward: (batch, tap) -> scores.
        """
        content = getattr(self, self.content).detach().requires_grad_()
        scores = forward(replace(cast(Any, self), **{self.content: content}), silent_tap)
        own = scores.gather(2, self.labels.unsqueeze(-1))
        (gradient,) = torch.autograd.grad(own.sum(), content)
        relevant, redundant = (part.flatten(2).norm(dim=2) for part in self.components(gradient))
        return relevant, redundant


class LabelledSplit(Generic[BatchT]):
    """One member of a split task whose examples all have the same shape, as tensors on `device`; `labels` (n,)."""

    labels: Tensor
    device: str

    def batch(self, rows: Tensor) -> BatchT:
        """The examples `rows` (R, B) as a batch."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.labels)

    def training_batches(self, batch_size: int) -> Callable[[Tensor], BatchT]:
        """A function that turns rows (R, batch_size) into a batch: `batch`, whatever the size."""
        return self.batch

    def draw(self, key: int, steps: range, batch_size: int) -> np.ndarray:
        """Example indices (steps, batch_size) of one run's training batches, uniform with replacement."""
        return np.stack([randomness.generator(key, step).integers(len(self), size=batch_size) for step in steps])

    def evaluation_batches(self, runs: int, batch_size: int, limit: int | None = None) -> list[tuple[Tensor, BatchT]]:
        """All examples, or `limit` evenly spaced ones, the same for every run, as pairs (rows, batch)."""
        parts = self.evaluation_rows(batch_size, limit)
        return [(part, self.batch(part.to(self.device).expand(runs, -1))) for part in parts]

    def evaluation_rows(self, batch_size: int, limit: int | None = None) -> list[Tensor]:
        """The rows of each batch of an evaluation.

        Each batch of a part is spread over all examples, because statistics are computed from it and rows may be sorted by class.
        """
        count = min(len(self), limit or len(self))
        rows = torch.arange(count) * len(self) // count
        if count < len(self):
            parts = -(-count // batch_size)
            rows = torch.cat([rows[part::parts] for part in range(parts)])
        return [*rows.split(batch_size)]
