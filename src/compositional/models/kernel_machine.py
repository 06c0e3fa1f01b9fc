"""Kernel machines on compositionally structured kernels: support vector machines and kernel ridge regression (scikit-learn).

A run fits one machine for each kernel of a family: kernels given by their similarities, a regular grid of kernels, or the
kernels of the layers of a random network of infinite width. The weights are the kernels and the machines' dual coefficients, so
evaluation treats it like any model. The outputs have one column per machine. Nothing is random. Source: Lippl and Stachenfeld
(ICLR 2025), sections 3 and 4.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR
from torch import Tensor

from compositional.kinds.combination import Batch, CombinationSplit
from compositional.layers import Weights
from compositional.measures import additivity, kernels

# Tolerance of the classifiers' solver, relative to outputs of 1. Near boundaries of the phase diagram, outputs are about 1e-5.
_TOLERANCE = 1e-8
_ZERO = 1e-6  # an output that is smaller is zero by symmetry
KIND = "combination"
REPRESENTATIONS = ()
PARAMETERS = {
    "machine": {
        "enum": ["svr", "svc", "ridge"],
        "default": "svr",
        "description": "svr: support vector regression (epsilon 0.1); svc: support vector classification; ridge: kernel ridge "
        "regression without bias (penalty 1e-10)",
    },
    "penalty": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1e10,
        "description": "C of a support vector machine: the price of violating its margin",
    },
    "iterations": {
        "type": "integer",
        "minimum": 1,
        "default": 100000,
        "description": "limit on the iterations of a support vector machine, which may not converge if the kernel is singular",
    },
    "similarities": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}},
        "default": [],
        "description": "kernels, each given by the similarities of inputs that agree in 1, ..., C - 1 of C components (those of "
        "inputs that agree in none and all are 0 and 1)",
    },
    "grid": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "points per axis of a grid of additional kernels: for two components, kappa_1 in [0, 1/2]; for three, "
        "kappa_2 in [0, 2/3] and kappa_1 / kappa_2 in [0, 1/2]. Points that give no valid kernel are left out",
    },
    "activation": {
        "enum": ["none", "relu", "leaky_relu", "step", "rectified_quadratic", "gaussian"],
        "default": "none",
        "description": "adds the kernels of the layers of an infinitely wide random network with this activation",
    },
    "layers": {"type": "integer", "minimum": 0, "default": 20, "description": "hidden layers of that network"},
    "shares": {
        "type": "array",
        "items": {"type": "number", "minimum": 0, "maximum": 1},
        "default": [],
        "description": "share of each component in the squared norm of that network's input; empty: equal shares",
    },
    "values": {
        "type": "boolean",
        "default": False,
        "description": "whether the metrics of each machine include every output and the value of every conjunction",
    },
}


def _grid(components: int, points: int) -> np.ndarray:
    """Similarities (K, C + 1) of a regular grid."""
    if components == 2:
        return np.array([[0, first, 1] for first in np.linspace(0, 0.5, points)])
    if components != 3:
        raise ValueError(f"kernel_machine: grid is for 2 or 3 components, this task has {components}; use similarities")
    pairs = [(share * second, second) for second in np.linspace(0, 2 / 3, points) for share in np.linspace(0, 0.5, points)]
    # At kappa_2 = 0 all shares give the same kernel.
    candidates = np.array([[0, first, second, 1] for first, second in dict.fromkeys(pairs)])
    return candidates[kernels.is_positive_semidefinite(kernels.equivariant(candidates), 3)]


def family(parameters: dict, components: int) -> dict[str, np.ndarray]:
    """The kernels to fit, (2, ..., 2) each, by name: their similarities, as in "0.1 0.25", or "layer 3".

    Raises:
        ValueError: similarities do not fit the task, or no representation can have them, or there is no kernel.
    """
    found = {}
    for given in parameters["similarities"]:
        if len(given) != components - 1:
            raise ValueError(f"similarities {given} must be {components - 1} numbers for a task of {components} components")
        similarity = kernels.equivariant([0, *given, 1])
        if not kernels.is_positive_semidefinite(similarity, components):
            raise ValueError(f"similarities {given} give no valid kernel: a salience is negative")
        found[" ".join(f"{value:.8g}" for value in given)] = similarity
    if parameters["grid"]:
        for similarities in _grid(components, parameters["grid"]):
            found[" ".join(f"{value:.8g}" for value in similarities[1:-1])] = kernels.equivariant(similarities)
    if parameters["activation"] != "none":
        shares = parameters["shares"] or [1 / components] * components
        if len(shares) != components:
            raise ValueError(f"shares {shares} must be {components} numbers for a task of {components} components")
        if not math.isclose(sum(shares), 1):
            raise ValueError(f"shares {shares} must sum to 1; their sum is {sum(shares):g}")
        layers = kernels.network_kernels(shares, parameters["activation"], parameters["layers"])
        found |= {f"layer {layer}": similarity for layer, similarity in enumerate(layers)}
    if not found:
        raise ValueError("a kernel machine needs kernels: similarities, grid or activation")
    return found


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights before fitting: kernels (K, 2^C), zero dual coefficients (sets, K, Z) of all Z combinations, biases (sets, K).

    Kernels and coefficients have a second part, "..._rest" (see `_parts`).
    """
    return _unfitted(_flat(family(parameters, len(task["sizes"]))), task)


def _parts(name: str, values: np.ndarray) -> Weights:
    """Numbers in double precision as two float32 tensors whose sum they are.

    Weights are float32. The coefficients of a singular kernel can be so large that their rounding errors exceed the outputs.
    """
    exact = torch.from_numpy(values)
    rounded = exact.to(torch.float32)
    return {name: rounded, f"{name}_rest": (exact - rounded.double()).to(torch.float32)}


def _exact(weights: Weights, name: str) -> Tensor:
    """What `_parts` was given."""
    return weights[name].double() + weights[f"{name}_rest"].double()


def _flat(kernels_by_name: dict[str, np.ndarray]) -> np.ndarray:
    """Kernels (K, 2^C)."""
    return np.stack([similarity.reshape(-1) for similarity in kernels_by_name.values()])


def _unfitted(similarities: np.ndarray, task: dict) -> Weights:
    machines = (task["sets"], len(similarities))
    dual = _parts("dual", np.zeros((*machines, int(np.prod(task["sizes"])))))
    return _parts("similarity", similarities) | dual | {"bias": torch.zeros(*machines)}


def _fit_one(parameters: dict, gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, float]:
    """Dual coefficients (n,) and bias of one machine on its training examples."""
    if parameters["machine"] == "ridge":
        return KernelRidge(alpha=1e-10, kernel="precomputed").fit(gram, targets).dual_coef_, 0.0
    kind = SVC if parameters["machine"] == "svc" else SVR
    options = {"tol": _TOLERANCE} if parameters["machine"] == "svc" else {}
    machine = kind(kernel="precomputed", C=parameters["penalty"], max_iter=parameters["iterations"], **options)
    machine.random_state = 0  # not used, but otherwise drawn from NumPy's global generator; SVR does not take it as an option
    machine.fit(gram, targets)
    dual = np.zeros(len(targets))
    dual[machine.support_] = machine.dual_coef_[0]
    return dual, float(machine.intercept_[0])


def fit(parameters: dict, task: dict, train: CombinationSplit) -> Weights:
    """Fit every machine of the family to each of the task's training sets; shapes as in `initialize`.

    Raises:
        ValueError: `machine` is svc, a classifier of signs, and the targets are numbers.
    """
    if parameters["machine"] == "svc" and not train.signs:
        raise ValueError("machine: 'svc' classifies signs, but this task's targets are numbers; use 'svr' or 'ridge'")
    similarities = _flat(family(parameters, len(task["sizes"])))
    weights = _unfitted(similarities, task)
    targets = train.labels.cpu().numpy().astype(np.float64)
    places = np.asarray(np.ravel_multi_index(tuple(train.combinations.T), task["sizes"]))
    # The inputs are valid by construction, and checking them takes as long as fitting.
    with config_context(assume_finite=True, skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reaching the limit on iterations, a documented option
        for number in range(task["sets"]):
            own = train.sets == number
            agree = kernels.overlap(train.combinations[own], train.combinations[own])
            for index, similarity in enumerate(similarities):
                dual, bias = _fit_one(parameters, similarity[agree], targets[own])
                for name, values in _parts("dual", dual).items():
                    weights[name][number, index, places[own]] = values
                weights["bias"][number, index] = bias
    return weights


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Decision values (R, B, K) of the K machines that were fitted to each example's training set."""
    device = batch.items.device
    every = torch.cartesian_prod(*(torch.arange(size, device=device) for size in batch.sizes)).view(-1, len(batch.sizes))
    powers = 2 ** torch.arange(len(batch.sizes) - 1, -1, -1, device=device)
    agree = ((batch.items.unsqueeze(2) == every) * powers).sum(-1)  # (R, B, Z)
    outputs = []
    # In double precision, because large coefficients of opposite signs nearly cancel.
    for similarity, dual, bias, own, sets in zip(
        _exact(weights, "similarity"), _exact(weights, "dual"), weights["bias"].double(), agree, batch.sets, strict=True
    ):
        gram = similarity[:, own]  # (K, B, Z)
        outputs.append((gram * dual[sets].transpose(0, 1)).sum(-1).T + bias[sets])
    return torch.stack(outputs).to(torch.float32)


def measure(parameters: dict, task: dict, splits: dict[str, CombinationSplit], outputs: dict[str, Tensor]) -> dict:
    """Metrics of each machine of one run: {(split, metric): value}. A metric ends with "at <kernel>" and, if the task has several
    training sets, "of set <n>".

    If targets are signs, an output that is zero within the solver's tolerance counts as half right. Saliences describe the
    kernels and have the split "kernel". The additivity index and the values of conjunctions are computed over all combinations
    and have the split "all"; see `compositional.measures.additivity`.

    Args:
        outputs: by split, (n, K).
    """
    found: dict[tuple[str, str], float] = {}
    components = len(task["sizes"])
    for column, (name, similarity) in enumerate(family(parameters, components).items()):
        for pattern, value in additivity.by_pattern(kernels.salience(similarity, components), task["components"]).items():
            found["kernel", f"salience of {pattern} at {name}"] = value
        for number in range(task["sets"]):
            suffix = f"{name} of set {number}" if task["sets"] > 1 else name
            collected = []
            for member, split in splits.items():
                own = np.flatnonzero(split.sets == number)
                rows = torch.from_numpy(own).unsqueeze(0)
                batch = split.batch(rows.to(split.device))
                column_of = outputs[member][rows[0]][None, :, column : column + 1]
                right = batch.column_correct(column_of).double()
                if batch.signs:
                    right[column_of.abs() < _ZERO] = 0.5
                found[member, f"accuracy at {suffix}"] = right.mean().item()
                found[member, f"largest output at {suffix}"] = column_of.abs().max().item()
                found[member, f"squared_error at {suffix}"] = batch.column_losses(column_of, "squared").double().mean().item()
                collected.append((split.combinations[own], column_of.flatten().double().cpu().numpy(), member == "train"))
            if parameters["values"]:
                for member, (items, values, _) in zip(splits, collected, strict=True):
                    for item, value in zip(items, values, strict=True):
                        found[member, f"output of {' '.join(map(str, item))} at {suffix}"] = float(value)
                items, values = (np.concatenate([part[index] for part in collected]) for index in (0, 1))
                trained = np.concatenate([np.full(len(part[1]), part[2]) for part in collected])
                for metric, value in additivity.describe(items, values[:, None], trained, task["components"]).items():
                    found["all", f"{metric} at {suffix}"] = value
    return found
