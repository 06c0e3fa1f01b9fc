"""Random numbers of a step, drawn before the step from each run's own stream."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.layers import normal_compiled
from compositional.layers.compiled import is_compiled


def fill(numbers: Tensor, seed: int) -> None:
    """Fill (n,) with standard normal numbers of the device's own generator.

    On CUDA nothing is copied from the host, and on the CPU it is much faster than NumPy's. On the CPU it reads only the seed's
    lower 32 bits: among a million draws, some hundred pairs are equal.
    """
    if is_compiled(numbers) and len(numbers) >= normal_compiled.LEAST:
        normal_compiled.fill(np.uint32(seed & (2**32 - 1)), numbers.numpy())
    else:
        numbers.normal_(generator=torch.Generator(numbers.device).manual_seed(seed))


class Noise:
    """Standard normal numbers for one step of R runs, each from its own stream.

    They are drawn before the step and are at a fixed address. Until `reserve` is called, an object counts how many numbers a step
    needs and returns zeros.
    """

    def __init__(self, keys: list[int], device: str) -> None:
        self.keys, self.used = keys, 0
        self.numbers = torch.zeros(len(keys), 0, device=device)

    def __call__(self, shape: torch.Size) -> Tensor:
        """(R, *shape): the numbers that follow those already taken."""
        begin, self.used = self.used, self.used + math.prod(shape)
        if self.used > self.numbers.shape[1]:
            return self.numbers.new_zeros(len(self.keys), *shape)
        return self.numbers[:, begin : self.used].view(len(self.keys), *shape)

    def reserve(self) -> None:
        """Allocate memory for as many numbers as have been requested."""
        self.numbers = self.numbers.new_zeros(len(self.keys), self.used)

    def draw(self, step: int) -> None:
        """Draw the numbers of a step."""
        if self.numbers.shape[1]:
            for numbers, key in zip(self.numbers, self.keys, strict=True):
                fill(numbers, randomness.derive(key, step) & (2**63 - 1))
