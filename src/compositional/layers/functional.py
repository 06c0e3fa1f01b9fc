"""Layers with a leading run axis: the same code computes one run or many.

Every weight has shape (R, ...) and every activation (R, B, ...), R being the number of runs that train together. Nothing
here mixes runs: all products are batched over R, all reductions stay inside a run. On one CPU thread a batched product
equals the single product of the same shape bit for bit (test_functional.py), so a run's numbers do not depend on R.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def aligned(size: int) -> int:
    """The next multiple of 16. With so many float32 numbers a run, every run's begin at a multiple of 64 bytes; where they do
    not, a product's last bits can depend on a run's place among the others."""
    return 16 * math.ceil(size / 16)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Affine map of the last axis: (R, ..., I) x (R, I, O) + (R, O) -> (R, ..., O)."""
    if weight.shape[-1] == 1:
        # The library computes a lone product with one column in another way than several.
        return padded_linear(inputs, weight, bias)
    runs, features = inputs.shape[0], inputs.shape[-1]
    rows = inputs.reshape(runs, -1, features)
    outputs = torch.bmm(rows, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight)
    return outputs.view(*inputs.shape[:-1], weight.shape[-1])


def padded_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` for any widths, (R, ..., I) x (R, I, O) + (R, O) -> (R, ..., O): filled up to multiples of 16, so that every
    run's rows lie in memory alike, aligned to 64 bytes.

    Where they do not, a product's last bits can depend on a run's place among the others.
    """
    features, outputs = -weight.shape[1] % 16, -weight.shape[2] % 16
    if features:
        inputs = functional.pad(inputs, (0, features))
    if features or outputs:
        weight = functional.pad(weight, (0, outputs, 0, features))
    if bias is not None and outputs:
        bias = functional.pad(bias, (0, outputs))
    return linear(inputs, weight, bias)[..., : weight.shape[2] - outputs]


def padding_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to the scores of input positions (...): 0 where the mask holds, minus infinity at padding."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


SMALL_VOCABULARY = 64


def embedding(tokens: Tensor, table: Tensor) -> Tensor:
    """Rows of each run's own table: tokens (R, ...) of integers, table (R, V, D) -> (R, ..., D)."""
    runs, vocabulary, width = table.shape
    flat = tokens.reshape(runs, -1)
    if vocabulary <= SMALL_VOCABULARY:
        # One product with a one-hot matrix, whose gradient is a product too: for tens of words the fastest way.
        one_hot = functional.one_hot(flat, vocabulary).to(table.dtype)
        return torch.bmm(one_hot, table).view(*tokens.shape, width)
    # The library's lookup in all runs' tables at once. Its gradient adds up the rows of a word in the order of their positions
    # (on CUDA after a sort), so it is deterministic and each run's own.
    starts = torch.arange(runs, device=tokens.device).unsqueeze(1) * vocabulary
    return functional.embedding(flat + starts, table.reshape(-1, width)).view(*tokens.shape, width)


def _each(results: list[Tensor]) -> Tensor:
    """Results of single runs along a run axis; a lone run's is not copied."""
    return torch.stack(results) if len(results) > 1 else results[0].unsqueeze(0)


def conv2d(images: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0) -> Tensor:
    """Convolution: (R, B, C, H, W) with weight (R, O, C, K, K) and bias (R, O) -> (R, B, O, H', W').

    One library call a run: grouped convolutions are slower, and this way a run's arithmetic cannot depend on R.
    """
    biases = [None] * len(weight) if bias is None else bias
    return _each(
        [
            functional.conv2d(image, kernel, offset, stride=stride, padding=padding)
            for image, kernel, offset in zip(images, weight, biases, strict=True)
        ]
    )


def batch_norm(
    values: Tensor, weight: Tensor, bias: Tensor, mean: Tensor | None = None, variance: Tensor | None = None
) -> Tensor:
    """Batch normalization of (R, B, C, H, W) with weight and bias (R, C); each run has its own statistics.

    mean, variance: (R, C), what to normalize with; None: the batch's own (Ioffe and Szegedy, ICML 2015).
    """
    means, variances = ([None] * len(values) if given is None else given for given in (mean, variance))
    return _each(
        [
            functional.batch_norm(*one, training=mean is None, momentum=0.0)
            for one in zip(values, means, variances, weight, bias, strict=True)
        ]
    )


class _Swapped(torch.autograd.Function):
    """Swap of the last two axes; the gradient is laid out anew, too: whether another one is added to it must not decide which
    product of the library the layers below use."""

    @staticmethod
    def forward(ctx, values):
        return values.transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx, grad):
        return grad.transpose(1, 2).contiguous()


def swapped(values: Tensor) -> Tensor:
    """(R, N, D) -> (R, D, N), in memory too."""
    return _Swapped.apply(values)


class _Reorder(torch.autograd.Function):
    """A selection of rows whose gradient is the inverse selection: a gather, not a scatter."""

    @staticmethod
    def forward(ctx, rows, order, inverse):
        ctx.save_for_backward(order, inverse)
        return rows.index_select(1, order)

    @staticmethod
    def backward(ctx, grad):
        _, inverse = ctx.saved_tensors
        return grad.index_select(1, inverse), None, None


def reorder(rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
    """Select along axis 1: (R, N, ...)[:, order], where order[inverse] names every row once, in its place.

    Of a row that `order` names more than once (padding), the other copies must not be given a gradient: it is dropped.
    """
    return _Reorder.apply(rows, order, inverse)


class _Gather(torch.autograd.Function):
    """Gather whose gradient is a gather as well: a scatter's sum has no fixed order on CUDA."""

    @staticmethod
    def forward(ctx, values, index, users):
        ctx.save_for_backward(users)
        return values.gather(2, index.unsqueeze(1).expand(-1, values.shape[1], -1))

    @staticmethod
    def backward(ctx, grad):
        (users,) = ctx.saved_tensors
        padded = torch.cat([grad, grad.new_zeros(*grad.shape[:2], 1)], 2)
        read = padded.gather(2, users.flatten(1).unsqueeze(1).expand(-1, grad.shape[1], -1))
        return read.unflatten(2, users.shape[1:]).sum(3), None, None


def gather(values: Tensor, index: Tensor, users: Tensor) -> Tensor:
    """Entries of the last axis by each run's own index: (R, B, D), (R, E) -> (R, B, E).

    Args:
        users: (R, D, K), for every entry the places of `index` that read it, filled up with E. Places left out (of filling)
            get no gradient.
    """
    return _Gather.apply(values, index, users)


def divergence(ours: Tensor, theirs: Tensor) -> Tensor:
    """Jensen-Shannon divergence of two distributions, given as log probabilities (..., V): (...)."""
    middle = torch.logaddexp(ours, theirs) - math.log(2)
    return ((ours.exp() * (ours - middle)).sum(-1) + (theirs.exp() * (theirs - middle)).sum(-1)) / 2
