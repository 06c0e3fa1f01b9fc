"""Dropout by each example's own noise, whose compiled form gives the library's bits."""

from __future__ import annotations

import pytest
import torch

from compositional.layers import noise_compiled
from compositional.randomness import uniform_noise


@pytest.mark.parametrize(("stream", "rate"), [(1, 0.1), (7, 0.5)])
def test_what_is_dropped_has_the_library_s_bits(stream, rate):
    generator = torch.Generator().manual_seed(0)
    keys = torch.randint(2**45, (2, 3), generator=generator)
    values = torch.randn(2, 3, 6, 500, generator=generator).transpose(2, 3).requires_grad_()
    ours = noise_compiled.dropped(values, keys, stream, rate)
    theirs = values * (uniform_noise(keys, stream, values.shape[2:]) >= rate) / (1 - rate)
    assert torch.equal(ours, theirs)
    weight = torch.randn(ours.shape, generator=generator)
    assert torch.equal(*(torch.autograd.grad((found * weight).sum(), values)[0] for found in (ours, theirs)))
