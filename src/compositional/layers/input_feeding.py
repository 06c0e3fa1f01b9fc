"""An LSTM decoder with input feeding (Luong, Pham and Manning 2015, section 3.3): what a step decides is an input of the next.

The steps cannot be computed at once, but most of their gradient can: those of weights, keys and values are one product over all
steps. Only the gradient that is handed from step to step is computed in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from compositional.layers import lstm
from compositional.layers.functional import aligned
from compositional.layers.ragged import Steps


def _by_row(values: Tensor, steps: Steps, rows: int) -> Tensor:
    """Values (R, N, K) in step order as (R * B, T, K), with zeros after a row's end."""
    row, step = steps.positions.unbind(1)
    grid = values.new_zeros(values.shape[0], rows, len(steps.sizes), values.shape[2])
    grid[:, row, step] = values
    return grid.flatten(0, 1)


class _InputFeeding(torch.autograd.Function):
    """Forward and backward passes of `input_feeding`."""

    @staticmethod
    def forward(
        ctx, gates_of_symbols, hidden, cell, decision, carried, keys, values, blocked, combined, bias, keep_in, keep_out, steps
    ):
        runs, _, width = hidden.shape
        sizes, size_before = steps.sizes, hidden.shape[1]
        advance, _ = lstm.passes(hidden)
        places = aligned(sum(sizes))
        read, seen = hidden.new_empty(2, runs, places, 2 * width)  # [decision, hidden] before and [hidden, context] in a step
        gates = hidden.new_empty(runs, places, 4 * width)
        hiddens, decisions = hidden.new_empty(2, runs, places, width)
        looks = hidden.new_empty(runs, places, keys.shape[2])
        read[:, :size_before, :width], read[:, :size_before, width:] = decision * keep_in[:, :size_before], hidden
        cells, squashed, start = [cell], [], 0
        for size, following in zip(sizes, (*sizes[1:], 0), strict=True):
            now, later = slice(start, start + size), slice(start + size, start + size + following)
            if not start or size < size_before:
                key, value, block = (of[:, :size].flatten(0, 1) for of in (keys, values, blocked))
                size_before = size
            torch.baddbmm(gates_of_symbols[:, now], read[:, now], carried, out=gates[:, now])
            new_cell, new_squashed = advance(gates, cells[-1], hiddens, read, start, size, following)
            cells.append(new_cell)
            squashed.append(new_squashed)
            scores = torch.baddbmm(block, hiddens[:, now].reshape(-1, 1, width), key.transpose(1, 2))
            look = scores.softmax(2)
            looks[:, now] = look.view(runs, size, -1)
            seen[:, now, :width] = hiddens[:, now]
            seen[:, now, width:] = torch.bmm(look, value).view(runs, size, -1)
            decision = torch.baddbmm(bias.unsqueeze(1), seen[:, now], combined).mul_(keep_out[:, now])
            decisions[:, now] = decision
            read[:, later, :width] = decision[:, :following] * keep_in[:, later]
            start += size
        ctx.save_for_backward(carried, keys, values, combined, keep_in, keep_out)
        ctx.kept, ctx.steps = (read, seen, gates, looks, cells, squashed), steps
        last = hiddens[:, now], cells[-1], decisions[:, now]
        ctx.mark_non_differentiable(*last)
        return decisions[:, :start], looks[:, :start], *last

    @staticmethod
    def backward(ctx, grad_decisions, grad_looks, *_):
        if ctx.kept is None:
            raise RuntimeError("input_feeding: the gradient can be taken once, it is written where the gates were")
        carried, keys, values, combined, keep_in, keep_out = ctx.saved_tensors
        (read, seen, gates, looks, cells, squashed), ctx.kept = ctx.kept, None
        back = lstm.passes(keys)[1]
        runs, rows, words, width = keys.shape
        sizes, start, size_after = ctx.steps.sizes, sum(ctx.steps.sizes), 0
        to_read, to_seen = (weight.transpose(1, 2).contiguous() for weight in (carried, combined))
        grad_combined, grad_hiddens = seen.new_empty(2, *seen.shape[:2], width)
        grad_seen, grad_scores = torch.empty_like(seen), torch.empty_like(looks)
        grad_cell, grad_read = torch.zeros_like(cells[0]), read.new_empty(runs, 0, 2 * width)
        for number in range(len(sizes) - 1, -1, -1):
            size, following = sizes[number], grad_read.shape[1]
            now, later = slice(start - size, start), slice(start, start + following)
            start = now.start
            if size > size_after:
                key, value = (of[:, :size].flatten(0, 1) for of in (keys, values))
                size_after = size
            grad = grad_decisions[:, now].clone()
            grad[:, :following].addcmul_(grad_read[..., :width], keep_in[:, later])
            grad_combined[:, now] = grad.mul_(keep_out[:, now])
            torch.bmm(grad_combined[:, now], to_seen, out=grad_seen[:, now])
            look = looks[:, now].reshape(-1, 1, words)
            grad_look = torch.baddbmm(
                grad_looks[:, now].reshape(-1, 1, words), grad_seen[:, now, width:].reshape(-1, 1, width), value.transpose(1, 2)
            ).mul_(look)
            grad_score = grad_look.addcmul_(look, grad_look.sum(2, keepdim=True), value=-1)
            grad_scores[:, now] = grad_score.view(runs, size, words)
            grad_hiddens[:, now] = torch.bmm(grad_score, key).view(runs, size, width).add_(grad_seen[:, now, :width])
            back(gates, cells[number], squashed[number], grad_hiddens, grad_read[..., width:].contiguous(), grad_cell, start)
            grad_read = torch.bmm(gates[:, now], to_read)
        end = slice(sum(sizes))
        read, seen, gates, looks, grad_combined, grad_seen, grad_scores = (
            of[:, end] for of in (read, seen, gates, looks, grad_combined, grad_seen, grad_scores)
        )
        grad_keys, grad_values = (
            torch.bmm(_by_row(one, ctx.steps, rows).transpose(1, 2), _by_row(other, ctx.steps, rows)).view_as(keys)
            for one, other in ((grad_scores, seen[..., :width]), (looks, grad_seen[..., width:]))
        )
        grad_carried, grad_weight = torch.bmm(read.transpose(1, 2), gates), torch.bmm(seen.transpose(1, 2), grad_combined)
        grad_hidden = grad_read[..., width:]
        return (
            gates, grad_hidden, None, None, grad_carried, grad_keys, grad_values, None, grad_weight, grad_combined.sum(1),
            None, None, None,
        )  # fmt: skip


def input_feeding(
    gates: Tensor,
    state: Sequence[Tensor],
    carried: Tensor,
    keys: Tensor,
    values: Tensor,
    blocked: Tensor,
    combined: tuple[Tensor, Tensor],
    kept: tuple[Tensor, Tensor],
    steps: Steps,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """All steps of an LSTM decoder whose decision is an input of the next step.

    A step reads the last decision and hidden state, updates the hidden state h, attends with h to the input words, and decides
    by an affine map of h and the attended values. N positions of B rows are in step order.

    Args:
        gates: what previous symbols and bias add to the gates, (R, N, 4 H): input, forget, output, candidate.
        state: hidden state, cell state and decision before the first step, (R, B, H) each. Only the first has a gradient.
        carried: weights (R, 2 H, 4 H) from the last decision and the hidden state to the gates.
        keys, values: (R, B, S, H).
        blocked: what is added to the scores, (R, B, 1, S).
        combined: weights (R, 2 H, H) and bias (R, H) of the decision.
        kept: factors (R, N, H) of the last decision as an input, and of a decision.
        steps: the steps of the rows.

    Returns:
        Decisions (R, N, H), attention weights (R, N, S), and the state after the last step, which has no gradient.
    """
    gates, carried = lstm.for_step(gates), lstm.for_step(carried)
    decisions, looks, *last = _InputFeeding.apply(gates, *state, carried, keys, values, blocked, *combined, *kept, steps)
    return decisions, looks, tuple(last)
