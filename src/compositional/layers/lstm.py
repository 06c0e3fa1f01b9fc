"""Long short-term memory (Hochreiter and Schmidhuber 1997) along the run axis, for sequences of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from compositional.layers import lstm_compiled
from compositional.layers.compiled import is_compiled
from compositional.layers.functional import aligned, first_gradient


def for_step(values: Tensor) -> Tensor:
    """Gates before their nonlinearity, or weights to them, (R, n, 4 H), as `step` needs them: the candidate is doubled."""
    others, candidate = values.tensor_split([values.shape[2] // 4 * 3], 2)
    return torch.cat([others, 2 * candidate], 2)


def step(
    gates: Tensor, cell: Tensor, outputs: Tensor, rows: Tensor, start: int, size: int, following: int
) -> tuple[Tensor, Tensor]:
    """One step of S = `size` sequences after the product with the weights, computed with PyTorch's operations.

    Args:
        gates: (R, N, 4 H), input, forget, output and candidate gate before their nonlinearity, which is applied in place to S
            rows from `start`. The candidate's hyperbolic tangent is 2 sigmoid(2 x) - 1; its weights contain the inner factor 2.
        cell: (R, >= S, H), the cell state before the step.
        outputs: (R, N, H); the new hidden states are written to the same rows.
        rows: (R, >= N, K); the new hidden states of the first `following` sequences are written to the last H columns of the next
            step's rows.

    Returns:
        The new cell state c and sigmoid(2 c), (R, S, H) each.
    """
    now, width = slice(start, start + size), cell.shape[2]
    into, keep, out, candidate = gates[:, now].sigmoid_().chunk(4, 2)
    new_cell = torch.mul(keep, cell[:, :size]).addcmul_(into, 2 * candidate - 1)
    squashed = (2 * new_cell).sigmoid_()
    hidden = torch.mul(out, 2 * squashed - 1)
    outputs[:, now] = hidden
    rows[:, now.stop : now.stop + following, -width:] = hidden[:, :following]
    return new_cell, squashed


def step_gradient(
    gates: Tensor, cell: Tensor, squashed: Tensor, grad_outputs: Tensor, grad_later: Tensor, grad_cell: Tensor, start: int
) -> None:
    """Gradient of `step`, computed with PyTorch's operations.

    Args:
        gates: as `step` left them. The S rows from `start` are replaced by the gradient with respect to the gates before their
            nonlinearity.
        cell: the cell state before the step.
        squashed: sigmoid(2 c) as `step` returned it.
        grad_outputs: (R, N, H), the gradient with respect to all outputs.
        grad_later: (R, <= S, H), the gradient with respect to the new hidden states with which the next step starts.
        grad_cell: (R, >= S, H), the gradient with respect to the new cell state; it is replaced by that of the cell state before.
    """
    size = squashed.shape[1]
    now = slice(start, start + size)
    into, keep, out, candidate = gates[:, now].chunk(4, 2)
    grad_hidden = grad_outputs[:, now].clone()
    grad_hidden[:, : grad_later.shape[1]] += grad_later
    end = 2 * squashed - 1
    grad = grad_hidden * out * (1 - end * end) + grad_cell[:, :size]
    grad_cell[:, :size] = grad * keep
    tanh = 2 * candidate - 1
    grads = torch.cat([grad * tanh, grad * cell[:, :size], grad_hidden * end, grad * 2 * into], 2)
    gates[:, now] *= 1 - gates[:, now]
    gates[:, now] *= grads


def passes(values: Tensor) -> tuple[Callable, Callable]:
    """`step` and `step_gradient` for tensors like `values`: compiled for float32 on the CPU."""
    if is_compiled(values):
        return lstm_compiled.step, lstm_compiled.step_gradient
    return step, step_gradient


class _LSTM(torch.autograd.Function):
    """Forward and backward passes of `lstm`.

    Each step is one product of [inputs, 1, hidden state] with the stacked weights, on data that fit the cache. The gradient of
    the weights is one product over all steps instead of one per step.
    """

    @staticmethod
    def forward(ctx, inputs, hidden, cell, weight, sizes):
        advance, _ = passes(hidden)
        runs, width = hidden.shape[0], hidden.shape[2]
        before = weight.shape[1] - width  # where the hidden state starts in a row
        rows = hidden.new_empty(runs, aligned(sum(sizes)), weight.shape[1])
        if inputs is not None:
            rows[:, : sum(sizes), : before - 1] = inputs
        rows[..., before - 1] = 1
        rows[:, : sizes[0], before:] = hidden
        gates = hidden.new_empty(*rows.shape[:2], 4 * width)
        outputs = hidden.new_empty(runs, sum(sizes), width)
        cells, squashed, start = [cell.detach()], [], 0
        for size, following in zip(sizes, (*sizes[1:], 0), strict=True):
            now = slice(start, start + size)
            torch.bmm(rows[:, now], weight, out=gates[:, now])
            new_cell, new_squashed = advance(gates, cells[-1], outputs, rows, start, size, following)
            cells.append(new_cell)
            squashed.append(new_squashed)
            start += size
        ctx.save_for_backward(weight)
        ctx.steps, ctx.sizes, ctx.has_inputs = (rows, gates, cells, squashed), sizes, inputs is not None
        return outputs

    @staticmethod
    @first_gradient
    def backward(ctx, grad_outputs):
        (weight,) = ctx.saved_tensors
        if ctx.steps is None:
            raise RuntimeError("lstm: the gradient can be taken once, it is written where the gates were")
        (rows, gates, cells, squashed), ctx.steps = ctx.steps, None
        _, back = passes(rows)
        width, start = cells[0].shape[2], sum(ctx.sizes)
        before = weight.shape[1] - width
        # Made contiguous for the hidden state, which needs a product per step; not for the inputs, which need only one: with few
        # inputs it would take longer.
        to_inputs, to_hidden = weight[:, : before - 1].transpose(1, 2), weight[:, before:].transpose(1, 2).contiguous()
        grad_outputs, grad_cell = grad_outputs.contiguous(), torch.zeros_like(cells[0])
        grad_hidden = rows.new_empty(rows.shape[0], 0, width)
        rows, grad_gates = rows[:, :start], gates[:, :start]
        for number in range(len(ctx.sizes) - 1, -1, -1):
            now = slice(start - ctx.sizes[number], start)
            start = now.start
            back(gates, cells[number], squashed[number], grad_outputs, grad_hidden, grad_cell, start)
            grad_hidden = torch.bmm(grad_gates[:, now], to_hidden)
        grad_inputs = torch.bmm(grad_gates, to_inputs) if ctx.has_inputs else None
        return grad_inputs, grad_hidden, grad_cell, torch.bmm(rows.transpose(1, 2), grad_gates), None


def lstm(inputs: Tensor | None, hidden: Tensor, cell: Tensor, weight: Tensor, sizes: Sequence[int]) -> Tensor:
    """Long short-term memory over sequences that are sorted by length, longest first, without computing any padding.

    At step t only the first `sizes[t]` sequences are still running (`sizes` starts with B and never rises). Rows are ordered by
    step, then by sequence; their number is N = sum(sizes).

    Args:
        inputs: (R, N, I); None: no inputs, I = 0.
        hidden, cell: initial states, (R, B, H).
        weight: (R, I + 1 + H, 4 H): input weights, bias and recurrent weights, stacked. The order of the gates is input, forget,
            output, candidate.

    Returns:
        The hidden state after every step, (R, N, H).
    """
    return _LSTM.apply(inputs, hidden, cell, for_step(weight), tuple(sizes))
