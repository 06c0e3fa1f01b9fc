"""What the runs of a pack share, and what each begins with: its first weights and its buffers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from torch import Tensor

from compositional import randomness
from compositional.kinds import Split
from compositional.models import Model
from compositional.regularizers import Regularizer
from compositional.training.weights import WeightLayout

# How many runs compute together, always: on CUDA the library picks a batched kernel by the number of runs, so fewer are
# filled up with copies that are thrown away. On the CPU every number of runs gives the same bits.
WIDTH: dict[str, int | None] = {"cpu": None, "cuda": 64}


@dataclass
class Problem:
    """Everything that the runs of a pack share. `splits` by the names of the members of the task."""

    task: str
    about: dict[str, Any]  # task.json
    splits: dict[str, Split]
    model_name: str
    model: Model
    model_parameters: dict[str, Any]
    regularizer: Regularizer | None
    regularizer_parameters: dict[str, Any]
    settings: dict[str, Any]  # as in PARAMETERS
    device: str

    def __post_init__(self) -> None:
        # By name, so that what makes a model of a Network is in no other model's fingerprint.
        if self.model.Network:
            self.model = import_module("compositional.training.networks").model_of(self.model, self)

    @property
    def seeded_as(self) -> str:
        """The task whose runs' initializations, batches and noise these are, seed by seed: its own unless it says otherwise."""
        return self.settings["seeded_as"] or self.task


def width_of(problem: Problem) -> int | None:
    """How many runs compute together on this device. A model too large to be filled up has a WIDTH of its own, and a
    configuration can name one for a large variant."""
    if problem.device == "cuda" and problem.settings["cuda_width"]:
        return problem.settings["cuda_width"]
    return problem.model.WIDTH.get(problem.device, WIDTH[problem.device])


def initialization_source(problem: Problem, seed: int) -> np.random.Generator:
    """What a run's weights are drawn from."""
    return randomness.generator(randomness.derive(problem.seeded_as, problem.model_name, seed, "initialization"))


def initial_weights(problem: Problem, seed: int) -> dict[str, Tensor]:
    """One run's weights before training, by name, without a run axis."""
    return problem.model.initialize(problem.model_parameters, problem.about, initialization_source(problem, seed))


def buffers(problem: Problem, seed: int) -> dict[str, Tensor]:
    """What a run's forward pass needs besides its weights and does not train, such as its graph; nothing for most models."""
    return problem.model.buffers(problem.model_parameters, problem.about, seed)


def weight_layout(problem: Problem) -> WeightLayout:
    """How this problem's weights lie in a flat buffer."""
    return WeightLayout({name: tensor.shape for name, tensor in initial_weights(problem, 0).items()})


def prepare(problem: Problem) -> Any:
    """What the regularizer learns from the training set, once; None for most."""
    if problem.regularizer is None:
        return None
    return problem.regularizer.prepare(problem.regularizer_parameters, problem.splits["train"])
