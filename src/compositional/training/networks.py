"""An ordinary `torch.nn.Module` as a model: a module with `class Network`, which computes a single run without a run axis.

    Network(parameters, task)     standard layers with their own initialization; `task` is the content of task.json
    Network.forward(batch)        of one run: the kind's input (`Batch.single`) -> outputs (B, ...)
    REPRESENTATIONS               {"encoder_states": "encoder.norm"}: by name, the submodule whose output it is

Runs are computed one after the other (WIDTH is 1), so they cannot mix, and all code for packs works unchanged. Each run has its
own torch random numbers: its key seeds the initialization, and its stream for dropout seeds every pass. Everything that draws
from torch's generator is therefore reproducible and continues correctly after a checkpoint. Frozen parameters and buffers are
kept with the run. Batch normalization works as in `models.batchnorm_cnn`: it uses the batch's own statistics in training, those
of training examples in evaluation, and no running averages. A network that changes other buffers while it computes is refused
(`training.guards`).

This module is imported by name, so that it is part of the fingerprints of such models only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from compositional import randomness
from compositional.kinds import Batch
from compositional.models import Model
from compositional.training.problem import Problem, initialization_source


@contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Within the context, torch's generators start from `seed`; afterwards they continue as if nothing had been drawn."""
    generators = [torch.default_generator]
    if device == "cuda":
        generators.append(torch.cuda.default_generators[torch.cuda.current_device()])
    states = [generator.get_state() for generator in generators]
    for generator in generators:
        generator.manual_seed(seed)
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def model_of(described: Model, problem: Problem) -> Model:
    """The model described by a module with `class Network`, completed by the functions derived from it for this problem.

    Raises:
        TypeError: its REPRESENTATIONS do not name submodules.
    """
    if described.Network is None or not isinstance(described.REPRESENTATIONS, dict):
        raise TypeError(f"REPRESENTATIONS of a Network must be {{name: submodule}}, {described.REPRESENTATIONS!r} is not")
    own = _Functions(described.Network, described.REPRESENTATIONS, problem)
    return replace(
        described,
        WIDTH={"cpu": 1, "cuda": 1},
        GRAPH=False,  # every pass copies two random numbers to the host, and the network may copy more
        initialize=own.initialize,
        forward=own.forward,
        buffers=own.buffers,
        calibrate=own.calibrate if own.norms else None,
    )


class _Functions:
    """The functions of a model, derived from its Network."""

    def __init__(self, network: type[nn.Module], shown: dict[str, str], problem: Problem) -> None:
        # In evaluation, nn.TransformerEncoder's fast path differs from its layers in the last bits.
        torch.backends.mha.set_fastpath_enabled(False)
        self.type, self.problem = network, problem
        self.network = self._built(np.random.default_rng(0)).to(problem.device)
        self.norms = {
            name: part
            for name, part in self.network.named_modules()
            if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None
        }
        for norm in self.norms.values():
            norm.track_running_stats, norm.momentum = False, None  # None: plain means over batches
        self._statistics = {f"{name}.{own}" for name, norm in self.norms.items() for own, _ in norm.named_buffers()}
        self._now: tuple[Callable, Batch] | None = None  # tap and batch of the current pass
        for name, path in shown.items():
            self.network.get_submodule(path).register_forward_hook(self._hook(name, path))

    def _built(self, source: np.random.Generator) -> nn.Module:
        with _seeded(int(source.integers(2**63)), "cpu"):
            return self.type(self.problem.model_parameters, self.problem.about)

    def initialize(self, parameters: dict, task: dict, source: np.random.Generator) -> dict[str, Tensor]:
        """One run's trainable weights; tied weights appear once."""
        named = self._built(source).named_parameters()
        return {name: weight.detach().clone() for name, weight in named if weight.requires_grad}

    def buffers(self, parameters: dict, task: dict, seed: int) -> dict[str, Tensor]:
        """A run's frozen parameters, and the buffers of its state dictionary except statistics of batch normalization."""
        network = self._built(initialization_source(self.problem, seed))
        frozen = {name: weight for name, weight in network.named_parameters() if not weight.requires_grad}
        kept = {name: buffer for name, buffer in network.named_buffers() if name in network.state_dict()}
        return {name: tensor.detach().clone() for name, tensor in (frozen | kept).items() if name not in self._statistics}

    def _hook(self, name: str, path: str) -> Callable:
        def show(_: nn.Module, inputs: Any, output: Any) -> Any:
            if self._now is None:
                return output
            tap, batch = self._now
            values = output[0] if isinstance(output, tuple) else output
            mask = getattr(batch, "input_mask", None)
            if not isinstance(values, Tensor) or (mask is not None and values.shape[:2] != mask.shape[1:]):
                found = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
                wanted = "a tensor (B, ...)" if mask is None else f"(B, input positions, ...) = {(*mask.shape[1:], ...)}"
                raise ValueError(
                    f"representation {name!r}: submodule {path!r} must give {wanted}, it gives {found}. Usual causes: no "
                    "batch_first=True; a packed sequence. Any tensor can be shown by passing it through an nn.Identity()"
                )
            shown = tap(name, values.unsqueeze(0), mask).squeeze(0)
            return (shown, *output[1:]) if isinstance(output, tuple) else shown

        return show

    def forward(self, parameters: dict, weights: dict[str, Tensor], batch: Batch, tap: Callable) -> Tensor:
        """Outputs (1, ...) of one run with weights (1, ...). The network is in training mode if the tap has noise."""
        noise = getattr(tap, "noise", None)
        seed = 0 if noise is None else randomness.derive(*noise(torch.Size([2])).flatten().tolist()) & (2**63 - 1)
        self.network.train(noise is not None)
        for name, norm in self.norms.items():
            norm.train(f"{name}.running_mean" not in weights)
        self._now = tap, batch
        try:
            return batch.packed(self._computed(weights, batch, seed))
        finally:
            self._now = None

    def _computed(self, weights: dict[str, Tensor], batch: Batch, seed: int) -> Tensor:
        own = {name: values.squeeze(0) for name, values in weights.items()}
        with _seeded(seed, self.problem.device):
            return functional_call(self.network, own, (batch.single(),))

    def calibrate(self, parameters: dict, weights: dict[str, Tensor], batches: Iterable[Batch]) -> dict[str, Tensor]:
        """Statistics for batch normalization in evaluation: means over these batches, computed as by torch's `update_bn`."""
        self.network.eval()
        for norm in self.norms.values():
            norm.train().track_running_stats = True
            norm.reset_running_stats()
        with torch.no_grad():
            for batch in batches:
                self._computed(weights, batch, 0)
        found: dict[str, Tensor] = {}
        for name, norm in self.norms.items():
            norm.track_running_stats = False
            found |= {f"{name}.{kind}": getattr(norm, kind).unsqueeze(0).clone() for kind in ("running_mean", "running_var")}
        return found
