"""Layers with a leading run axis: the same code computes one run or many.

Every weight has shape (R, ...) and every activation (R, B, ...), R being the number of runs that train together. Nothing
here mixes runs: all products are batched over R, all reductions stay inside a run. On one CPU thread a batched product
equals the single product of the same shape bit for bit (tests/test_packed.py), so a run's numbers do not depend on R.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Affine map of the last axis: (R, ..., I) x (R, I, O) + (R, O) -> (R, ..., O)."""
    runs, features = inputs.shape[0], inputs.shape[-1]
    rows = inputs.reshape(runs, -1, features)
    outputs = torch.bmm(rows, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight)
    return outputs.view(*inputs.shape[:-1], weight.shape[-1])


def embedding(tokens: Tensor, table: Tensor) -> Tensor:
    """Rows of each run's own table: tokens (R, ...) of integers, table (R, V, D) -> (R, ..., D)."""
    runs, vocabulary, width = table.shape
    # One product with a one-hot matrix: its gradient is a product too, hence deterministic on every device,
    # where the scatter-add of an index lookup is not. Vocabularies here are tens of words.
    flat = tokens.reshape(runs, -1)
    one_hot = functional.one_hot(flat, vocabulary).to(table.dtype)
    return torch.bmm(one_hot, table).view(*tokens.shape, width)


def conv2d(images: Tensor, weight: Tensor, bias: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
    """Convolution: (R, B, C, H, W) with weight (R, O, C, K, K) and bias (R, O) -> (R, B, O, H', W').

    One library call a run: grouped convolutions are slower, and this way a run's arithmetic cannot depend on R.
    """
    return torch.stack(
        [
            functional.conv2d(image, kernel, offset, stride=stride, padding=padding)
            for image, kernel, offset in zip(images, weight, bias, strict=True)
        ]
    )


def _tanh(values: Tensor) -> Tensor:
    """Hyperbolic tangent as 2 sigmoid(2 x) - 1: several times faster than the library's own on the CPU, equal to 1e-7."""
    if values.device.type == "cuda":
        return values.tanh()
    return (values * 2).sigmoid_().mul_(2).sub_(1)


class _LSTM(torch.autograd.Function):
    """Forward and backward passes of `lstm`. Each step works on what fits the cache; the gradient of the recurrent
    weights is one product over all steps instead of one a step."""

    @staticmethod
    def forward(ctx, gates_in, hidden, cell, weight, sizes):
        width, constant = hidden.shape[2], gates_in.shape[1] == 1
        gates, cells, squashed, start = [], [], [], 0
        outputs = hidden.new_empty(hidden.shape[0], sum(sizes), width)
        new_hidden, new_cell = hidden, cell
        for size in sizes:
            step_in = gates_in if constant else gates_in[:, start : start + size]
            gate = torch.baddbmm(step_in, new_hidden[:, :size], weight)
            gate[..., 3 * width :].mul_(2)
            gate.sigmoid_()
            gate[..., 3 * width :].mul_(2).sub_(1)  # the candidate's tanh, as in _tanh
            into, keep, out, candidate = gate.split(width, 2)
            new_cell = torch.mul(keep, new_cell[:, :size]).addcmul_(into, candidate)
            squashed.append(_tanh(new_cell))
            new_hidden = torch.mul(out, squashed[-1], out=outputs[:, start : start + size])
            gates.append(gate)
            cells.append(new_cell)
            start += size
        # The output must go through save_for_backward: kept on ctx itself it would be a cycle that keeps every step's memory.
        ctx.save_for_backward(outputs, hidden, cell, weight)
        ctx.steps, ctx.sizes, ctx.constant = (gates, cells, squashed), sizes, constant
        return outputs

    @staticmethod
    def backward(ctx, grad_outputs):
        outputs, hidden, cell, weight = ctx.saved_tensors
        gates, cells, squashed = ctx.steps
        sizes, width = ctx.sizes, hidden.shape[2]
        sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
        tanh_backward = torch.ops.aten.tanh_backward.grad_input
        transposed = weight.transpose(1, 2)
        grad_gates = hidden.new_empty(hidden.shape[0], sum(sizes), 4 * width)
        grad_hidden, grad_cell, end = None, None, sum(sizes)
        for step in range(len(sizes) - 1, -1, -1):
            size = sizes[step]
            grad_output, grad_gate = grad_outputs[:, end - size : end], grad_gates[:, end - size : end]
            end -= size
            if grad_hidden is not None:
                grad_output = grad_output.clone()
                grad_output[:, : grad_hidden.shape[1]] += grad_hidden
            into, keep, out, candidate = gates[step].split(width, 2)
            grad_new_cell = grad_output * out
            tanh_backward(grad_new_cell, squashed[step], grad_input=grad_new_cell)
            if grad_cell is not None:
                grad_new_cell[:, : grad_cell.shape[1]] += grad_cell
            grad_into, grad_keep, grad_out, grad_candidate = grad_gate.split(width, 2)
            before = cell if step == 0 else cells[step - 1]
            torch.mul(grad_new_cell, candidate, out=grad_into)
            torch.mul(grad_new_cell, before[:, :size], out=grad_keep)
            torch.mul(grad_output, squashed[step], out=grad_out)
            torch.mul(grad_new_cell, into, out=grad_candidate)
            sigmoids = grad_gate[..., : 3 * width]
            sigmoid_backward(sigmoids, gates[step][..., : 3 * width], grad_input=sigmoids)
            tanh_backward(grad_candidate, candidate, grad_input=grad_candidate)
            grad_cell = grad_new_cell.mul_(keep)
            grad_hidden = torch.bmm(grad_gate, transposed)
        starts = accumulate(sizes, initial=0)
        before = [hidden, *(outputs[:, start : start + size] for start, size in zip(starts, sizes[1:], strict=False))]
        grad_weight = torch.bmm(torch.cat(before, 1).transpose(1, 2), grad_gates)
        if ctx.constant:
            grad_gates = grad_gates.sum(1, keepdim=True)
        return grad_gates, grad_hidden, grad_cell, grad_weight, None


def lstm(gates_in: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, sizes: Sequence[int]) -> Tensor:
    """Long short-term memory over sequences that are sorted by length, longest first, without computing any padding.

    At step t only the first `sizes[t]` sequences are still running (`sizes` never rises and starts with all B of them).
    Rows are ordered by step, then by sequence; their number is N = sum(sizes).

    Args:
        gates_in: what the inputs and the bias add to the gates: (R, N, 4 H), or (R, 1, 4 H) if constant over rows.
            Gates stand in the order input, forget, output, candidate.
        hidden, cell: initial states, (R, B, H).
        weight: recurrent weights, (R, H, 4 H).

    Returns:
        The hidden state after every step, (R, N, H).
    """
    return _LSTM.apply(gates_in, hidden, cell, weight, tuple(sizes))


class _Exchange(torch.autograd.Function):
    """A gather by an index that is its own inverse, so that its gradient is the same gather."""

    @staticmethod
    def forward(ctx, values, index):
        ctx.save_for_backward(index)
        return values.gather(2, index.expand_as(values))

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.gather(2, index.expand_as(grad)), None


def exchange(values: Tensor, index: Tensor) -> Tensor:
    """values[r, b, index[r, b, s]] for values (R, B, S, D) and an involution index (R, B, S, 1)."""
    return _Exchange.apply(values, index)


class _Reorder(torch.autograd.Function):
    """Permutation of the rows whose gradient is the inverse permutation: a gather, not a scatter."""

    @staticmethod
    def forward(ctx, rows, order, inverse):
        ctx.save_for_backward(order, inverse)
        return rows.index_select(1, order)

    @staticmethod
    def backward(ctx, grad):
        _, inverse = ctx.saved_tensors
        return grad.index_select(1, inverse), None, None


def reorder(rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
    """Permute axis 1: (R, N, ...)[:, order]; `inverse` must be the inverse permutation of `order`."""
    return _Reorder.apply(rows, order, inverse)
