"""Layers for many runs at once: weights have shape (R, ...) and activations (R, B, ...), where R is the number of runs."""

from torch import Tensor

# Weights by name: of R runs (R, ...); when a model initializes the weights of one run, without the run axis.
Weights = dict[str, Tensor]
