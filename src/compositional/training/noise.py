"""Random numbers of a step, drawn before the step from each run's own stream."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from compositional import randomness


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
            randomness.normal(self.keys, step, self.numbers.shape[1], self.numbers)
