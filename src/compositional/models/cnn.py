"""The convolutional classifier of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), appendix A.

3x3 convolution of depth 32, ReLU, 2x2 max-pooling, 3x3 convolution of depth 64, ReLU, dense 64, ReLU, dense output; no
padding, Glorot-uniform weights, zero biases (the Keras defaults of the time). The paper's main text mentions three convolutions:
`convolutions: 3` adds another one of depth 64.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from compositional import randomness
from compositional.kinds.image import Batch
from compositional.layers import Weights
from compositional.layers.functional import conv2d, linear, run_by_run
from compositional.layers.pooling import max_pool

KIND = "image"
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "convolutions": {
        "enum": [2, 3],
        "default": 2,
        "description": "2 as in the paper's appendix, 3 as in its main text",
    },
    "width": {
        "type": "integer",
        "minimum": 1,
        "default": 32,
        "description": "channels of the first convolution; later ones have twice as many",
    },
    "dense_width": {"type": "integer", "minimum": 1, "default": 64, "description": "units of the penultimate layer"},
}


def _glorot(source: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Tensor:
    bound = math.sqrt(6 / (fan_in + fan_out))
    return randomness.uniform_tensor(source, shape, -bound, bound)


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for images of task["image_shape"] = (channels, height, width).

    Raises:
        ValueError: the images are too small for so many convolutions.
    """
    channels, height, width = task["image_shape"]
    weights = {}
    for index in range(parameters["convolutions"]):
        depth = parameters["width"] * (1 if index == 0 else 2)
        weights[f"convolution{index}.weight"] = _glorot(source, (depth, channels, 3, 3), channels * 9, depth * 9)
        weights[f"convolution{index}.bias"] = randomness.uniform_tensor(source, (depth,), 0, 0)
        channels, height, width = depth, height - 2, width - 2
        if index == 0:
            height, width = height // 2, width // 2
    if min(height, width) < 1:
        raise ValueError(f"cnn: images of {task['image_shape']} are too small for convolutions: {parameters['convolutions']}")
    sizes = {
        "dense": (channels * height * width, parameters["dense_width"]),
        "output": (parameters["dense_width"], task["classes"]),
    }
    for name, (inputs, outputs) in sizes.items():
        weights[f"{name}.weight"] = _glorot(source, (inputs, outputs), inputs, outputs)
        weights[f"{name}.bias"] = randomness.uniform_tensor(source, (outputs,), 0, 0)
    return weights


def _convolved(hidden: Tensor, *weights: Tensor) -> Tensor:
    """Images (R, B, C, H, W) after all convolutions, given the weight and the bias of each."""
    for index in range(0, len(weights), 2):
        hidden = conv2d(hidden, weights[index], weights[index + 1])
        # Pooling first leaves a quarter of the values to rectify. The order does not change the result.
        hidden = (max_pool(hidden) if index == 0 else hidden).relu()
    return hidden


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Class scores (R, B, classes)."""
    convolutions = [f"convolution{index}.{part}" for index in range(parameters["convolutions"]) for part in ("weight", "bias")]
    largest = parameters["width"] * batch.images[0, :, 0].numel()
    hidden = run_by_run(_convolved, largest, batch.images, *(weights[name] for name in convolutions))
    hidden = linear(hidden.flatten(2), weights["dense.weight"], weights["dense.bias"]).relu()
    hidden = tap("penultimate", hidden, None)
    return linear(hidden, weights["output.weight"], weights["output.bias"])
