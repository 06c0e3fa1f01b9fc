"""Quantities that are recorded of tensor factorizations: norms of components, and spectra of the tensor's matricizations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

TRACKED = 10  # how many of the largest values of each quantity are recorded


def ranked(name: str, values: Tensor) -> dict[str, Tensor]:
    """The largest of values (R, n), at most TRACKED of them, as {"name_1": (R,), "name_2": ...}, the largest first."""
    ordered = values.sort(1, descending=True).values[:, :TRACKED]
    return {f"{name}_{rank + 1}": column for rank, column in enumerate(ordered.unbind(1))}


def ranked_components(name: str, values: Tensor) -> dict[str, Tensor]:
    """As `ranked`, plus "name_1_index", ...: the index among the n values, because the order can change between steps."""
    index = values.sort(1, descending=True).indices[:, :TRACKED].to(values.dtype)
    indices = {f"{name}_{rank + 1}_index": column for rank, column in enumerate(index.unbind(1))}
    return ranked(name, values) | indices


def effective_rank(singular: Tensor) -> Tensor:
    """exp of the entropy of s / sum(s) for singular values s (R, n) (Roy and Vetterli, EUSIPCO 2007): (R,)."""
    share = singular / singular.sum(1, keepdim=True)
    return torch.special.entr(share).sum(1).exp()


def matricization(entries: Tensor, shape: Sequence[int], rows: Sequence[int]) -> Tensor:
    """Tensors with entries (R, E) as matrices (R, A, B): the modes `rows` (from 0) form the rows, the others the columns."""
    columns = [mode for mode in range(len(shape)) if mode not in rows]
    axes = [0, *(mode + 1 for mode in [*rows, *columns])]
    return entries.unflatten(1, tuple(shape)).permute(axes).flatten(len(rows) + 1).flatten(1, len(rows))


def spectrum(matrices: Tensor) -> Tensor:
    """Singular values (R, n) of matrices (R, A, B), the largest first. A run's values do not depend on its neighbors.

    They are NaN for a matrix with entries that are not finite, for which the library raises an error: the product of a diverged
    run's weights can be one.
    """
    unknown = matrices.new_full((min(matrices.shape[1:]),), math.nan)
    # The address of a copy does not depend on the neighbors either.
    return torch.stack([torch.linalg.svdvals(matrix.clone()) if matrix.isfinite().all() else unknown for matrix in matrices])


def normal(source, shape: tuple[int, ...], deviation: float) -> Tensor:
    """A float32 tensor of normal numbers of the given standard deviation."""
    return torch.from_numpy((source.standard_normal(shape) * deviation).astype("float32"))


def product(left: Tensor, right: Tensor) -> Tensor:
    """Products of matrices, (R, A, B) and (R, B, C) -> (R, A, C), whose bits do not depend on R.

    The library's batched product has this property for sizes that are multiples of 4 (test_tensor_factorization.py), so
    other sizes are padded with zeros.
    """
    (rows, inner), columns = left.shape[1:], right.shape[2]
    if rows % 4 or inner % 4:
        left = functional.pad(left, (0, -inner % 4, 0, -rows % 4))
    if inner % 4 or columns % 4:
        right = functional.pad(right, (0, -columns % 4, 0, -inner % 4))
    return torch.bmm(left, right)[:, :rows, :columns]


def khatri_rao(left: Tensor, right: Tensor) -> Tensor:
    """Products of all pairs of rows, column by column: (R, A, W) and (R, B, W) -> (R, A B, W)."""
    return (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1, 2)
