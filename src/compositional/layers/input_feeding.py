"""An LSTM decoder with input feeding (Luong, Pham and Manning 2015, section 3.3): what a step decides is an input of the next.

The steps cannot be computed at once, but most of their gradient can: those of weights, and with dot products of keys and values,
are one product over all steps. Only the gradient that is handed from step to step is computed in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from compositional.layers import lstm
from compositional.layers.functional import aligned, first_gradient
from compositional.layers.looking import Additive, DotProduct
from compositional.layers.ragged import Steps


class _InputFeeding(torch.autograd.Function):
    """Forward and backward passes of `input_feeding`."""

    @staticmethod
    def forward(
        ctx, gates_of_symbols, hidden, cell, decision, carried, keys, values, blocked, combined, bias, keep_in, keep_out, steps,
        *scoring,
    ):  # fmt: skip
        runs, _, width = hidden.shape
        sizes, first = steps.sizes, slice(hidden.shape[1])
        advance, _ = lstm.passes(hidden)
        places = aligned(sum(sizes))
        attention = (Additive if scoring else DotProduct)(keys, values, blocked, places, *scoring)
        read, seen = hidden.new_empty(2, runs, places, 2 * width)  # [decision, hidden] before and [hidden, context] in a step
        gates = hidden.new_empty(runs, places, 4 * width)
        hiddens, decisions = hidden.new_empty(2, runs, places, width)
        looks = hidden.new_empty(runs, places, keys.shape[2])
        read[:, first, :width], read[:, first, width:] = decision * keep_in[:, first], hidden
        cells, squashed, start = [cell], [], 0
        for size, following in zip(sizes, (*sizes[1:], 0), strict=True):
            now, later = slice(start, start + size), slice(start + size, start + size + following)
            torch.baddbmm(gates_of_symbols[:, now], read[:, now], carried, out=gates[:, now])
            new_cell, new_squashed = advance(gates, cells[-1], hiddens, read, start, size, following)
            cells.append(new_cell)
            squashed.append(new_squashed)
            seen[:, now, :width] = hiddens[:, now]
            attention.attend(hiddens, looks, seen, start, size)
            decision = torch.baddbmm(bias.unsqueeze(1), seen[:, now], combined).mul_(keep_out[:, now])
            decisions[:, now] = decision
            read[:, later, :width] = decision[:, :following] * keep_in[:, later]
            start += size
        ctx.save_for_backward(carried, combined, keep_in, keep_out)
        ctx.kept, ctx.steps = (attention, read, seen, gates, looks, cells, squashed), steps
        last = hiddens[:, now], cells[-1], decisions[:, now]
        ctx.mark_non_differentiable(*last)
        return decisions[:, :start], looks[:, :start], *last

    @staticmethod
    @first_gradient
    def backward(ctx, grad_decisions, grad_looks, *_):
        if ctx.kept is None:
            raise RuntimeError("input_feeding: the gradient can be taken once, it is written where the gates were")
        carried, combined, keep_in, keep_out = ctx.saved_tensors
        (attention, read, seen, gates, looks, cells, squashed), ctx.kept = ctx.kept, None
        back = lstm.passes(seen)[1]
        runs, width, sizes, start = len(seen), combined.shape[2], ctx.steps.sizes, sum(ctx.steps.sizes)
        to_read, to_seen = (weight.transpose(1, 2).contiguous() for weight in (carried, combined))
        grad_combined, grad_hiddens = seen.new_empty(2, *seen.shape[:2], width)
        grad_seen, grad_looks = torch.empty_like(seen), grad_looks.contiguous()
        grad_cell, grad_read = torch.zeros_like(cells[0]), read.new_empty(runs, 0, 2 * width)
        for number in range(len(sizes) - 1, -1, -1):
            size, following = sizes[number], grad_read.shape[1]
            now, later = slice(start - size, start), slice(start, start + following)
            start = now.start
            grad = grad_decisions[:, now].clone()
            grad[:, :following].addcmul_(grad_read[..., :width], keep_in[:, later])
            grad_combined[:, now] = grad.mul_(keep_out[:, now])
            torch.bmm(grad_combined[:, now], to_seen, out=grad_seen[:, now])
            grad_hidden = attention.gradient(looks, grad_looks, grad_seen, start, size)
            grad_hiddens[:, now] = grad_hidden.add_(grad_seen[:, now, :width])
            back(gates, cells[number], squashed[number], grad_hiddens, grad_read[..., width:].contiguous(), grad_cell, start)
            grad_read = torch.bmm(gates[:, now], to_read)
        grad_keys, grad_values, *grad_scoring = attention.gradients(seen, looks, grad_seen, ctx.steps)
        read, seen, gates, grad_combined = (of[:, : sum(sizes)] for of in (read, seen, gates, grad_combined))
        grad_carried, grad_weight = torch.bmm(read.transpose(1, 2), gates), torch.bmm(seen.transpose(1, 2), grad_combined)
        grad_hidden = grad_read[..., width:]
        return (
            gates, grad_hidden, None, None, grad_carried, grad_keys, grad_values, None, grad_weight, grad_combined.sum(1),
            None, None, None, *grad_scoring,
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
    scoring: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """All steps of an LSTM decoder whose decision is an input of the next step.

    A step reads the last decision and hidden state, updates the hidden state h, attends with h to the input words, and decides
    by an affine map of h and the attended values. N positions of B rows are in step order.

    Args:
        gates: what previous symbols and bias add to the gates, (R, N, 4 H): input, forget, output, candidate.
        state: hidden state, cell state and decision before the first step, (R, B, H) each. Only the first has a gradient.
        carried: weights (R, 2 H, 4 H) from the last decision and the hidden state to the gates.
        keys, values: (R, B, S, H).
        blocked: what is added to the scores, (R, B, 1, S): 0, or minus infinity.
        combined: weights (R, 2 H, H) and bias (R, H) of the decision.
        kept: factors (R, N, H) of the last decision as an input, and of a decision.
        steps: the steps of the rows.
        scoring: W (R, H, H), b (R, H) and w (R, H) of additive attention (`looking.Additive`); none: attention by dot products.

    Returns:
        Decisions (R, N, H), attention weights (R, N, S), and the state after the last step, which has no gradient.
    """
    gates, carried = lstm.for_step(gates), lstm.for_step(carried)
    decisions, looks, *last = _InputFeeding.apply(
        gates, *state, carried, keys, values, blocked, *combined, *kept, steps, *scoring
    )
    return decisions, looks, tuple(last)
