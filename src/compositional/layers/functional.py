"""Layers with a leading run axis: the same code computes one run or many.

Weights have shape (R, ...) and activations (R, B, ...), where R is the number of runs that train together. Nothing here mixes
runs: all products are batched over R, and all reductions stay within a run. On one CPU thread a batched product equals the
single product of the same shape bit for bit (test_functional.py), so a run's numbers do not depend on R.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.layers import Weights


def aligned(size: int) -> int:
    """`size` rounded up to a multiple of 16. With that many float32 numbers per run, each run's numbers start at a multiple of
    64 bytes. Otherwise the last bits of a product can depend on a run's position among the others."""
    return 16 * math.ceil(size / 16)


def first_gradient(backward: Callable) -> Callable:
    """Decorator of the `backward` of a function whose gradient cannot be differentiated.

    With PyTorch's `once_differentiable`, the second gradient would lack a part without notice: a gradient of chosen tensors, such
    as a run's weights, does not reach its error.

    Raises:
        NotImplementedError: when `backward` is called with create_graph=True.
    """

    @wraps(backward)
    def alone(ctx, *grads):
        if torch.is_grad_enabled():
            raise NotImplementedError(
                f"{backward.__qualname__}: its result cannot be differentiated. A term that is made of gradients "
                "(create_graph=True) needs a model without this function, such as a class Network of ordinary layers"
            )
        return backward(ctx, *grads)

    return alone


def initialize_linear(source: np.random.Generator, inputs: int, outputs: int, prefix: str, bias: bool = True) -> Weights:
    """One run's weights for `linear`, uniform in +-1/sqrt(inputs): PyTorch's default initialization."""
    bound = 1 / math.sqrt(inputs)
    shapes = {f"{prefix}.weight": (inputs, outputs)} | ({f"{prefix}.bias": (outputs,)} if bias else {})
    return {name: randomness.uniform_tensor(source, shape, -bound, bound) for name, shape in shapes.items()}


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Affine map of the last axis: (R, ..., I) x (R, I, O) + (R, O) -> (R, ..., O)."""
    if weight.shape[-1] == 1:
        # For products with one column, the library computes a single product differently from several.
        return padded_linear(inputs, weight, bias)
    runs, features = inputs.shape[0], inputs.shape[-1]
    rows = inputs.reshape(runs, -1, features)
    outputs = torch.bmm(rows, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight)
    return outputs.view(*inputs.shape[:-1], weight.shape[-1])


class _Spaced(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias):
        ctx.save_for_backward(rows, weight)
        outputs = rows.new_empty(*rows.shape[:2], aligned(weight.shape[2]))[..., : weight.shape[2]]
        return outputs.copy_(bias.unsqueeze(1)).baddbmm_(rows, weight)

    @staticmethod
    def backward(ctx, grad):
        rows, weight = ctx.saved_tensors
        # Transposed, as tables of embeddings are, of which these weights are views.
        return torch.bmm(grad, weight.mT), torch.bmm(grad.mT, rows).mT, grad.sum(1)


def spaced_linear(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`linear` of (R, N, I) for many outputs, with the same bits. Each row of the result begins at a multiple of 64 bytes; with
    rows of other lengths, the library writes a product half as fast."""
    return _Spaced.apply(rows, weight, bias)


def padded_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` for any widths: (R, ..., I) x (R, I, O) + (R, O) -> (R, ..., O).

    Widths are padded to multiples of 16, so that the rows of every run are aligned to 64 bytes. Otherwise the last bits of a
    product can depend on a run's position among the others.
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
    """What is added to the scores of input positions (...): 0 where the mask is True, minus infinity at padding."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


SMALL_VOCABULARY = 64


def embedding(tokens: Tensor, table: Tensor) -> Tensor:
    """Rows of each run's own table: tokens (R, ...) of integers, table (R, V, D) -> (R, ..., D)."""
    runs, vocabulary, width = table.shape
    flat = tokens.reshape(runs, -1)
    if vocabulary <= SMALL_VOCABULARY:
        # A product with a one-hot matrix, whose gradient is a product too: the fastest way for tens of words.
        one_hot = functional.one_hot(flat, vocabulary).to(table.dtype)
        return torch.bmm(one_hot, table).view(*tokens.shape, width)
    # One library lookup in the tables of all runs. Its gradient adds up the rows of a word in the order of their positions (on
    # CUDA after a sort), so it is deterministic and does not depend on other runs.
    starts = torch.arange(runs, device=tokens.device).unsqueeze(1) * vocabulary
    return functional.embedding(flat + starts, table.reshape(-1, width)).view(*tokens.shape, width)


def _each(results: list[Tensor]) -> Tensor:
    """Stack the results of single runs along a run axis; the result of a single run is not copied."""
    return torch.stack(results) if len(results) > 1 else results[0].unsqueeze(0)


_CACHED = 2**20  # numbers, 4 MB: activations of a run that are not larger stay in the cache together with those of other runs


def run_by_run(function: Callable[..., Tensor], largest: int, *tensors: Tensor) -> Tensor:
    """function(*tensors), where the result and all tensors have a leading run axis.

    If the `largest` activation of a run has too many numbers for a CPU's cache, the function is called for each run alone. Its
    gradient is then computed run by run, too, and the next run uses the same memory.
    """
    if largest <= _CACHED or len(tensors[0]) == 1 or tensors[0].device.type != "cpu":
        return function(*tensors)
    runs = zip(*(tensor.unbind() for tensor in tensors), strict=True)
    return torch.cat([function(*(tensor.unsqueeze(0) for tensor in own)) for own in runs])


def conv2d(images: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0) -> Tensor:
    """Convolution: (R, B, C, H, W) with weight (R, O, C, K, K) and bias (R, O) -> (R, B, O, H', W').

    It makes one library call per run: grouped convolutions are slower, and this way a run's arithmetic cannot depend on R.
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

    mean, variance: (R, C), the statistics to normalize with; None: the batch's own (Ioffe and Szegedy, ICML 2015).
    """
    means, variances = ([None] * len(values) if given is None else given for given in (mean, variance))
    return _each(
        [
            functional.batch_norm(*one, training=mean is None, momentum=0.0)
            for one in zip(values, means, variances, weight, bias, strict=True)
        ]
    )


class _Swapped(torch.autograd.Function):
    """Swap of the last two axes. The gradient is made contiguous, too: otherwise its layout, and with it the library's product in
    the layers below, would depend on whether another gradient is added to it."""

    @staticmethod
    def forward(ctx, values):
        return values.transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx, grad):
        return grad.transpose(1, 2).contiguous()


def swapped(values: Tensor) -> Tensor:
    """(R, N, D) -> (R, D, N), contiguous in memory."""
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
    """Select rows along axis 1: (R, N, ...)[:, order], where order[inverse] is 0, 1, ..., N - 1.

    If `order` names a row more than once (padding), the gradients of all copies but the one in `inverse` are ignored.
    """
    return _Reorder.apply(rows, order, inverse)


class _Gather(torch.autograd.Function):
    """Gather whose gradient is a gather as well, because a scatter has no fixed order of summation on CUDA."""

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
        users: (R, D, K), for every entry the positions in `index` that read it, padded with E. Positions that are not listed
            (padding) pass no gradient back.
    """
    return _Gather.apply(values, index, users)


def divergence(ours: Tensor, theirs: Tensor) -> Tensor:
    """Jensen-Shannon divergence between two distributions, given as log probabilities (..., V): (...)."""
    middle = torch.logaddexp(ours, theirs) - math.log(2)
    return ((ours.exp() * (ours - middle)).sum(-1) + (theirs.exp() * (theirs - middle)).sum(-1)) / 2
