"""The other networks as a careful user writes them, in PyTorch's own layers: one run, starting from weights of this project.

As benchmarks/plain_sequences.py; `forward` takes what a batch's `single` gives and returns outputs (B, ...).
"""

from __future__ import annotations

import torch
from plain_sequences import Weights, dense, last, lstm, table
from torch import Tensor, nn
from torch.nn import functional

from compositional.kinds.sequence_regression import Single
from compositional.models import batchnorm_cnn_torch, resnet18
from compositional.models.pixel_shuffle_transformer import sincos
from compositional.training.problem import Problem


def convolution(weights: Weights, name: str, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """The layer `name`, with a bias if it has one."""
    outputs, inputs, kernel, _ = weights[f"{name}.weight"].shape
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=f"{name}.bias" in weights)
    layer.weight.data = weights[f"{name}.weight"].clone()
    if layer.bias is not None:
        layer.bias.data = weights[f"{name}.bias"].clone()
    return layer


def _scaled(layer: nn.Module, weights: Weights, scale: str, shift: str) -> nn.Module:
    layer.weight.data, layer.bias.data = weights[scale].clone(), weights[shift].clone()
    return layer


class Convolutional(nn.Module):
    """models.cnn, with the noise and the norm of regularizers.entropy."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for index in range(case.model_parameters["convolutions"]):
            layers += [convolution(weights, f"convolution{index}"), nn.ReLU()] + ([nn.MaxPool2d(2)] if index == 0 else [])
        self.body = nn.Sequential(*layers, nn.Flatten(), dense(weights, "dense"), nn.ReLU())
        self.output, self.penalty = dense(weights, "output"), torch.zeros(())

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.body(images)
        self.penalty = hidden.square().mean(-1).mean()
        return self.output(hidden + 0.3 * torch.randn_like(hidden) if self.training else hidden)


def batch_normalized(case: Problem, weights: Weights) -> nn.Module:
    """models.batchnorm_cnn, whose form in PyTorch's layers is a model of its own."""
    network = batchnorm_cnn_torch.Network(case.model_parameters, case.about)
    for index in range(len(network.convolutions)):
        name = f"convolution{index}"
        network.convolutions[index] = convolution(weights, name, padding=case.model_parameters["padding"])
        _scaled(network.norms[index], weights, f"{name}.scale", f"{name}.shift")
    for index in range(len(network.dense)):
        network.dense[index] = dense(weights, f"dense{index}")
    network.output = dense(weights, "output")
    return network


class Residual(nn.Module):
    """A basic block of models.resnet18."""

    def __init__(self, weights: Weights, name: str, stride: int) -> None:
        super().__init__()

        def normalized(part: str, stride: int, padding: int) -> nn.Sequential:
            norm = nn.BatchNorm2d(len(weights[f"{part}.scale"]))
            return nn.Sequential(
                convolution(weights, part, stride, padding), _scaled(norm, weights, f"{part}.scale", f"{part}.shift")
            )

        self.body = nn.Sequential(normalized(f"{name}.first", stride, 1), nn.ReLU(), normalized(f"{name}.second", 1, 1))
        has_own = f"{name}.shortcut.weight" in weights
        self.shortcut = normalized(f"{name}.shortcut", stride, 0) if has_own else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        return (self.body(images) + self.shortcut(images)).relu()


class ResNet(nn.Module):
    """models.resnet18."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        _, stride, padding = resnet18._STEMS[case.model_parameters["stem"]]
        norm = _scaled(nn.BatchNorm2d(len(weights["stem.scale"])), weights, "stem.scale", "stem.shift")
        layers = [convolution(weights, "stem", stride, padding), norm, nn.ReLU()]
        if case.model_parameters["stem"] == "imagenet":
            layers.append(nn.MaxPool2d(3, 2, 1))
        layers += [Residual(weights, name, stride) for name, _, _, stride in resnet18._blocks(case.model_parameters)]
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense(weights, "output"))
        self.binary = case.about["classes"] == 2

    def forward(self, images: Tensor) -> Tensor:
        scores = self.body(images)
        return functional.pad(scores, (1, 0)) if self.binary else scores


class VisionTransformer(nn.Module):
    """models.vision_transformer."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        options, width = case.model_parameters, case.model_parameters["width"]
        self.patch, self.heads = options["patch"], options["heads"]
        self.embedding, self.output = dense(weights, "embedding"), dense(weights, "output")
        self.position, self.token = (nn.Parameter(weights[name].clone()) for name in ("position", "class_token"))
        self.blocks = nn.ModuleList()
        for block in range(options["depth"]):
            names = (f"block{block}.attention", f"block{block}.network")
            norms = [_scaled(nn.LayerNorm(width), weights, f"{name}.norm.scale", f"{name}.norm.shift") for name in names]
            layers = [dense(weights, f"{names[0]}.{part}") for part in ("queries_keys_values", "output")]
            layers += [dense(weights, f"{names[1]}.{part}") for part in ("hidden", "output")]
            self.blocks.append(nn.ModuleList([*norms, *layers]))
        self.norm = _scaled(nn.LayerNorm(width), weights, "norm.scale", "norm.shift")
        self.drop = nn.Dropout(options["dropout"])

    def forward(self, images: Tensor) -> Tensor:
        patches = images.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        tokens = self.embedding(patches.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2))
        tokens = self.drop(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1) + self.position)
        for first, second, mixed, attended, hidden, output in self.blocks:
            parts = mixed(first(tokens)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(*parts)
            tokens = tokens + self.drop(attended(found.transpose(1, 2).flatten(2)))
            tokens = tokens + self.drop(output(self.drop(functional.gelu(hidden(second(tokens))))))
        return self.output(self.norm(tokens)[:, 0])


class Patches(nn.Module):
    """models.pixel_shuffle_transformer up to the mean over patches."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        options = case.model_parameters
        self.patch_size, self.heads, self.patch = options["patch"], options["heads"], dense(weights, "patch")
        self.blocks, self.layers = nn.ModuleList(), nn.ModuleList()

        def normalization(name: str) -> nn.Module:
            return _scaled(nn.LayerNorm(weights[f"{name}.weight"].shape), weights, f"{name}.weight", f"{name}.bias")

        def pointwise(name: str) -> nn.Conv2d:
            return convolution({f"{name}.weight": weights[f"{name}.weight"].T[..., None, None].contiguous()}, name)

        for index in range(options["residual_blocks"]):
            name = f"block{index}"
            layers = [
                convolution(weights, f"{name}.convolution", 1, 1),
                normalization(f"{name}.norm"),
                pointwise(f"{name}.first"),
            ]
            self.blocks.append(nn.Sequential(*layers, nn.GELU(), pointwise(f"{name}.second")))
        for index in range(options["depth"]):
            name = f"layer{index}"
            attention = [normalization(f"{name}.attention_norm"), dense(weights, f"{name}.attention_in")]
            network = [
                normalization(f"{name}.norm"),
                dense(weights, f"{name}.first"),
                nn.GELU(),
                dense(weights, f"{name}.second"),
            ]
            parts = [nn.Sequential(*attention), dense(weights, f"{name}.attention_out"), nn.Sequential(*network)]
            self.layers.append(nn.ModuleList(parts))

    def forward(self, images: Tensor) -> Tensor:
        patches = functional.pixel_unshuffle(images, self.patch_size)
        side = patches.shape[-1]
        hidden = self.patch(patches.flatten(2).transpose(1, 2)).transpose(1, 2).unflatten(2, (side, side))
        for block in self.blocks:
            hidden = hidden + block(hidden)
        places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).flip(1).to(images.device)
        tokens = hidden.flatten(2).transpose(1, 2) + sincos(places, hidden.shape[1])
        for mixed, attended, network in self.layers:
            parts = mixed(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(*parts)
            tokens = tokens + attended(found.transpose(1, 2).flatten(2))
            tokens = tokens + network(tokens)
        return tokens.mean(1)


class PixelShuffle(nn.Module):
    """models.pixel_shuffle_transformer."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.encoder, self.output = Patches(case, weights), dense(weights, "output")

    def forward(self, images: Tensor) -> Tensor:
        return functional.pad(self.output(self.encoder(images)), (1, 0))


class Graph(nn.Module):
    """models.graph_structured, its messages sent along lists of nodes."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        options = case.model_parameters
        self.encoder, self.features, self.output = Patches(case, weights), dense(weights, "features"), dense(weights, "output")
        self.layers = nn.ModuleList(dense(weights, f"message{index}") for index in range(options["layers"]))
        self.drop = nn.Dropout(options["dropout"])
        fixed = case.model.buffers(options, case.about, 0)
        self.nodes, ends = int((fixed["graph.share"] > 0).sum()), fixed["graph.ends"]
        joined = ends.sum(2).all(0)
        real = torch.cat([fixed["graph.share"] > 0, joined])
        self.register_buffer("reads", fixed["graph.reads"].unflatten(0, (len(real), -1))[real])
        self.register_buffer("positions", fixed["graph.positions"][real])
        self.register_buffer("ends", ends[:, joined].argmax(2))

    def forward(self, images: Tensor) -> Tensor:
        elements = self.features(self.encoder(images))[:, self.reads] + self.positions
        hidden, edges = elements.tensor_split([self.nodes], 1)
        senders, receivers = self.ends.flatten(), self.ends.flip(0).flatten()
        for layer in self.layers:
            hidden, kept = self.drop(hidden), self.drop(edges)
            messages = (hidden[:, senders] + kept.repeat(1, 2, 1)).relu()
            hidden = layer(hidden.index_add(1, receivers, messages))
        return functional.pad(self.output(hidden.mean(1)), (1, 0))


class Regressor(nn.Module):
    """models.lstm_regressor: an LSTM without attention."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.cell, self.output = table(weights["embedding"]), lstm(weights, "cell"), dense(weights, "output")
        self.drop = nn.Dropout(case.model_parameters["dropout"])

    def forward(self, batch: Single) -> Tensor:
        states, _ = self.cell(self.words(batch.inputs))
        return self.output(self.drop(last(states, batch.input_lengths)))


def rectified(case: Problem, weights: Weights) -> nn.Module:
    """models.dense_network and models.multilayer_perceptron."""
    layers: list[nn.Module] = []
    for layer in range(case.model_parameters["hidden_layers"]):
        layers += [dense(weights, f"hidden{layer}"), nn.ReLU()]
    return nn.Sequential(*layers, dense(weights, "output"))
