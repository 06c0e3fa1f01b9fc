"""Optimizers: what is compiled for the CPU has the bits of PyTorch's operations, which other devices use."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from compositional.training import optimizers

RUNS, WEIGHTS = 3, 1037  # not a multiple of any vector's length


def by_operations(settings, gradient, norm, healthy, weights, first, second, scale):
    """The formulas of Kingma and Ba (2015), algorithm 1, and of momentum, as single operations of PyTorch."""
    rate, first_correction, second_correction = scale
    if settings["clip"] is not None:
        gradient = gradient * (settings["clip"] / norm).clamp(max=1).unsqueeze(1)
    if settings["weight_decay"]:
        gradient = gradient + settings["weight_decay"] * weights
    gradient = torch.where(healthy.unsqueeze(1), gradient, 0.0)
    if settings["optimizer"] == "sgd":
        first.mul_(settings["momentum"]).add_(gradient)
        change = first * rate
    else:
        first.mul_(0.9).add_(gradient, alpha=1 - 0.9)
        second.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        change = (first * first_correction) / ((second * second_correction).sqrt() + 1e-8) * rate
    weights -= torch.where(healthy.unsqueeze(1), change, 0.0)


@pytest.mark.parametrize(
    ("optimizer", "clip", "decay"), list(product(("adam", "sgd"), (None, 0.5), (0.0, 0.01))), ids=lambda value: str(value)
)
def test_the_compiled_update_has_the_bits_of_single_operations(optimizer, clip, decay):
    settings = {
        "optimizer": optimizer, "clip": clip, "weight_decay": decay, "momentum": 0.9, "learning_rate": 0.01,
        "decay": 0.5, "decay_every": 2, "warmup": 2,
    }  # fmt: skip
    source = torch.Generator().manual_seed(0)
    ours = (torch.randn(RUNS, WEIGHTS, generator=source), torch.zeros(RUNS, WEIGHTS), torch.zeros(RUNS, WEIGHTS))
    theirs = tuple(tensor.clone() for tensor in ours)
    begin = ours[0].clone()
    for step in range(6):
        gradient = torch.randn(RUNS, WEIGHTS, generator=source) * 10.0**-step
        gradient[:, step] = 0.0
        if step > 2:
            gradient[1, 3] = torch.nan  # this run has diverged
        norm = gradient.square().sum(1).sqrt()
        given = (norm, torch.isfinite(norm))
        scale = torch.tensor(optimizers.scales(settings, step))
        by_operations(settings, gradient.clone(), *given, *theirs, scale)
        assert optimizers.update(settings, gradient, *given, *ours, scale) is None
        for name, one, other in zip(("weights", "first moment", "second moment"), ours, theirs, strict=True):
            assert torch.equal(one, other), f"{name} differ at step {step}"
        if step == 2:
            before = ours[0][1].clone()
    assert torch.equal(ours[0][1], before), "the weights of a diverged run have changed"
    assert (ours[0] != begin).float().mean() > 0.99


def test_the_step_of_group_rmsprop_follows_from_the_whole_gradient_with_the_decay():
    """By hand: w = (3, 4), gradient (1e-4, 0) + 0.1 w; at the first step, s / (1 - 0.99) is the gradient's squared norm."""
    settings = {"optimizer": "group_rmsprop", "clip": None, "weight_decay": 0.1, "learning_rate": 0.01}
    settings |= {"decay": 1.0, "decay_every": None, "warmup": 0}
    weights, gradient = torch.tensor([[3.0, 4.0]]), torch.tensor([[1e-4, 0.0]])
    scale = torch.tensor(optimizers.scales(settings, 0))
    moments = torch.zeros(1, 2), torch.zeros(1, 1)
    pace = optimizers.update(settings, gradient, gradient.norm(dim=1), torch.tensor([True]), weights, *moments, scale)
    whole = torch.tensor([0.3001, 0.4])
    torch.testing.assert_close(weights[0], torch.tensor([3.0, 4.0]) - 0.01 * whole / whole.norm())
    torch.testing.assert_close(pace, 0.01 / whole.norm(dim=0, keepdim=True))
