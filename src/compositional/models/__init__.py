"""Models: the architectures that are trained. A model is a module that defines what `Model` lists.

Its functions compute R runs at once along a leading run axis. Each run has its own weights and does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

# Names that a module must define although they have a default, unless it defines the other name.
UNLESS = {"initialize": "Network", "forward": "Network"}
Options = dict[str, Any]  # values of the options in PARAMETERS, by name
About = dict[str, Any]  # the content of task.json


def _made_of_the_network(*arguments: Any) -> Any:
    raise TypeError("a model with a Network computes in a problem (training.problem.Problem), which makes this function of it")


def _no_buffers(parameters: Options, task: About, seed: int) -> dict[str, Tensor]:
    return {}


def _nothing_observed(parameters: Options, weights: dict[str, Tensor], task: About) -> dict[str, Tensor]:
    return {}


def _nothing_to_describe(parameters: Options, task: About, seed: int) -> list[tuple[str, str, Any]]:
    return []


@dataclass(frozen=True)
class Model:
    """The contract of a module in this folder. Names with a default are optional."""

    # The kind or kinds of task that it takes: modules of `kinds`.
    KIND: str | tuple[str, ...]
    # Names of the activations that it passes to the tap; for a Network, by name, the submodule whose output it is.
    REPRESENTATIONS: tuple[str, ...] | dict[str, str]
    # Its options as JSON schema, each with a default and a description.
    PARAMETERS: dict[str, dict[str, Any]]
    # An ordinary torch.nn.Module for a single run. `training.networks` derives the two functions below from it.
    Network: type[torch.nn.Module] | None = None
    # initialize(parameters, task, source): one run's weights before training, by name, without a run axis. `source` is the only
    # source of randomness.
    initialize: Callable[[Options, About, np.random.Generator], dict[str, Tensor]] = _made_of_the_network
    # forward(parameters, weights, batch, tap): outputs of R runs, as `losses` of the kind's batches takes them, from weights
    # (R, ...) by name and a batch of the kind. Every activation h in REPRESENTATIONS passes through `h = tap(name, h, mask)`;
    # dropout is `layers.tap.dropout(tap, h, rate)`.
    forward: Callable[[Options, dict[str, Tensor], Any, Callable[..., Tensor]], Tensor] = _made_of_the_network
    # Packages that it needs in addition to those of envs/requirements.txt.
    PACKAGES: tuple[str, ...] = ()
    # By device, how many runs are computed together, if that differs from `training.problem.WIDTH`.
    WIDTH: Mapping[str, int | None] = field(default_factory=dict)
    # Whether a step on CUDA may be recorded once and replayed. This requires that nothing in it goes through the host.
    GRAPH: bool = True
    # buffers(parameters, task, seed): tensors of a run that are not trained, by name, without a run axis.
    buffers: Callable[[Options, About, int], dict[str, Tensor]] = _no_buffers
    # fit(parameters, task, train): one run's weights, for a model that is not trained by gradient steps.
    fit: Callable[[Options, About, Any], dict[str, Tensor]] | None = None
    # calibrate(parameters, weights, batches): statistics (R, ...) of training batches that evaluation needs, by name.
    calibrate: Callable[[Options, dict[str, Tensor], Iterable[Any]], dict[str, Tensor]] | None = None
    # observe(parameters, weights, task): quantities computed from the weights alone, (R,) by metric, for each point of a curve.
    observe: Callable[[Options, dict[str, Tensor], About], dict[str, Tensor]] = _nothing_observed
    # measure(parameters, task, splits, outputs): in evaluation, metrics of one run from its outputs (n, ...), by (split, metric).
    measure: Callable[[Options, About, dict[str, Any], dict[str, Tensor]], dict[tuple[str, str], float]] | None = None
    # describe(parameters, task, seed): rows (split, metric, value) of a run that do not require the network.
    describe: Callable[[Options, About, int], list[tuple[str, str, Any]]] = _nothing_to_describe
