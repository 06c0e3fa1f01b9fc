"""Fully connected network for points: hidden layers of ReLU units, one output per class.

The toy model of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission): three hidden layers of 8 units.
The paper's figures come from the TensorFlow playground; its initialization (`playground`) and output (`tanh`) are options.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds.point import Batch
from compositional.layers import Weights
from compositional.layers.functional import linear

KIND = "point"
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "hidden_layers": {"type": "integer", "minimum": 1, "default": 3, "description": "hidden layers"},
    "width": {"type": "integer", "minimum": 1, "default": 8, "description": "units of each hidden layer"},
    "initialization": {
        "enum": ["fan_in", "playground"],
        "default": "fan_in",
        "description": "fan_in: PyTorch's default, all uniform in +-1/sqrt(inputs); playground: weights in +-0.5, biases 0.1",
    },
    "output": {"enum": ["linear", "tanh"], "default": "linear", "description": "function applied to the scores"},
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for points of task["inputs"] coordinates."""
    layers, width = parameters["hidden_layers"], parameters["width"]
    sizes = [task["inputs"], *[width] * layers, task["classes"]]
    weights = {}
    for name, inputs, outputs in zip([*map("hidden{}".format, range(layers)), "output"], sizes, sizes[1:], strict=False):
        bound = 1 / math.sqrt(inputs) if parameters["initialization"] == "fan_in" else 0.5
        weights[f"{name}.weight"] = randomness.uniform_tensor(source, (inputs, outputs), -bound, bound)
        if parameters["initialization"] == "fan_in":
            weights[f"{name}.bias"] = randomness.uniform_tensor(source, (outputs,), -bound, bound)
        else:
            weights[f"{name}.bias"] = torch.full((outputs,), 0.1)
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Class scores (R, B, classes)."""
    hidden = batch.points
    for layer in range(parameters["hidden_layers"]):
        hidden = linear(hidden, weights[f"hidden{layer}.weight"], weights[f"hidden{layer}.bias"]).relu()
    hidden = tap("penultimate", hidden, None)
    scores = linear(hidden, weights["output.weight"], weights["output.bias"])
    return scores.tanh() if parameters["output"] == "tanh" else scores
