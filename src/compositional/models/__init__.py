"""What is trained: architectures. A model is a module with what `Model` says.

Its functions compute R runs at once, each with weights of its own, along a leading run axis; no run depends on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

# What a module must define in spite of a default, unless it defines the other.
UNLESS = {"initialize": "Network", "forward": "Network"}
Options = dict[str, Any]  # of PARAMETERS, by name
About = dict[str, Any]  # what a task says of itself: task.json


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
    """What a module here defines; what has a default, where it needs that."""

    # The kind of task that it takes, or several: modules of `kinds`.
    KIND: str | tuple[str, ...]
    # Names of the activations that it hands to the tap; of a Network, by name, the submodule whose output it is.
    REPRESENTATIONS: tuple[str, ...] | dict[str, str]
    # Its options, as JSON schema, each with default and description.
    PARAMETERS: dict[str, dict[str, Any]]
    # An ordinary torch.nn.Module of one run, instead of the two functions below, which `training.networks` makes of it.
    Network: type[torch.nn.Module] | None = None
    # initialize(parameters, task, source): one run's weights before training, by name, without a run axis; all that is random
    # comes from `source`.
    initialize: Callable[[Options, About, np.random.Generator], dict[str, Tensor]] = _made_of_the_network
    # forward(parameters, weights, batch, tap): outputs of R runs, as `losses` of the kind's batches takes them, from weights
    # (R, ...) by name and a batch of the kind. Every activation h in REPRESENTATIONS goes through `h = tap(name, h, mask)`,
    # dropout through `layers.tap.dropout(tap, h, rate)`.
    forward: Callable[[Options, dict[str, Tensor], Any, Callable[..., Tensor]], Tensor] = _made_of_the_network
    # Packages that it needs besides those of envs/requirements.txt.
    PACKAGES: tuple[str, ...] = ()
    # By device, how many runs compute together, where that differs from `training.problem.WIDTH`.
    WIDTH: Mapping[str, int | None] = field(default_factory=dict)
    # A step on CUDA may be recorded once and replayed: nothing in it goes through the host.
    GRAPH: bool = True
    # buffers(parameters, task, seed): what a run has besides its weights and does not train, by name, without a run axis.
    buffers: Callable[[Options, About, int], dict[str, Tensor]] = _no_buffers
    # fit(parameters, task, train): one run's weights, of a model that is not trained by gradient steps.
    fit: Callable[[Options, About, Any], dict[str, Tensor]] | None = None
    # calibrate(parameters, weights, batches): statistics (R, ...) of training batches that evaluation needs, by name.
    calibrate: Callable[[Options, dict[str, Tensor], Iterable[Any]], dict[str, Tensor]] | None = None
    # observe(parameters, weights, task): values of the weights themselves, (R,) by metric, in every record of a curve.
    observe: Callable[[Options, dict[str, Tensor], About], dict[str, Tensor]] = _nothing_observed
    # measure(parameters, task, splits, outputs): in evaluation, values of one run's outputs (n, ...), by (split, metric).
    measure: Callable[[Options, About, dict[str, Any], dict[str, Tensor]], dict[tuple[str, str], float]] | None = None
    # describe(parameters, task, seed): rows (split, metric, value) of a run that need no network.
    describe: Callable[[Options, About, int], list[tuple[str, str, Any]]] = _nothing_to_describe
