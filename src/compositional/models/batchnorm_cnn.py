"""The convolutional network of Lippl and Stachenfeld (ICLR 2025), appendix on image tasks: batch normalization after each ReLU.

Four convolutions (5x5, with 32, 32, 64 and 64 channels), each followed by ReLU and then batch normalization, max-pooling, dense
layers of 512 and 1,024 ReLU units, and one output. Weights have He's normal initialization (fan-in), biases PyTorch's default.
Batch normalization works as in `models.resnet18`: with the run's own batch in training, and with statistics of training examples
in evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds import Imaged
from compositional.layers import Weights, batch_norm_statistics
from compositional.layers.functional import batch_norm, conv2d, linear
from compositional.layers.pooling import max_pool
from compositional.layers.tap import silent_tap

KIND = ("image", "composite")
REPRESENTATIONS = ("convolution", "penultimate")
PARAMETERS = {
    "channels": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [32, 32, 64, 64],
        "description": "channels of each convolution",
    },
    "kernel": {"type": "integer", "minimum": 1, "default": 5, "description": "height and width of the convolutions' kernels"},
    "padding": {"type": "integer", "minimum": 0, "default": 0, "description": "zeros on each side of a convolution's input"},
    "dense_widths": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [512, 1024],
        "description": "units of each dense layer",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for images of task["image_shape"] = (channels, height, width).

    Raises:
        ValueError: the images are too small for so many convolutions.
    """
    inputs, height, width = task["image_shape"]
    weights: Weights = {}

    def add(name: str, shape: tuple[int, ...], fan_in: int, outputs: int) -> None:
        normal = torch.from_numpy(source.standard_normal(shape, dtype=np.float32))
        weights[f"{name}.weight"] = normal * math.sqrt(2 / fan_in)
        weights[f"{name}.bias"] = randomness.uniform_tensor(source, (outputs,), -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    kernel, lost = parameters["kernel"], parameters["kernel"] - 1 - 2 * parameters["padding"]
    for index, depth in enumerate(parameters["channels"]):
        add(f"convolution{index}", (depth, inputs, kernel, kernel), inputs * kernel**2, depth)
        weights[f"convolution{index}.scale"], weights[f"convolution{index}.shift"] = torch.ones(depth), torch.zeros(depth)
        inputs, height, width = depth, height - lost, width - lost
    height, width = height // 2, width // 2
    if min(height, width) < 1:
        raise ValueError(
            f"batchnorm_cnn: images of {task['image_shape']} are too small for {len(parameters['channels'])} convolutions with "
            f"kernel: {kernel}; shorten channels, lower kernel or raise padding"
        )
    inputs *= height * width
    widths = [*parameters["dense_widths"], task["classes"]]
    for index, outputs in enumerate(widths):
        name = "output" if index == len(widths) - 1 else f"dense{index}"
        add(name, (inputs, outputs), inputs, outputs)
        inputs = outputs
    return weights


def _forward(parameters: dict, weights: Weights, batch: Imaged, tap: Callable, seen: Callable[[str, Tensor], None]) -> Tensor:
    hidden = batch.images
    for index in range(len(parameters["channels"])):
        name = f"convolution{index}"
        hidden = conv2d(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=parameters["padding"]).relu()
        if index == len(parameters["channels"]) - 1:
            hidden = tap("convolution", hidden, None)
        seen(name, hidden)
        statistics = weights.get(f"{name}.mean"), weights.get(f"{name}.variance")
        hidden = batch_norm(hidden, weights[f"{name}.scale"], weights[f"{name}.shift"], *statistics)
    hidden = max_pool(hidden).flatten(2)
    for index in range(len(parameters["dense_widths"])):
        hidden = linear(hidden, weights[f"dense{index}.weight"], weights[f"dense{index}.bias"]).relu()
    hidden = tap("penultimate", hidden, None)
    return linear(hidden, weights["output.weight"], weights["output.bias"])


def forward(parameters: dict, weights: Weights, batch: Imaged, tap: Callable) -> Tensor:
    """Outputs (R, B, classes), normalized by the batch unless `weights` contains the results of `calibrate`."""
    return _forward(parameters, weights, batch, tap, lambda name, values: None)


def calibrate(parameters: dict, weights: Weights, batches: Iterable[Imaged]) -> Weights:
    """Statistics for evaluation: each convolution's mean and variance (R, channels), averaged over the batches."""
    return batch_norm_statistics.statistics(lambda batch, see: _forward(parameters, weights, batch, silent_tap, see), batches)
