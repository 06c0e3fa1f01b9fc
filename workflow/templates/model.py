"""One hidden layer on pixels: describe here what the model is, who published it, and how this version differs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from compositional import randomness
from compositional.kinds.image import Batch
from compositional.layers import Weights
from compositional.layers.functional import linear

KIND = "image"
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "width": {"type": "integer", "minimum": 1, "default": 64, "description": "units of the hidden layer"},
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, uniform in +-1/sqrt(inputs)."""
    sizes = {"hidden": (math.prod(task["image_shape"]), parameters["width"]), "output": (parameters["width"], task["classes"])}
    weights = {}
    for name, (inputs, outputs) in sizes.items():
        bound = 1 / math.sqrt(inputs)
        weights[f"{name}.weight"] = randomness.uniform_tensor(source, (inputs, outputs), -bound, bound)
        weights[f"{name}.bias"] = randomness.uniform_tensor(source, (outputs,), -bound, bound)
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Class scores (R, B, classes)."""
    hidden = linear(batch.images.flatten(2), weights["hidden.weight"], weights["hidden.bias"]).relu()
    hidden = tap("penultimate", hidden, None)
    return linear(hidden, weights["output.weight"], weights["output.bias"])
