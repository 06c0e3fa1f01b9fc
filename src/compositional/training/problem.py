"""What the runs of a pack share, and what each run starts with: its initial weights and its buffers."""

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

# How many runs are always computed together. On CUDA the library chooses a batched kernel by the number of runs, so smaller packs
# are padded with copies whose results are discarded. On the CPU (None) any number of runs gives the same bits.
WIDTH: dict[str, int | None] = {"cpu": None, "cuda": 64}


@dataclass
class Problem:
    """Everything that the runs of a pack share. `splits` holds the members of the task by name."""

    task: str
    about: dict[str, Any]  # the content of task.json
    splits: dict[str, Split]
    model_name: str
    model: Model
    model_parameters: dict[str, Any]
    regularizer: Regularizer | None
    regularizer_parameters: dict[str, Any]
    settings: dict[str, Any]  # as declared in training.settings
    device: str

    def __post_init__(self) -> None:
        # Imported by name, so that the code that turns a Network into a model is in no other model's fingerprint.
        if self.model.Network:
            self.model = import_module("compositional.training.networks").model_of(self.model, self)

    @property
    def seeded_as(self) -> str:
        """The task whose name seeds initializations, batches and noise: `training.seeded_as`, or else the task itself."""
        return self.settings["seeded_as"] or self.task


def width_of(problem: Problem) -> int | None:
    """How many runs are computed together on this device; None: any number.

    A model for which padding is too expensive sets its own WIDTH. A configuration can set `cuda_width` for a large variant.
    """
    if problem.device == "cuda" and problem.settings["cuda_width"]:
        return problem.settings["cuda_width"]
    return problem.model.WIDTH.get(problem.device, WIDTH[problem.device])


def initialization_source(problem: Problem, seed: int) -> np.random.Generator:
    """The generator from which a run's weights are drawn."""
    return randomness.generator(randomness.derive(problem.seeded_as, problem.model_name, seed, "initialization"))


def initial_weights(problem: Problem, seed: int) -> dict[str, Tensor]:
    """One run's weights before training, by name, without a run axis."""
    return problem.model.initialize(problem.model_parameters, problem.about, initialization_source(problem, seed))


def buffers(problem: Problem, seed: int) -> dict[str, Tensor]:
    """Tensors that a run's forward pass needs but does not train, such as its graph; most models have none."""
    return problem.model.buffers(problem.model_parameters, problem.about, seed)


def weight_layout(problem: Problem) -> WeightLayout:
    """How this problem's weights are laid out in a flat buffer."""
    return WeightLayout({name: tensor.shape for name, tensor in initial_weights(problem, 0).items()})


def prepare(problem: Problem) -> Any:
    """What the regularizer computes from the training set before training; None for most regularizers."""
    if problem.regularizer is None:
        return None
    prepare, train = problem.regularizer.prepare, problem.splits["train"]
    tensors = {name: value for name, value in vars(train).items() if isinstance(value, Tensor)}
    with import_module("compositional.training.effects").unchanged(prepare, tensors, "training set", "data"):
        return prepare(problem.regularizer_parameters, train)
