"""One hidden layer on pixels, an ordinary torch.nn.Module: describe the model, who published it, and how this version differs."""

from __future__ import annotations

import math

from torch import Tensor, nn

KIND = "image"
REPRESENTATIONS = {"penultimate": "hidden"}  # name of a representation: the submodule whose output it is
PARAMETERS = {
    "width": {"type": "integer", "minimum": 1, "default": 64, "description": "units of the hidden layer"},
}


class Network(nn.Module):
    """The network of a single run, without a run axis."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        pixels, width = math.prod(task["image_shape"]), parameters["width"]
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU())
        self.output = nn.Linear(width, task["classes"])

    def forward(self, images: Tensor) -> Tensor:
        """Class scores (B, classes) of images (B, channels, height, width)."""
        return self.output(self.hidden(images))
