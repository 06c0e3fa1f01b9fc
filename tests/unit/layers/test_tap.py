"""Dropout, whose compiled form gives the library's bits."""

from __future__ import annotations

from statistics import NormalDist

import pytest
import torch

from compositional.layers.tap import dropout, silent_tap


def test_evaluation_drops_nothing():
    values = torch.randn(2, 5)
    assert dropout(silent_tap, values, 0.5) is values


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("strided", [False, True])
def test_what_is_dropped_has_the_library_s_bits(rate, strided):
    """Noise lies behind other noise of its run; values may lie transposed."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(3, 40, generator=generator)[:, 5:33].view(3, 4, 7)
    values = torch.randn(3, 7, 4, generator=generator).transpose(1, 2) if strided else torch.randn(3, 4, 7, generator=generator)
    values.requires_grad_()

    class Tap:
        @staticmethod
        def noise(shape):
            assert tuple(shape) == (4, 7)
            return drawn

    kept = dropout(Tap, values, rate)
    expected = values * (drawn > NormalDist().inv_cdf(rate)).to(values.dtype).mul_(1 / (1 - rate))
    assert torch.equal(kept, expected)
    weight = torch.randn(kept.shape, generator=generator).requires_grad_()
    (ours,), (theirs,) = (torch.autograd.grad((found * weight).sum(), values, create_graph=True) for found in (kept, expected))
    assert torch.equal(ours, theirs)
    again = [torch.autograd.grad(found.square().sum(), weight)[0] for found in (ours, theirs)]
    assert torch.equal(*again)
