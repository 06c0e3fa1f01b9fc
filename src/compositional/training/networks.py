"""An ordinary `torch.nn.Module` as a model: a module with `class Network`, which computes a single run without a run axis.

    Network(parameters, task)     standard layers with their own initialization; `task` is the content of task.json
    Network.forward(batch)        of one run: the kind's input (`Batch.single`) -> outputs (B, ...)
    REPRESENTATIONS               {"encoder_states": "encoder.norm"}: by name, the submodule whose output it is

Runs are computed one after the other (WIDTH is 1), so they cannot mix, and all code for packs works unchanged. Each run has its
own torch random numbers: its key seeds the initialization, and its stream for dropout seeds every pass. Everything that draws
from torch's generator is therefore reproducible and continues correctly after a checkpoint. Frozen parameters and buffers are
kept with the run. Batch normalization works as in `models.batchnorm_cnn`: it uses the batch's own statistics in training, those
of training examples in evaluation, and no running averages. A network that changes other buffers while it computes is refused,
here or in `training.guards`.

This module is imported by name, so that it is part of the fingerprints of such models only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from compositional import randomness
from compositional.kinds import Batch
from compositional.models import Model
from compositional.training.problem import Problem, initialization_source

_FIXED_STATISTICS = (
    "Batch normalization has the batch's own statistics in training here. For fixed ones, write its scale and shift as a layer"
)


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
        TypeError: its REPRESENTATIONS are not a dictionary.
        ValueError: they do not name submodules, or the Network cannot be trained here.
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
        self.network = self.built(np.random.default_rng(0))
        self._check(shown)
        self.network.to(problem.device)
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

    def refuse(self, problem: str) -> NoReturn:
        """Stop with a sentence that begins with the place of the Network."""
        raise ValueError(f"{inspect.getsourcefile(self.type)}, class {self.type.__name__}: {problem}")

    def _check(self, shown: dict[str, str]) -> None:
        """Refuse a Network that cannot be trained here."""
        named, parts = dict(self.network.named_parameters()), dict(self.network.named_modules())
        if lazy := [name for name, weight in named.items() if isinstance(weight, nn.UninitializedParameter)]:
            self.refuse(f"the shape of {', '.join(lazy)} is unknown until data are seen. Give its layers their input widths")
        if not any(weight.requires_grad for weight in named.values()):
            self.refuse("it has no parameter that can be trained")
        for name, weight in named.items():
            if weight.requires_grad and weight.dtype != torch.float32:
                self.refuse(f"{name} has dtype {weight.dtype}, must be torch.float32, in which runs are computed and stored")
        self.network.train()
        if fixed := [
            name for name, part in parts.items() if isinstance(part, nn.modules.batchnorm._BatchNorm) and not part.training
        ]:
            self.refuse(f"its train() leaves {', '.join(fixed)} in evaluation. {_FIXED_STATISTICS}")
        if missing := [path for path in shown.values() if path not in parts]:
            known = ", ".join(name for name in parts if name)
            self.refuse(f"REPRESENTATIONS: there is no submodule {', '.join(map(repr, missing))}. Allowed: {known}")

    def built(self, source: np.random.Generator) -> nn.Module:
        """A network with the initial weights that are drawn from `source`."""
        seed = int(source.integers(2**63))
        with _seeded(seed, "cpu"):
            # Copies, because a Network may change what it is given, for example with parameters.pop.
            network = self.type(deepcopy(self.problem.model_parameters), deepcopy(self.problem.about))
            self._check_seed(seed)
        return network

    def _check_seed(self, seed: int) -> None:
        """Refuse a Network that gave torch's generator another seed, which would be that of every run and every step."""
        if torch.initial_seed() != seed:
            self.refuse("it calls torch.manual_seed, so all runs would draw the same numbers. Leave seeds to the project")

    def initialize(self, parameters: dict, task: dict, source: np.random.Generator) -> dict[str, Tensor]:
        """One run's trainable weights; tied weights appear once."""
        named = self.built(source).named_parameters()
        return {name: weight.detach().clone() for name, weight in named if weight.requires_grad}

    def buffers(self, parameters: dict, task: dict, seed: int) -> dict[str, Tensor]:
        """A run's frozen parameters, and the buffers of its state dictionary except statistics of batch normalization."""
        network = self.built(initialization_source(self.problem, seed))
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
                wanted, one = "a tensor (B, ...)", ""
                if mask is not None:
                    wanted = f"a tensor (B, input positions, ...) = ({mask.shape[1]}, {mask.shape[2]}, ...)"
                    one = "; expand one vector per sentence to every position"
                raise ValueError(
                    f"representation {name!r}: submodule {path!r} must give {wanted}, it gives {found}. Usual causes: no "
                    f"batch_first=True; a packed sequence. An nn.Identity() makes any such tensor available{one}"
                )
            # A copy goes on: the network may change it in place, as nn.ReLU(inplace=True) does.
            shown = tap(name, values.unsqueeze(0), mask).squeeze(0).clone()
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
        given, modes = dict(own), [norm.training for norm in self.norms.values()]
        with _seeded(seed, self.problem.device):
            outputs = functional_call(self.network, own, (batch.single(),))
            self._check_seed(seed)
        if not isinstance(outputs, Tensor):
            self.refuse(f"forward must return one tensor, the outputs; it returns a {type(outputs).__name__}")
        if assigned := [name for name in own if own[name] is not given[name]]:
            self.refuse(f"forward assigns {', '.join(assigned)}, which no training step keeps")
        if modes != [norm.training for norm in self.norms.values()]:
            self.refuse(f"forward calls train() or eval() on batch normalization. {_FIXED_STATISTICS}")
        return outputs

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
