"""The factorizations in a straightforward dense implementation, for benchmarks/families.py: one seed at a time, in standard
PyTorch. Every measurement is a dense tensor: 2,048 matrices of 64 x 64 for the matrix, 2,048 one-hot inputs that pass through the
network for the tensors. Differentiation is automatic, and a step loops over the parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional import plugins
from compositional.kinds.tensor import TensorSplit
from compositional.models import Model
from compositional.plugins import defaults
from compositional.training.problem import Problem, initial_weights

PROBLEMS = {
    "matrix": ("matrix_completion", "matrix_factorization", {}),
    "cp": ("tensor_completion", "cp_factorization", {}),
    "hierarchical": (
        "tensor_completion",
        "hierarchical_tensor_factorization",
        {"target": "hierarchical", "order": 4, "dimension": 8, "ranks": [5, 5]},
    ),
}


def problem_of(name: str) -> Problem:
    """A factorization at the paper's size."""
    task, model, changes = PROBLEMS[name]
    members, about = import_module(f"compositional.tasks.{task}").build(Path(), defaults(f"tasks.{task}") | changes)
    member = members["train"].with_format("numpy")
    settings = {"optimizer": "group_rmsprop", "loss": "squared", "decay": 1.0, "clip": None, "batch_size": 2048}
    return Problem(
        task=task,
        about=about,
        splits={"train": TensorSplit(about["shape"], member["value"][:], "cpu", entries=member["entry"][:])},
        model_name=model,
        model=plugins.load(Model, f"models.{model}"),
        model_parameters=defaults(f"models.{model}"),
        regularizer=None,
        regularizer_parameters={},
        settings=defaults("training.settings") | settings,
        device="cpu",
    )


def predictions(name: str, inputs: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """The straightforward way: every measurement separately, (n,)."""
    if name == "matrix":
        return (inputs * (weights["factor0"] @ weights["factor1"] @ weights["factor2"])).sum((1, 2))
    modes = inputs.unbind(1)
    if name == "cp":
        return ((modes[0] @ weights["mode0"]) * (modes[1] @ weights["mode1"]) * (modes[2] @ weights["mode2"])).sum(1)
    leaves = [mode @ weights[f"level0.node{node}"] for node, mode in enumerate(modes)]
    inner = [(leaves[2 * node] * leaves[2 * node + 1]) @ weights[f"level1.node{node}"] for node in (0, 1)]
    return (inner[0] * inner[1]) @ weights["output"]


def plain(name: str, problem: Problem) -> Callable[[int], float]:
    """A function that takes a number of steps and returns the last loss."""
    split = problem.splits["train"]
    shape = split.shape
    if name == "matrix":
        inputs = torch.zeros(len(split), split.mask.numel())
        inputs[torch.arange(len(split)), split.entries] = 1
        inputs = inputs.view(-1, *shape)
    else:
        places = torch.stack(torch.unravel_index(split.entries, tuple(shape)), 1)
        inputs = torch.nn.functional.one_hot(places, shape[0]).float()
    weights = {key: value.clone().requires_grad_() for key, value in initial_weights(problem, 0).items()}
    squares, taken = 0.0, 0

    def advance(steps: int) -> float:
        nonlocal squares, taken
        for _ in range(steps):
            loss = (predictions(name, inputs, weights) - split.values).square().mean()
            gradients = torch.autograd.grad(loss, list(weights.values()))
            with torch.no_grad():
                taken += 1
                squares = 0.99 * squares + 0.01 * sum(gradient.square().sum() for gradient in gradients)
                pace = 0.01 / ((squares / (1 - 0.99**taken)).sqrt() + 1e-6)
                for weight, gradient in zip(weights.values(), gradients, strict=True):
                    weight -= pace * gradient
        return loss.item()

    return advance
