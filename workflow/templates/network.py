"""One hidden layer on pixels, an ordinary torch.nn.Module: say here what it is, after whom, and how it differs from theirs."""

from __future__ import annotations

import math

from torch import Tensor, nn

KIND = "image"
REPRESENTATIONS = {"penultimate": "hidden"}  # name: the submodule whose output it is
PARAMETERS = {
    "width": {"type": "integer", "minimum": 1, "default": 64, "description": "units of the hidden layer"},
}


class Network(nn.Module):
    """Of one run: no run axis, no other run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        pixels, width = math.prod(task["image_shape"]), parameters["width"]
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU())
        self.output = nn.Linear(width, task["classes"])

    def forward(self, images: Tensor) -> Tensor:
        """Class scores (B, classes) of images (B, channels, height, width)."""
        return self.output(self.hidden(images))
