"""Residual network for images (He, Zhang, Ren, Sun, CVPR 2016): ResNet-18 by default, torchvision's layout and initialization.

`blocks: [3, 4, 6, 3]` is ResNet-34; smaller `widths` and the `small` stem (3x3, stride 1, no pooling) give the reduced variants.
With two classes the network has one output, the logit of class 1 (the score of class 0 is 0), so that cross entropy is binary
cross entropy. For composites its single output is a number. The CIFAR variant of Lippl and Stachenfeld (ICLR 2025) is
`stem: small, widths: [16, 32, 64, 128], initialization: uniform`. For images with one channel, Razin, Maman and Cohen (ICML 2022)
replace the stem of torchvision's network by one with PyTorch's default initialization: `initialization: uniform_stem`.

Batch normalization uses each run's own batch in training. In evaluation, its statistics are not running averages collected during
training, but means over batches of training images with the weights that are evaluated (`layers.batch_norm_statistics`).
Therefore a run's state consists of its weights alone, and evaluation does not change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds import Imaged
from compositional.kinds.shared.labelled import Labelled
from compositional.layers import Weights, batch_norm_statistics
from compositional.layers.functional import batch_norm, conv2d, linear
from compositional.layers.tap import silent_tap

KIND = ("image", "composite")
WIDTH = {"cuda": 1}  # runs are computed one after the other: each fills a GPU, and no kernel can depend on their number
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "widths": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [64, 128, 256, 512],
        "description": "channels of each stage; every stage but the first halves height and width",
    },
    "blocks": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [2, 2, 2, 2],
        "description": "basic blocks (two 3x3 convolutions and a shortcut) in each stage",
    },
    "stem": {
        "enum": ["imagenet", "small"],
        "default": "imagenet",
        "description": "imagenet: 7x7 convolution of stride 2 and 3x3 pooling of stride 2; small: 3x3 convolution of stride 1",
    },
    "initialization": {
        "enum": ["he", "uniform_stem", "uniform"],
        "default": "he",
        "description": "initialization of convolutions. he: normal by fan-out, as in torchvision; uniform: by fan-in, PyTorch's "
        "default; uniform_stem: uniform for the stem, he for all others",
    },
}
_STEMS = {"imagenet": (7, 2, 3), "small": (3, 1, 1)}  # kernel, stride, padding


def _normal(source: np.random.Generator, outputs: int, inputs: int, kernel: int) -> Tensor:
    """He's normal initialization by fan-out."""
    values = source.standard_normal((outputs, inputs, kernel, kernel), dtype=np.float32)
    return torch.from_numpy(values * np.float32(math.sqrt(2 / (outputs * kernel**2))))


def _uniform(source: np.random.Generator, outputs: int, inputs: int, kernel: int) -> Tensor:
    """PyTorch's default initialization of a convolution."""
    bound = 1 / math.sqrt(inputs * kernel**2)
    return randomness.uniform_tensor(source, (outputs, inputs, kernel, kernel), -bound, bound)


def _blocks(parameters: dict) -> list[tuple[str, int, int, int]]:
    """Every block: name, channels in and out, stride.

    Raises:
        ValueError: `widths` and `blocks` have different lengths.
    """
    widths, blocks = parameters["widths"], parameters["blocks"]
    if len(widths) != len(blocks):
        raise ValueError(f"resnet18: widths {widths} and blocks {blocks} must have one entry per stage")
    found, inputs = [], widths[0]
    for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
        for index in range(count):
            found.append((f"stage{stage}.block{index}", inputs, width, 2 if stage and not index else 1))
            inputs = width
    return found


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for images of task["image_shape"] = (channels, height, width)."""
    weights: Weights = {}
    rule = parameters["initialization"]

    def add(name: str, inputs: int, outputs: int, kernel: int) -> None:
        draw = _uniform if rule == "uniform" or (rule == "uniform_stem" and name == "stem") else _normal
        weights[f"{name}.weight"] = draw(source, outputs, inputs, kernel)
        weights[f"{name}.scale"], weights[f"{name}.shift"] = torch.ones(outputs), torch.zeros(outputs)

    add("stem", task["image_shape"][0], parameters["widths"][0], _STEMS[parameters["stem"]][0])
    for name, inputs, outputs, stride in _blocks(parameters):
        add(f"{name}.first", inputs, outputs, 3)
        add(f"{name}.second", outputs, outputs, 3)
        if stride > 1 or inputs != outputs:
            add(f"{name}.shortcut", inputs, outputs, 1)
    features, classes = parameters["widths"][-1], task["classes"]
    outputs, bound = 1 if classes == 2 else classes, 1 / math.sqrt(features)
    weights["output.weight"] = randomness.uniform_tensor(source, (features, outputs), -bound, bound)
    weights["output.bias"] = randomness.uniform_tensor(source, (outputs,), -bound, bound)
    return weights


def _forward(parameters: dict, weights: Weights, batch: Imaged, tap: Callable, seen: Callable[[str, Tensor], None]) -> Tensor:
    """Class scores (R, B, classes); `seen` is called with the inputs of each batch normalization."""

    def layer(name: str, values: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
        values = conv2d(values, weights[f"{name}.weight"], stride=stride, padding=padding)
        seen(name, values)
        statistics = weights.get(f"{name}.mean"), weights.get(f"{name}.variance")
        return batch_norm(values, weights[f"{name}.scale"], weights[f"{name}.shift"], *statistics)

    hidden = layer("stem", batch.images, *_STEMS[parameters["stem"]][1:]).relu()
    if parameters["stem"] == "imagenet":
        hidden = functional.max_pool2d(hidden.flatten(0, 1), 3, 2, 1).unflatten(0, hidden.shape[:2])
    for name, _, _, stride in _blocks(parameters):
        inner = layer(f"{name}.first", hidden, stride, 1).relu()
        inner = layer(f"{name}.second", inner, 1, 1)
        shortcut = layer(f"{name}.shortcut", hidden, stride) if f"{name}.shortcut.weight" in weights else hidden
        hidden = (inner + shortcut).relu()
    hidden = tap("penultimate", hidden.mean((-2, -1)), None)
    scores = linear(hidden, weights["output.weight"], weights["output.bias"])
    return torch.cat([torch.zeros_like(scores), scores], -1) if scores.shape[-1] == 1 and isinstance(batch, Labelled) else scores


def forward(parameters: dict, weights: Weights, batch: Imaged, tap: Callable) -> Tensor:
    """Class scores (R, B, classes), normalized by the batch unless `weights` contains the results of `calibrate`."""
    return _forward(parameters, weights, batch, tap, lambda name, values: None)


def calibrate(parameters: dict, weights: Weights, batches: Iterable[Imaged]) -> Weights:
    """Statistics for evaluation: each layer's mean and variance (R, channels), averaged over the batches."""
    return batch_norm_statistics.statistics(lambda batch, see: _forward(parameters, weights, batch, silent_tap, see), batches)
