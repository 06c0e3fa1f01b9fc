"""Fully connected ReLU network on one-hot components with one output. Its initial scale determines lazy or rich learning.

Lippl and Stachenfeld (ICLR 2025), appendix on ReLU networks: weights N(0, sigma^2 2 / fan_in), biases uniform in
+-sigma / sqrt(fan_in). Small sigma: rich learning, which changes the representation; sigma 1: lazy learning, in which the
representation hardly changes, as in a kernel machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds.combination import Batch
from compositional.layers import Weights
from compositional.layers.functional import padded_linear

KIND = "combination"
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "hidden_layers": {"type": "integer", "minimum": 1, "default": 1, "description": "hidden layers"},
    "width": {"type": "integer", "minimum": 1, "default": 1000, "description": "units of each hidden layer"},
    "scale": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.0,
        "description": "sigma, the factor on the usual initialization",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for components of task["sizes"] items.

    Raises:
        ValueError: the task has several training sets.
    """
    if task["sets"] > 1:
        raise ValueError(f"a network trains on one training set, this task has {task['sets']}: give it sets: 1")
    layers, scale = parameters["hidden_layers"], parameters["scale"]
    widths = [sum(task["sizes"]), *[parameters["width"]] * layers, 1]
    weights = {}
    for name, inputs, outputs in zip([*map("hidden{}".format, range(layers)), "output"], widths, widths[1:], strict=False):
        normal = torch.from_numpy(source.standard_normal((inputs, outputs), dtype=np.float32))
        weights[f"{name}.weight"] = normal * (scale * math.sqrt(2 / inputs))
        bound = scale / math.sqrt(inputs)
        weights[f"{name}.bias"] = randomness.uniform_tensor(source, (outputs,), -bound, bound)
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Outputs (R, B, 1)."""
    hidden = batch.one_hot()
    for layer in range(parameters["hidden_layers"]):
        hidden = padded_linear(hidden, weights[f"hidden{layer}.weight"], weights[f"hidden{layer}.bias"]).relu()
    hidden = tap("penultimate", hidden, None)
    return padded_linear(hidden, weights["output.weight"], weights["output.bias"])
