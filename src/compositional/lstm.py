"""Long short-term memory (Hochreiter and Schmidhuber 1997) along the run axis, for sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from compositional import lstm_compiled


def step(gates: Tensor, cell: Tensor, hidden: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """One step after its product, with the library's operations.

    Args:
        gates: (R, S, 4 H) before their nonlinearity, which is applied in place. Input, forget, output and candidate gate; the
            candidate's hyperbolic tangent is 2 sigmoid(2 x) - 1, the inner 2 being in its weights.
        cell: (R, >= S, H), of the step before.
        hidden: (R, N, H), gets the new hidden states in S rows from `start`.

    Returns:
        The new cell state c and sigmoid(2 c), (R, S, H).
    """
    size = gates.shape[1]
    into, keep, out, candidate = gates.sigmoid_().chunk(4, 2)
    new_cell = torch.mul(keep, cell[:, :size]).addcmul_(into, 2 * candidate - 1)
    squashed = (2 * new_cell).sigmoid_()
    torch.mul(out, 2 * squashed - 1, out=hidden[:, start : start + size])
    return new_cell, squashed


def step_gradient(
    gates: Tensor, cell: Tensor, squashed: Tensor, grad_hidden: Tensor, grad_cell: Tensor, grad_gates: Tensor, start: int
) -> None:
    """Gradient of `step`, with the library's operations.

    Args:
        gates, cell, squashed: what `step` left, and the cell state it began with.
        grad_hidden: (R, S, H), with respect to the new hidden state.
        grad_cell: (R, >= S, H), with respect to the new cell state; in place, to the cell state before.
        grad_gates: (R, N, 4 H), gets the gradient with respect to the gates before their nonlinearity, in S rows from `start`.
    """
    size = gates.shape[1]
    into, keep, out, candidate = gates.chunk(4, 2)
    end = 2 * squashed - 1
    grad = grad_hidden * out * (1 - end * end) + grad_cell[:, :size]
    grad_into, grad_keep, grad_out, grad_candidate = grad_gates[:, start : start + size].chunk(4, 2)
    torch.mul(grad, 2 * candidate - 1, out=grad_into)
    torch.mul(grad, cell[:, :size], out=grad_keep)
    torch.mul(grad_hidden, end, out=grad_out)
    torch.mul(grad, 2 * into, out=grad_candidate)
    grad_gates[:, start : start + size] *= gates * (1 - gates)
    torch.mul(grad, keep, out=grad_cell[:, :size])


class _LSTM(torch.autograd.Function):
    """Forward and backward passes of `lstm`. A step is one product of [inputs, 1, hidden state] with the stacked weights, works
    on what fits the cache, and the gradient of the weights is one product over all steps instead of one a step."""

    @staticmethod
    def forward(ctx, inputs, hidden, cell, weight, sizes):
        advance = lstm_compiled.step if hidden.device.type == "cpu" else step
        runs, width = hidden.shape[0], hidden.shape[2]
        before = weight.shape[1] - width  # where the hidden state stands in a row
        # Every run's rows begin at a multiple of 64 bytes, or the last bits of products could depend on its place among others.
        rows = hidden.new_empty(runs, -(-sum(sizes) // 16) * 16, weight.shape[1])[:, : sum(sizes)]
        if inputs is not None:
            rows[..., : before - 1] = inputs
        rows[..., before - 1] = 1
        rows[:, : sizes[0], before:] = hidden
        outputs = hidden.new_empty(runs, sum(sizes), width)
        gates, cells, squashed, start = [], [cell.detach()], [], 0
        for size, following in zip(sizes, (*sizes[1:], 0), strict=True):
            gates.append(torch.bmm(rows[:, start : start + size], weight))
            new_cell, new_squashed = advance(gates[-1], cells[-1], outputs, start)
            cells.append(new_cell)
            squashed.append(new_squashed)
            rows[:, start + size : start + size + following, before:] = outputs[:, start : start + following]
            start += size
        ctx.save_for_backward(weight)
        ctx.steps, ctx.sizes, ctx.has_inputs = (rows, gates, cells, squashed), sizes, inputs is not None
        return outputs

    @staticmethod
    def backward(ctx, grad_outputs):
        (weight,) = ctx.saved_tensors
        rows, gates, cells, squashed = ctx.steps
        back = lstm_compiled.step_gradient if rows.device.type == "cpu" else step_gradient
        width = cells[0].shape[2]
        before = weight.shape[1] - width
        # Of the inputs, where there are any, and of the hidden state.
        transposed = torch.cat([weight[:, : before - 1], weight[:, before:]], 1).transpose(1, 2)
        grad_inputs = rows.new_empty(*rows.shape[:2], before - 1) if ctx.has_inputs else None
        grad_gates, grad_cell = rows.new_empty(*rows.shape[:2], 4 * width), torch.zeros_like(cells[0])
        grad_rows, end = rows.new_empty(rows.shape[0], 0, width), sum(ctx.sizes)
        for number in range(len(ctx.sizes) - 1, -1, -1):
            now = slice(end - ctx.sizes[number], end)
            end = now.start
            grad_hidden = grad_outputs[:, now].clone(memory_format=torch.contiguous_format)
            grad_hidden[:, : grad_rows.shape[1]].add_(grad_rows[..., -width:])
            back(gates[number], cells[number], squashed[number], grad_hidden, grad_cell, grad_gates, end)
            grad_rows = torch.bmm(grad_gates[:, now], transposed)
            if ctx.has_inputs:
                grad_inputs[:, now] = grad_rows[..., : before - 1]
        grad_weight = torch.bmm(rows.transpose(1, 2), grad_gates)
        return grad_inputs, grad_rows[..., -width:], grad_cell, grad_weight, None


def lstm(inputs: Tensor | None, hidden: Tensor, cell: Tensor, weight: Tensor, sizes: Sequence[int]) -> Tensor:
    """Long short-term memory over sequences that are sorted by length, longest first, without computing any padding.

    At step t only the first `sizes[t]` sequences are still running (`sizes` never rises and starts with all B of them).
    Rows are ordered by step, then by sequence; their number is N = sum(sizes).

    Args:
        inputs: (R, N, I), or None: no inputs, I = 0.
        hidden, cell: initial states, (R, B, H).
        weight: (R, I + 1 + H, 4 H): input weights, bias and recurrent weights, stacked. Gates stand in the order input,
            forget, output, candidate.

    Returns:
        The hidden state after every step, (R, N, H).
    """
    others, candidate = weight.tensor_split([3 * hidden.shape[2]], 2)
    return _LSTM.apply(inputs, hidden, cell, torch.cat([others, 2 * candidate], 2), tuple(sizes))
