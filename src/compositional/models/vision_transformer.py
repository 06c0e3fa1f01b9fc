"""Vision transformer (Dosovitskiy et al., ICLR 2021), in the variant of Lippl and Stachenfeld (ICLR 2025): patches of 8 x 8.

A linear map embeds the patches; a class token and learned positions are added. Each block has attention and a GELU network with
one hidden layer, both with a layer normalization before them and a shortcut around them. The output is computed from the
normalized class token. Dropout acts in training, with each example's own noise (`randomness.uniform_noise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional.kinds.composite import Batch
from compositional.layers import Weights, attention, noise_compiled
from compositional.layers.functional import initialize_linear, linear
from compositional.randomness import uniform_noise

KIND = "composite"
REPRESENTATIONS = ("penultimate",)
PARAMETERS = {
    "patch": {"type": "integer", "minimum": 1, "default": 8, "description": "height and width of a patch"},
    "width": {"type": "integer", "minimum": 1, "default": 256, "description": "width of a token"},
    "depth": {"type": "integer", "minimum": 1, "default": 4, "description": "blocks"},
    "heads": {"type": "integer", "minimum": 1, "default": 6, "description": "attention heads"},
    "head_width": {"type": "integer", "minimum": 1, "default": 64, "description": "width of a head"},
    "hidden_width": {"type": "integer", "minimum": 1, "default": 256, "description": "hidden units of a block's network"},
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "share of the units of embeddings, attention outputs and both network layers that is dropped in training",
    },
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for images of task["image_shape"] = (channels, height, width): PyTorch's defaults, positions N(0, 1).

    Raises:
        ValueError: the image size is not a multiple of the patch size.
    """
    channels, height, width = task["image_shape"]
    patch, size = parameters["patch"], parameters["width"]
    if height % patch or width % patch:
        raise ValueError(f"vision_transformer: patch: {patch} must divide the height and width of images, {height} x {width}")
    inner, inputs = parameters["heads"] * parameters["head_width"], channels * patch**2
    weights = initialize_linear(source, inputs, size, "embedding")
    tokens = 1 + (height // patch) * (width // patch)
    weights["position"] = torch.from_numpy(source.standard_normal((tokens, size), dtype=np.float32))
    weights["class_token"] = torch.from_numpy(source.standard_normal((1, size), dtype=np.float32))
    for block in range(parameters["depth"]):
        weights |= attention.initialize_normalization(size, f"block{block}.attention.norm")
        weights |= initialize_linear(source, size, 3 * inner, f"block{block}.attention.queries_keys_values", bias=False)
        weights |= initialize_linear(source, inner, size, f"block{block}.attention.output")
        weights |= attention.initialize_normalization(size, f"block{block}.network.norm")
        weights |= initialize_linear(source, size, parameters["hidden_width"], f"block{block}.network.hidden")
        weights |= initialize_linear(source, parameters["hidden_width"], size, f"block{block}.network.output")
    weights |= attention.initialize_normalization(size, "norm")
    weights |= initialize_linear(source, size, task["classes"], "output")
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Outputs (R, B, classes), with dropout if the batch has noise."""
    streams = count(1)

    def dropped(values: Tensor) -> Tensor:
        if batch.noise is None or not parameters["dropout"]:
            return values
        if values.device.type == "cpu":
            return noise_compiled.dropped(values, batch.noise, next(streams), parameters["dropout"])
        kept = uniform_noise(batch.noise, next(streams), values.shape[2:]) >= parameters["dropout"]
        return values * kept / (1 - parameters["dropout"])

    def layer(name: str, values: Tensor) -> Tensor:
        return linear(values.contiguous(), weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    patch, heads = parameters["patch"], parameters["heads"]
    images = batch.images.unfold(3, patch, patch).unfold(4, patch, patch)  # (R, B, C, rows, columns, patch, patch)
    patches = images.permute(0, 1, 3, 4, 5, 6, 2).flatten(4).flatten(2, 3)
    tokens = layer("embedding", patches)
    first = weights["class_token"].unsqueeze(1).expand(-1, tokens.shape[1], -1, -1)
    tokens = dropped(torch.cat([first, tokens], 2) + weights["position"].unsqueeze(1))
    for block in range(parameters["depth"]):
        name = f"block{block}.attention"
        mixed = layer(f"{name}.queries_keys_values", attention.normalize(weights, f"{name}.norm", tokens))
        # (R, B, heads, tokens, head width) each
        queries, keys, values = mixed.unflatten(-1, (3, heads, -1)).permute(3, 0, 1, 4, 2, 5)
        # One product per run, so that its arithmetic cannot depend on the number of runs.
        scores = torch.stack([q @ k.transpose(-1, -2) for q, k in zip(queries, keys, strict=True)])
        shares = (scores / math.sqrt(parameters["head_width"])).softmax(-1)
        attended = torch.stack([own @ value for own, value in zip(shares, values, strict=True)])
        tokens = tokens + dropped(layer(f"{name}.output", attended.transpose(2, 3).flatten(3)))
        name = f"block{block}.network"
        hidden = dropped(functional.gelu(layer(f"{name}.hidden", attention.normalize(weights, f"{name}.norm", tokens))))
        tokens = tokens + dropped(layer(f"{name}.output", hidden))
    last = tap("penultimate", attention.normalize(weights, "norm", tokens)[:, :, 0], None)
    return layer("output", last)
