"""What batches with one class label an example have in common: losses, accuracy, margins and influence of components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from compositional.regularization import silent_tap


class Labelled:
    """Mixed into batches: a dataclass with `labels` (R, B) and, in the field named by `content`, what the model sees."""

    labels: Tensor
    content: ClassVar[str]

    def components(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Cut values shaped like the content into those of the relevant and those of the redundant component."""
        raise NotImplementedError

    def losses(self, scores: Tensor, loss: str) -> Tensor:
        """Loss of every example: scores (R, B, classes) -> (R, B).

        loss: "cross_entropy"; "hinge": max(0, 1 + max_{j != y} s_j - s_y) (Crammer and Singer, JMLR 2001); or "squared":
        half the squared distance of the scores to 1 at the label and -1 elsewhere (TensorFlow playground).
        """
        if loss == "cross_entropy":
            return functional.cross_entropy(scores.flatten(0, 1), self.labels.flatten(), reduction="none").view(self.labels.shape)
        if loss == "squared":
            return (scores - (2 * functional.one_hot(self.labels, scores.shape[-1]) - 1)).square().sum(-1) / 2
        own, others = self._own_and_largest_other(scores)
        return (1 + others - own).clamp(min=0)

    def example_losses(self, losses: Tensor) -> Tensor:
        """The same: an example has one loss."""
        return losses

    def correct(self, scores: Tensor) -> Tensor:
        """Whether each example's class is right, (R, B)."""
        return scores.argmax(-1) == self.labels

    def margins(self, scores: Tensor) -> Tensor:
        """The label's score above the largest other one, (R, B): positive where the class is right."""
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
        scores = forward(replace(self, **{self.content: content}), silent_tap)
        own = scores.gather(2, self.labels.unsqueeze(-1))
        (gradient,) = torch.autograd.grad(own.sum(), content)
        relevant, redundant = (part.flatten(2).norm(dim=2) for part in self.components(gradient))
        return relevant, redundant
