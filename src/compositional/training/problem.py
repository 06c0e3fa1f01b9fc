"""What the runs of a pack share, and what each begins with: its first weights and its buffers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from compositional import randomness
from compositional.kinds import Split
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
    model: Any  # a module of `models`, or `training.networks.NetworkModel` of one
    model_parameters: dict[str, Any]
    regularizer: Any  # a module of `regularizers`, or None
    regularizer_parameters: dict[str, Any]
    settings: dict[str, Any]  # as in PARAMETERS
    device: str

    def __post_init__(self) -> None:
        # By name, so that what makes a model of a Network is in no other model's fingerprint.
        if hasattr(self.model, "Network"):
            module = getattr(self.model, "module", self.model)
            self.model = import_module("compositional.training.networks").NetworkModel(module, self)

    @property
    def seeded_as(self) -> str:
        """The task whose runs' initializations, batches and noise these are, seed by seed: its own unless it says otherwise."""
        return self.settings["seeded_as"] or self.task


def read_problem(split: Path, family: dict[str, Any], device: str) -> Problem:
    """A family's problem from its task's folder; `family` as from Configuration.family_parameters."""
    about = json.loads((split / "task.json").read_text())
    regularizer = family.get("regularizer_module")
    return Problem(
        task=family["task"],
        about=about,
        splits=import_module(f"compositional.kinds.{about['kind']}").load(split, device),
        model_name=family["model"],
        model=import_module(f"compositional.{family['model_module']}"),
        model_parameters=family["model_parameters"],
        regularizer=import_module(f"compositional.{regularizer}") if regularizer else None,
        regularizer_parameters=family.get("regularizer_parameters", {}),
        settings=family["settings"],
        device=device,
    )


def width_of(problem: Problem) -> int | None:
    """How many runs compute together on this device. A model too large to be filled up has a WIDTH of its own, and a
    configuration can name one for a large variant."""
    if problem.device == "cuda" and problem.settings["cuda_width"]:
        return problem.settings["cuda_width"]
    return getattr(problem.model, "WIDTH", {}).get(problem.device, WIDTH[problem.device])


def initialization_source(problem: Problem, seed: int) -> np.random.Generator:
    """What a run's weights are drawn from."""
    return randomness.generator(randomness.derive(problem.seeded_as, problem.model_name, seed, "initialization"))


def initial_weights(problem: Problem, seed: int) -> dict[str, Tensor]:
    """One run's weights before training, by name, without a run axis."""
    return problem.model.initialize(problem.model_parameters, problem.about, initialization_source(problem, seed))


def buffers(problem: Problem, seed: int) -> dict[str, Tensor]:
    """What a run's forward pass needs besides its weights and does not train, such as its graph; nothing for most models."""
    make = getattr(problem.model, "buffers", None)
    return make(problem.model_parameters, problem.about, seed) if make else {}


def weight_layout(problem: Problem) -> WeightLayout:
    """How this problem's weights lie in a flat buffer."""
    return WeightLayout({name: tensor.shape for name, tensor in initial_weights(problem, 0).items()})
