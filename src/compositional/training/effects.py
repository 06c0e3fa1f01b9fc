"""Checks of plug-ins: they depend on no parameters but those of the run, and change no tensor that others use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from compositional.records import undeclared
from compositional.training.model_guards import different
from compositional.training.plugin_errors import forward_of, refuse
from compositional.training.problem import Problem, buffers, initial_weights


def _graph(tensors: Iterable[Any]) -> dict[Any, None]:
    """The nodes that a gradient of these tensors passes."""
    seen: dict[Any, None] = {}
    ahead = [tensor.grad_fn for tensor in tensors if isinstance(tensor, Tensor)]
    while ahead:
        if (node := ahead.pop()) is not None and node not in seen:
            seen[node] = None
            ahead += [following for following, _ in node.next_functions]
    return seen


def _leaves(tensors: Iterable[Any]) -> dict[int, Tensor]:
    """The tensors, by identity, that a gradient of these tensors reaches and that nothing computed."""
    tensors = [*tensors]
    found = [one for one in tensors if isinstance(one, Tensor) and one.requires_grad and one.grad_fn is None]
    found += [node.variable for node in _graph(tensors) if hasattr(node, "variable")]
    return {id(one): one for one in found}


def unreached(value: Tensor, tensors: dict[str, Tensor]) -> list[str]:
    """The names of tensors, all with a gradient, on which a value does not depend."""
    nodes, leaves = _graph([value]), _leaves([value])
    return [name for name, one in tensors.items() if (one.grad_fn not in nodes if one.grad_fn else id(one) not in leaves)]


def refuse_foreign(function: Callable, value: Tensor, known: Iterable[Any]) -> None:
    """Refuse a value that depends on parameters that are none of the run's: no step changes them, and no run keeps them."""
    own = _leaves(known)
    if other := [one for name, one in _leaves([value]).items() if isinstance(one, torch.nn.Parameter) and name not in own]:
        shapes = ", ".join(str(tuple(one.shape)) for one in other)
        refuse(function, f"its result depends on parameters of shape {shapes} that do not belong to the run", "foreign")


@contextmanager
def unchanged(written: Callable, tensors: dict[str, Tensor], of: str, cause: str) -> Iterator[None]:
    """Refuse a function of a plug-in that changes these tensors within the context."""
    before = {name: values.detach().clone() for name, values in tensors.items()}
    generators = undeclared.global_generators()
    yield
    # Comparing results would miss a draw that rarely changes them, as of LayerDrop.
    if undeclared.was_drawn(generators):
        refuse(written, "it draws random numbers from a global generator of Python, NumPy or PyTorch", "global")
    if changed := different(before, tensors):
        refuse(written, f"it changes {', '.join(changed)} of its {of}", cause)


def check_initial(problem: Problem) -> None:
    """Refuse functions that give other weights or buffers when they are called again with the same seed.

    (Those of a Network are built by `model_guards.check_network`.)
    """
    if problem.model.Network:
        return
    for function, drawn in ((problem.model.initialize, initial_weights), (problem.model.buffers, buffers)):
        with unchanged(function, {}, "run", "kept"):
            first, again = drawn(problem, 0), drawn(problem, 0)
        if changed := different(first, again):
            refuse(function, f"{', '.join(changed)} differs when it is called twice with one seed", "global")


def _settings() -> dict[str, Any]:
    """Settings of PyTorch for the whole process."""
    read = (
        torch.get_num_threads,
        torch.get_default_dtype,
        torch.get_float32_matmul_precision,
        torch.are_deterministic_algorithms_enabled,
        torch.is_grad_enabled,
    )
    return {function.__name__: function() for function in read}


@contextmanager
def same_settings(problem: Problem) -> Iterator[None]:
    """Refuse a model or a regularizer that changes settings of PyTorch within the context."""
    before = _settings()
    yield
    if changed := [f"torch.{name}() from {before[name]} to {now}" for name, now in _settings().items() if now != before[name]]:
        refuse(forward_of(problem.model), f"its file or its regularizer's changes {', '.join(changed)}", "settings")
