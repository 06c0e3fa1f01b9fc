"""`models.batchnorm_cnn` in standard PyTorch: the same layers and initialization, as a `Network` (`training.networks`).

A packed model computes many runs at once. This module shows the same model without packing; a test checks that both agree.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from compositional.models import batchnorm_cnn

KIND = batchnorm_cnn.KIND
REPRESENTATIONS = {"convolution": "last_convolution", "penultimate": "penultimate"}
PARAMETERS = batchnorm_cnn.PARAMETERS


class Network(nn.Module):
    """The network of one run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        channels, height, width = task["image_shape"]
        kernel, padding = parameters["kernel"], parameters["padding"]
        lost = kernel - 1 - 2 * padding
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        for depth in parameters["channels"]:
            self.convolutions.append(nn.Conv2d(channels, depth, kernel, padding=padding))
            self.norms.append(nn.BatchNorm2d(depth))
            channels, height, width = depth, height - lost, width - lost
        widths = [channels * (height // 2) * (width // 2), *parameters["dense_widths"]]
        self.dense = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.output = nn.Linear(widths[-1], task["classes"])
        for layer in (*self.convolutions, *self.dense, self.output):
            nn.init.kaiming_normal_(layer.weight)
        self.pool = nn.MaxPool2d(2)
        self.last_convolution, self.penultimate = nn.Identity(), nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """Outputs (B, classes) of images (B, channels, height, width)."""
        last = len(self.norms) - 1
        for index, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            images = convolution(images).relu()
            images = norm(self.last_convolution(images) if index == last else images)
        hidden = self.pool(images).flatten(1)
        for layer in self.dense:
            hidden = layer(hidden).relu()
        return self.output(self.penultimate(hidden))
