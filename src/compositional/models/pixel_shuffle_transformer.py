"""Convolution and transformer on patches: the baseline of Whitehouse, "Symbolic Synthesis of Neural Networks" (arXiv 2303.03340).

The pixels of a patch become channels (the inverse of Shi et al., CVPR 2016). Residual blocks of convolutions mix neighboring
patches. A pre-norm transformer with fixed position embeddings (Beyer et al., "Better plain ViT baselines", 2022) mixes all
patches, and a linear map of the mean over patches gives the scores. The same network without the last layer encodes puzzles for
`graph_structured`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.puzzle import Batch
from compositional.layers import Weights
from compositional.layers.functional import conv2d, initialize_linear, linear

KIND = "puzzle"
REPRESENTATIONS = ("features",)
PARAMETERS = {
    "patch": {"type": "integer", "minimum": 1, "default": 16, "description": "height and width of a patch in pixels"},
    "width": {
        "type": "integer",
        "minimum": 8,
        "multipleOf": 4,
        "default": 256,
        "description": "channels of the convolutions and width of the transformer",
    },
    "residual_blocks": {"type": "integer", "minimum": 0, "default": 3, "description": "convolutional blocks"},
    "depth": {"type": "integer", "minimum": 0, "default": 2, "description": "layers of the transformer"},
    "heads": {"type": "integer", "minimum": 1, "default": 4, "description": "attention heads"},
    "head_width": {"type": "integer", "minimum": 1, "default": 128, "description": "width of an attention head"},
    "hidden_width": {"type": "integer", "minimum": 1, "default": 512, "description": "hidden units of the transformer's layers"},
}


def uniform(source: np.random.Generator, shape: tuple[int, ...], inputs: int) -> Tensor:
    """PyTorch's default initialization of layers with this number of inputs: uniform in +-1/sqrt(inputs)."""
    bound = 1 / math.sqrt(inputs)
    return randomness.uniform_tensor(source, shape, -bound, bound)


def _norm(name: str, shape: tuple[int, ...]) -> Weights:
    return {f"{name}.weight": torch.ones(shape), f"{name}.bias": torch.zeros(shape)}


def sincos(positions: Tensor, width: int) -> Tensor:
    """Fixed embedding of positions (n, 2) -> (n, width): sines and cosines at width / 4 frequencies from 1 to 1/10000."""
    rates = 10000.0 ** -(torch.arange(width // 4, dtype=torch.float64, device=positions.device) / (width // 4 - 1))
    angles = [positions[:, axis : axis + 1].double() * rates for axis in (0, 1)]
    return torch.cat([part for angle in angles for part in (angle.sin(), angle.cos())], 1).float()


def grid(parameters: dict, task: dict) -> int:
    """The number of patches along each side of an image.

    Raises:
        ValueError: the images cannot be cut into patches of this size.
    """
    _, height, width = task["image_shape"]
    if height != width or height % parameters["patch"]:
        raise ValueError(f"patch: {parameters['patch']} must divide the height and width of square images, {height} x {width}")
    return height // parameters["patch"]


def initialize_encoder(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run up to the mean over patches, for images of task["image_shape"]."""
    width, side = parameters["width"], grid(parameters, task)
    inner = parameters["heads"] * parameters["head_width"]
    weights = initialize_linear(source, task["image_shape"][0] * parameters["patch"] ** 2, width, "patch")
    for index in range(parameters["residual_blocks"]):
        name = f"block{index}"
        weights[f"{name}.convolution.weight"] = uniform(source, (width, width, 3, 3), 9 * width)
        weights |= _norm(f"{name}.norm", (width, side, side))
        weights |= initialize_linear(source, width, width, f"{name}.first", bias=False)
        weights |= initialize_linear(source, width, width, f"{name}.second", bias=False)
    for index in range(parameters["depth"]):
        name = f"layer{index}"
        weights |= _norm(f"{name}.attention_norm", (width,))
        weights |= initialize_linear(source, width, 3 * inner, f"{name}.attention_in", bias=False)
        weights |= initialize_linear(source, inner, width, f"{name}.attention_out", bias=False)
        weights |= _norm(f"{name}.norm", (width,))
        weights |= initialize_linear(source, width, parameters["hidden_width"], f"{name}.first")
        weights |= initialize_linear(source, parameters["hidden_width"], width, f"{name}.second")
    return weights


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for images of task["image_shape"]."""
    weights = initialize_encoder(parameters, task, source)
    return weights | initialize_linear(source, parameters["width"], task["classes"] - 1, "output")


def layer(hidden: Tensor, weights: Weights, name: str) -> Tensor:
    """The linear layer `name`, with or without bias."""
    return linear(hidden, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def _normalized(hidden: Tensor, weights: Weights, name: str) -> Tensor:
    """Layer normalization over the axes of the layer's weights."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    shared = (len(weight), *[1] * (hidden.dim() - weight.dim()), *weight.shape[1:])
    return functional.layer_norm(hidden, weight.shape[1:]) * weight.view(shared) + bias.view(shared)


def _channelwise(images: Tensor, weights: Weights, name: str) -> Tensor:
    """A 1x1 convolution without bias: (R, B, C, H, W) -> (R, B, C', H, W)."""
    rows = images.flatten(3).transpose(2, 3)  # one product per run, with one row per patch
    return layer(rows, weights, name).transpose(2, 3).unflatten(-1, images.shape[3:])


def encode(parameters: dict, weights: Weights, batch: Batch) -> Tensor:
    """The mean of the representations of all patches: (R, B, width)."""
    width, patch = parameters["width"], parameters["patch"]
    patches = functional.pixel_unshuffle(batch.images.flatten(0, 1), patch).unflatten(0, batch.images.shape[:2])
    side = patches.shape[-1]
    hidden = layer(patches.flatten(3).transpose(2, 3), weights, "patch").transpose(2, 3).unflatten(-1, (side, side))
    for index in range(parameters["residual_blocks"]):
        name = f"block{index}"
        inner = conv2d(hidden, weights[f"{name}.convolution.weight"], None, padding=1)
        inner = _channelwise(_normalized(inner, weights, f"{name}.norm"), weights, f"{name}.first")
        hidden = hidden + _channelwise(functional.gelu(inner), weights, f"{name}.second")
    line = torch.arange(side, device=hidden.device)
    places = torch.cartesian_prod(line, line).flip(1)  # column, row
    tokens = hidden.flatten(3).transpose(2, 3) + sincos(places, width)
    for index in range(parameters["depth"]):
        name = f"layer{index}"
        mixed = layer(_normalized(tokens, weights, f"{name}.attention_norm"), weights, f"{name}.attention_in")
        shape = (*tokens.shape[:3], parameters["heads"], parameters["head_width"])
        queries, keys, values = (part.reshape(shape).transpose(2, 3).flatten(0, 1) for part in mixed.chunk(3, -1))
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        attended = attended.transpose(1, 2).flatten(2).unflatten(0, tokens.shape[:2])
        tokens = tokens + layer(attended, weights, f"{name}.attention_out")
        inner = layer(_normalized(tokens, weights, f"{name}.norm"), weights, f"{name}.first")
        tokens = tokens + layer(functional.gelu(inner), weights, f"{name}.second")
    return tokens.mean(2)


def scores(hidden: Tensor, weights: Weights) -> Tensor:
    """Class scores (R, B, C) from the C - 1 outputs of the layer "output"; the first class's score is 0.

    The zeros are computed as a column of the product, because the last bits of a product with a single column may depend on the
    number of runs.
    """
    weight, bias = weights["output.weight"], weights["output.bias"]
    return linear(hidden, functional.pad(weight, (1, 0)), functional.pad(bias, (1, 0)))


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Class scores (R, B, classes)."""
    features = tap("features", encode(parameters, weights, batch), None)
    return scores(features, weights)
