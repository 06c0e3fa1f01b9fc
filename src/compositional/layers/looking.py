"""How a decoder step that is computed alone attends to the input words, and the gradient of all steps.

Each object belongs to one forward and backward pass of `input_feeding`. N positions of B rows are in step order, and a step has
`size` positions from `start`: those of the first rows. Tensors have more than N positions, so that each run's are aligned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from compositional.layers import looking_compiled
from compositional.layers.compiled import is_compiled
from compositional.layers.functional import linear
from compositional.layers.ragged import Steps


class DotProduct:
    """Scores are products of the hidden state and the keys.

    Args:
        keys, values: of the input words, (R, B, S, H).
        blocked: what is added to the scores, (R, B, 1, S).
        places: at least N.
    """

    def __init__(self, keys: Tensor, values: Tensor, blocked: Tensor, places: int) -> None:
        self.keys, self.values, self.blocked, self.places, self.size = keys, values, blocked, places, 0

    @cached_property
    def _grad_scores(self) -> Tensor:
        return self.keys.new_empty(len(self.keys), self.places, self.keys.shape[2])

    def _rows(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, values and what is added to the scores of the first rows, with runs and rows as one axis."""
        if size != self.size:
            self.size = size
            self.key, self.value, self.block = (of[:, :size].flatten(0, 1) for of in (self.keys, self.values, self.blocked))
        return self.key, self.value, self.block

    def attend(self, hiddens: Tensor, looks: Tensor, seen: Tensor, start: int, size: int) -> None:
        """Attend with the step's hidden states (R, >= N, H). Writes attention weights to looks (R, >= N, S), and the attended
        values to the second half of seen (R, >= N, 2 H)."""
        key, value, block = self._rows(size)
        now, (runs, _, words), width = slice(start, start + size), looks.shape, key.shape[2]
        look = torch.baddbmm(block, hiddens[:, now].reshape(-1, 1, width), key.transpose(1, 2)).softmax(2)
        looks[:, now] = look.view(runs, size, words)
        seen[:, now, width:] = torch.bmm(look, value).view(runs, size, width)

    def gradient(self, looks: Tensor, grad_looks: Tensor, grad_seen: Tensor, start: int, size: int) -> Tensor:
        """The gradient of a step's hidden states that comes from attention, (R, size, H). grad_looks and grad_seen are those of
        what `attend` writes, and contiguous."""
        key, value, _ = self._rows(size)
        now, (runs, _, words), width = slice(start, start + size), looks.shape, key.shape[2]
        look = looks[:, now].reshape(-1, 1, words)
        grad_look = torch.baddbmm(
            grad_looks[:, now].reshape(-1, 1, words), grad_seen[:, now, width:].reshape(-1, 1, width), value.transpose(1, 2)
        ).mul_(look)
        grad_score = grad_look.addcmul_(look, grad_look.sum(2, keepdim=True), value=-1)
        self._grad_scores[:, now] = grad_score.view(runs, size, words)
        return torch.bmm(grad_score, key).view(runs, size, width)

    def gradients(self, seen: Tensor, looks: Tensor, grad_seen: Tensor, steps: Steps) -> tuple[Tensor, ...]:
        """After all steps: the gradients of keys and values."""
        (_, rows, _, width), end = self.keys.shape, slice(sum(steps.sizes))
        pairs = (self._grad_scores, seen[..., :width]), (looks, grad_seen[..., width:])
        products = [[_by_row(one[:, end], steps, rows) for one in pair] for pair in pairs]
        return tuple(torch.bmm(one.transpose(1, 2), other).view_as(self.keys) for one, other in products)


def _by_row(values: Tensor, steps: Steps, rows: int) -> Tensor:
    """Values (R, N, K) in step order as (R * B, T, K), with zeros after a row's end."""
    row, step = steps.positions.unbind(1)
    grid = values.new_zeros(values.shape[0], rows, len(steps.sizes), values.shape[2])
    grid[:, row, step] = values
    return grid.flatten(0, 1)


def _attend(
    queries: Tensor, keys: Tensor, values: Tensor, blocked: Tensor, score: Tensor, looks: Tensor, seen: Tensor, start: int,
    size: int,
) -> None:  # fmt: skip
    """A step of additive attention with queries (R, >= N, H) and w (R, H), computed with PyTorch's operations. It writes what
    `DotProduct.attend` writes."""
    now, width = slice(start, start + size), score.shape[1]
    tangents = (queries[:, now].unsqueeze(2) + keys[:, :size]).tanh()
    looks[:, now] = ((tangents * score[:, None, None]).sum(3) + blocked[:, :size, 0]).softmax(2)
    seen[:, now, width:] = (looks[:, now].unsqueeze(3) * values[:, :size]).sum(2)


def _gradient(
    queries: Tensor, keys: Tensor, values: Tensor, blocked: Tensor, score: Tensor, looks: Tensor, grad_looks: Tensor,
    grad_seen: Tensor, grad_queries: Tensor, grad_keys: Tensor, grad_values: Tensor, grad_score: Tensor, start: int, size: int,
) -> None:  # fmt: skip
    """Gradient of `_attend`, computed with PyTorch's operations: it writes that of a step's queries, and adds to those of keys,
    values and w."""
    now, width = slice(start, start + size), score.shape[1]
    tangents = (queries[:, now].unsqueeze(2) + keys[:, :size]).tanh()
    look, grad_context = looks[:, now], grad_seen[:, now, width:].unsqueeze(2)
    grad_look = grad_looks[:, now] + (values[:, :size] * grad_context).sum(3)
    grad_scores = (look * (grad_look - (look * grad_look).sum(2, keepdim=True))).unsqueeze(3)
    slopes = grad_scores * score[:, None, None] * (1 - tangents * tangents)
    grad_queries[:, now] = slopes.sum(2)
    grad_keys[:, :size] += slopes
    grad_values[:, :size] += look.unsqueeze(3) * grad_context
    grad_score += (grad_scores * tangents).sum((1, 2))


class Additive:
    """Scores w . tanh(W h + b + key), with a hidden state h (Bahdanau, Cho and Bengio 2015, section A.1.2).

    The hyperbolic tangents are computed again for the gradient: all of them would be the largest tensor of a training step.

    Args:
        keys, values, blocked, places: as in `DotProduct`.
        weight, bias: W (R, H, H) and b (R, H).
        score: w (R, H).
    """

    def __init__(
        self, keys: Tensor, values: Tensor, blocked: Tensor, places: int, weight: Tensor, bias: Tensor, score: Tensor
    ) -> None:
        self.keys, self.values, self.blocked, self.score = (of.detach().contiguous() for of in (keys, values, blocked, score))
        self.weight, self.bias = weight, bias
        self.queries = keys.new_empty(len(keys), places, keys.shape[3])
        self._passes: tuple[Callable, Callable] = (
            looking_compiled.passes(keys.shape[3]) if is_compiled(keys) else (_attend, _gradient)
        )

    @cached_property
    def _grad_queries(self) -> Tensor:
        return torch.empty_like(self.queries)

    @cached_property
    def _grads(self) -> list[Tensor]:
        """Of keys, values and w, to which each step adds."""
        return [torch.zeros_like(of) for of in (self.keys, self.values, self.score)]

    def attend(self, hiddens: Tensor, looks: Tensor, seen: Tensor, start: int, size: int) -> None:
        """As in `DotProduct`."""
        now = slice(start, start + size)
        self.queries[:, now] = linear(hiddens[:, now], self.weight, self.bias)
        self._passes[0](self.queries, self.keys, self.values, self.blocked, self.score, looks, seen, start, size)

    def gradient(self, looks: Tensor, grad_looks: Tensor, grad_seen: Tensor, start: int, size: int) -> Tensor:
        """As in `DotProduct`."""
        given = self.queries, self.keys, self.values, self.blocked, self.score, looks, grad_looks, grad_seen
        self._passes[1](*given, self._grad_queries, *self._grads, start, size)
        return torch.bmm(self._grad_queries[:, start : start + size], self.weight.transpose(1, 2))

    def gradients(self, seen: Tensor, looks: Tensor, grad_seen: Tensor, steps: Steps) -> tuple[Tensor, ...]:
        """After all steps: the gradients of keys, values, weight, bias and score."""
        grad_keys, grad_values, grad_score = self._grads
        end, width = slice(sum(steps.sizes)), self.keys.shape[3]
        grad_queries = self._grad_queries[:, end]
        grad_weight = torch.bmm(seen[:, end, :width].transpose(1, 2), grad_queries)
        return grad_keys, grad_values, grad_weight, grad_queries.sum(1), grad_score
