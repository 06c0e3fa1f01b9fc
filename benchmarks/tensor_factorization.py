"""Steps per second of the factorizations compared with a straightforward dense implementation, measured in one call.

    python benchmarks/tensor_factorization.py                # about a minute on one core
    python benchmarks/tensor_factorization.py --steps 20 --runs 1 4

(a) plain: one seed at a time in standard PyTorch, with every measurement as a dense tensor: 2,048 measurement matrices of 64 x 64
for the matrix, 2,048 one-hot inputs that pass through the network for the tensors; with automatic differentiation and a step that
loops over the parameters. (b) this project with one run, (c) packs of growing size. All use one thread, so ratios are per core.

Both ways start from the same weights, and the script refuses to compare them if their losses differ after the warm-up.
Writes results/benchmarks/tensor_factorization.csv and .png.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pandas as pd
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional import plugins
from compositional.kinds.tensor import TensorSplit
from compositional.models import Model
from compositional.plugins import defaults
from compositional.stages.shared import devices
from compositional.training.pack import Pack
from compositional.training.problem import Problem, initial_weights
from compositional.training.state import fresh_state

WARM_UP = 10
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


def packed(problem: Problem, runs: int) -> Callable[[int], float]:
    """The same for a pack of `runs` runs of this project; the loss is the first run's, averaged over the steps."""
    pack = Pack(problem, [fresh_state(problem, seed, 0.0) for seed in range(runs)], None)

    def advance(steps: int) -> float:
        pack.advance(pack.states[0].step + steps)
        return next(value for *_, metric, value in reversed(pack.states[0].history) if metric == "loss")

    return advance


def timed(advance: Callable[[int], float], steps: int) -> tuple[float, float]:
    """Loss after the warm-up (of its last step) and steps per second."""
    advance(WARM_UP - 1)
    loss = advance(1)
    began = time.perf_counter()
    advance(steps)
    return loss, steps / (time.perf_counter() - began)


def main() -> None:
    """Measure all ways for all problems, print the results, and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="timed steps of the project's ways; the plain way takes a third")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 2, 4, 8], help="sizes of packs")
    options = parser.parse_args()
    devices.resolve("cpu")
    rows = []
    for name in PROBLEMS:
        problem = problem_of(name)
        expected, base = timed(plain(name, problem), max(options.steps // 3, 5))
        rows.append((name, "plain", 1, base, 1.0))
        for runs in options.runs:
            loss, speed = timed(packed(problem, runs), options.steps)
            if abs(loss - expected) > 1e-4 * expected:
                raise SystemExit(f"{name}: the two ways differ, loss {loss} against {expected}: nothing to compare")
            rows.append((name, "packed", runs, speed * runs, speed * runs / base))
    table = pd.DataFrame(rows, columns=["problem", "way", "runs", "steps_per_second", "ratio"])
    print(table.round(2).to_string(index=False))
    folder = ROOT / "results" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "tensor_factorization.csv", index=False)

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    for name, own in table[table.way == "packed"].groupby("problem", sort=False):
        axes.plot(own.runs, own.ratio, "o-", label=name)
    axes.axhline(1, color="0.5", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="runs in a pack", ylabel="run-steps per second,\nratio to the dense way")
    axes.set_xticks(options.runs, map(str, options.runs))
    axes.minorticks_off()
    axes.legend()
    figure.savefig(folder / "tensor_factorization.png", dpi=150)


if __name__ == "__main__":
    main()
