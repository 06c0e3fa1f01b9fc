"""Checks of models: outputs must not depend on later target symbols, and a Network draws only the random numbers of its run.

Like `training.guards`, this is in no fingerprint.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from compositional.kinds import Batch as AnyBatch
from compositional.kinds import sequence_regression
from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import END, PAD
from compositional.layers.tap import silent_tap
from compositional.models import Model
from compositional.training.plugin_errors import ROUNDING, forward_of, refuse
from compositional.training.problem import Problem

PLUG_INS = ("compositional.models.", "compositional.regularizers.")
EXAMPLES = 64  # training examples on which evaluation is tried


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value with its name, or those in a Python container with theirs: "blocks[0]"."""
    if isinstance(value, list | tuple | set | frozenset):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for place, own in value.items():
            yield from _inside(f"{name}[{place!r}]", own)
    else:
        yield name, value


def _outside(network: nn.Module) -> Iterator[tuple[str, Any]]:
    """What a network holds that is not in its state dictionary, by name, without what every module of torch has."""
    registered = {id(own) for own in (*network.state_dict(keep_vars=True).values(), *network.parameters(), *network.modules())}
    for path, part in network.named_modules():
        own = {name: value for name, value in vars(part).items() if name not in vars(nn.Module())} | part._buffers
        for name, value in own.items():
            yield from (found for found in _inside(f"{path}.{name}".lstrip("."), value) if id(found[1]) not in registered)


def _values(network: nn.Module, kept: bool) -> dict[str, Tensor]:
    """Tensors, arrays and numbers that a network holds, by name: those of its state dictionary (kept), or all others."""
    if kept:
        return {name: values.detach().to_dense() for name, values in network.state_dict(keep_vars=True).items()}
    found: dict[str, Tensor] = {}
    for name, value in _outside(network):
        if isinstance(value, Tensor):
            found[name] = value.detach().to_dense()
        elif isinstance(value, int | float):
            found[name] = torch.tensor(float(value), dtype=torch.float64)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":  # others, such as words, are not drawn
            found[name] = torch.as_tensor(value)
    return found


def different(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    """The names of tensors that differ; NaN equals NaN."""
    return [name for name in one if name not in other or not torch.equal(one[name].nan_to_num(), other[name].nan_to_num())]


def kept_in(name: str, value: Any, within: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """What a pass could change in a value and another could read, by name: numbers, lengths, places of iterators and states of
    generators, also inside containers and objects of plug-ins. New keys of a dictionary, as of a cache, are none.

    within: the values that hold this one.
    """
    if any(value is outer for outer in within):
        return
    inner: dict[str, Any] = {}
    match value:
        case int() | float() | itertools.count():
            yield name, value
        case np.generic() | np.ndarray() | Tensor() if math.prod(value.shape) == 1:
            yield name, value.item()
        case random.Random():
            yield name, value.getstate()
        case np.random.Generator():
            yield name, value.bit_generator.state
        case torch.Generator():
            yield name, value.get_state().tolist()
        case dict():
            inner = {f"{name}[{key!r}]": own for key, own in value.items()}
        case list() | tuple() | set() | deque():
            yield f"the length of {name}", len(value)
            inner = {} if isinstance(value, set) else {f"{name}[{place}]": own for place, own in enumerate(value)}
        case _ if type(value).__module__.startswith(PLUG_INS) and not isinstance(value, type | nn.Module | FunctionType):
            inner = {f"{name}.{own}": held for own, held in getattr(value, "__dict__", {}).items()}
    for own, held in inner.items():
        yield from kept_in(own, held, (*within, value))


def state_of(problem: Problem) -> dict[str, Any]:
    """What a Network and its classes hold besides tensors and modules, by name; nothing for other models."""
    if not problem.model.Network:
        return {}
    network = cast(Any, problem.model.forward).__self__.network
    held = dict(_outside(network)) | {name: value for name, value in vars(network).items() if name not in vars(nn.Module())}
    for part in network.modules():
        for written in type(part).__mro__:
            if written.__module__.startswith(PLUG_INS):
                held |= {f"{written.__name__}.{name}": value for name, value in vars(written).items() if name[:2] != "__"}
    return {own: found for name, value in held.items() for own, found in kept_in(name, value)}


def _is_compiled(part: nn.Module) -> bool:
    by_name = type(part).__name__ == "OptimizedModule"  # importing its type takes as long as all of torch
    return isinstance(part, torch.jit.ScriptModule) or by_name or part._compiled_call_impl is not None


def check_network(problem: Problem) -> None:
    """Refuse a Network that draws numbers when it is built that are not its run's own, or that are not kept with the run.

    Raises:
        ValueError: the message names the tensors.
    """
    functions = cast(Any, problem.model.forward).__self__  # training.networks._Functions
    first, again, other = (functions.built(np.random.default_rng(seed)) for seed in (0, 0, 1))
    if compiled := [name or "it" for name, part in first.named_modules() if _is_compiled(part)]:
        functions.refuse(f"{', '.join(compiled)} is made by torch.compile or torch.jit, whose last bits differ. Leave that out")
    if lost := [name for name, value in _outside(first) if isinstance(value, nn.Module | nn.Parameter)]:
        functions.refuse(
            f"{', '.join(lost)} is in a Python container, so it is neither trained nor kept. Use nn.ModuleList, nn.ModuleDict, "
            "nn.ParameterList or nn.ParameterDict"
        )
    if hooked := [name for name, own in first.named_parameters() if own._backward_hooks or own._post_accumulate_grad_hooks]:
        functions.refuse(
            f"{', '.join(hooked)} has a hook on its gradient, which would not be called: every pass computes with copies of "
            "weights. Change the gradient in forward, or use a module's register_full_backward_hook"
        )
    if sparse := [name for name, part in first.named_modules() if getattr(part, "sparse", False) is True]:
        functions.refuse(f"{', '.join(sparse)} has sparse=True; gradients must be dense here, so leave it out")
    for kept in (True, False):
        if changed := different(_values(first, kept), _values(again, kept)):
            functions.refuse(
                f"{', '.join(changed)} differs when it is built twice with one seed. Draw random numbers from torch only, not "
                "from NumPy or random, and fill what torch.empty makes"
            )
    if changed := different(_values(first, False), _values(other, False)):
        state = first.state_dict()
        if old := [name for name in changed if f"{name}_g" in state or f"{name}_orig" in state]:
            functions.refuse(
                f"{', '.join(old)} is made by a hook of torch.nn.utils.weight_norm or spectral_norm. Use "
                "torch.nn.utils.parametrizations.weight_norm, or a parametrization that divides by torch.linalg.matrix_norm(w, 2)"
            )
        functions.refuse(
            f"{', '.join(changed)} depends on the seed but is not in its state dictionary, so no run would keep it. Make it a "
            "parameter, or use register_buffer(..., persistent=True)"
        )


def _calibrated(problem: Problem, model: Model, weights: dict[str, Tensor], batches: Iterable[AnyBatch]) -> dict[str, Tensor]:
    """The weights, plus what a model needs in evaluation, computed from these batches."""
    return weights | model.calibrate(problem.model_parameters, weights, batches) if model.calibrate else weights


def _refuse_apart(problem: Problem, ours: Tensor, theirs: Tensor, complaint: str, cause: str) -> None:
    """Refuse the model if two computations of the same values differ by more than rounding."""
    difference = (ours - theirs).abs().max() / ours.abs().max()
    # On a GPU, other algorithms may compute other shapes. NaN, of a run that diverges, is not refused.
    if difference >= (ROUNDING if ours.device.type == "cpu" else 1e-2):
        refuse(forward_of(problem.model), f"{complaint}, by {difference:.1e}", cause)


def evaluated(problem: Problem, model: Model, weights: dict[str, Tensor], batch: AnyBatch) -> Tensor:
    """A model's outputs for a batch, as evaluation computes them. weights: (R, ...) by name."""
    with torch.no_grad():
        return model.forward(problem.model_parameters, _calibrated(problem, model, weights, [batch]), batch, silent_tap)


def check_order(problem: Problem, weights: dict[str, Tensor]) -> None:
    """Refuse a model of sequences whose output at a step depends on later target symbols: evaluation, which knows none, and
    teacher forcing would then be different things.

    Args:
        weights: (R, ...) by name.

    Raises:
        PluginError: it depends on them.
    """
    _, batch = problem.splits["train"].evaluation_batches(len(next(iter(weights.values()))), EXAMPLES, EXAMPLES)[0]
    symbols = len(problem.about.get("target_words", ()))
    if not isinstance(batch, Batch) or symbols < END + 3:  # with one word there is no other
        return
    step = batch.layout.positions[:, 1]
    cut = int(step.max()) // 2

    def other(values: Tensor, later: Tensor) -> Tensor:
        """Another word instead of every later one; the special symbols stay."""
        return torch.where(later & (values > END), END + 1 + (values - END) % (symbols - END - 1), values)

    changed = replace(batch, targets=other(batch.targets, step >= cut), previous=other(batch.previous, step > cut))
    ours, theirs = (evaluated(problem, problem.model, weights, own) for own in (batch, changed))
    valid = (step <= cut) & batch.target_mask
    difference = (ours - theirs).abs().amax(-1)[valid].max() / ours.abs().amax(-1)[valid].max()
    if difference >= ROUNDING:  # not if it is NaN: a run that diverges is no fault of the model
        refuse(forward_of(problem.model), f"its output at a step changes with later target symbols, by {difference:.1e}", "later")


def check_targets(problem: Problem, weights: dict[str, Tensor]) -> None:
    """Refuse a model whose outputs depend on the targets, which batches have for losses and regularizers. (For sequences,
    `check_order` does it.)

    Args:
        weights: (R, ...) by name.

    Raises:
        PluginError: it depends on them.
    """
    _, batch = problem.splits["train"].evaluation_batches(len(next(iter(weights.values()))), EXAMPLES, EXAMPLES)[0]
    known = {name: value.roll(1, 1) for name, value in vars(batch).items() if name in ("labels", "targets")}
    if isinstance(batch, Batch) or not known:
        return
    others = replace(cast(Any, batch), **known)
    ours, theirs = (evaluated(problem, problem.model, weights, own) for own in (batch, others))
    _refuse_apart(problem, ours, theirs, "its output changes with the targets of the batch", "targets")


def check_examples(problem: Problem, weights: dict[str, Tensor]) -> None:
    """Refuse a model whose output for an example depends on the others of its batch, or, in evaluation, on random numbers: what
    it is measured at would depend on the size of a batch, or on a seed.

    Args:
        weights: (R, ...) by name.

    Raises:
        PluginError: it depends on them.
    """
    train, runs = problem.splits["train"], len(next(iter(weights.values())))
    parts = [train.evaluation_batches(runs, size, EXAMPLES) for size in (EXAMPLES, EXAMPLES // 4)]
    weights = _calibrated(problem, problem.model, weights, [batch for _, batch in parts[0]])

    def losses(batches: Sequence[tuple[Tensor, AnyBatch]]) -> dict[int, Tensor]:
        """The loss of every example (R,), by its row."""
        found: dict[int, Tensor] = {}
        with torch.no_grad():
            for rows, batch in batches:
                outputs = problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
                own = batch.example_losses(batch.losses(outputs, problem.settings["loss"]))
                found |= dict(zip(rows.tolist(), own[:, : len(rows)].unbind(1), strict=True))
        return found

    one, other = map(losses, parts)
    if not (shared := sorted(one.keys() & other.keys())):
        return
    ours, theirs = (torch.stack([found[row] for row in shared], 1) for found in (one, other))
    complaint = "in evaluation, an example's loss changes with the others of its batch"
    _refuse_apart(problem, ours, theirs, complaint, "examples")
    if problem.model.Network:  # in evaluation, its draws are seeded with 0: they would be the same ones for every run
        functions = cast(Any, problem.model.forward).__self__  # training.networks._Functions
        with torch.no_grad():
            ours, theirs = (functions._computed(weights, parts[0][0][1], seed) for seed in (0, 1))
        _refuse_apart(problem, ours, theirs, "in evaluation, its output changes with random numbers", "random")


def check_padding(problem: Problem, weights: dict[str, Tensor]) -> None:
    """Refuse a Network whose output for a sentence depends on how far it is padded.

    A split pads to its longest input, so the same sentence would have another output in another member, or after a longer one was
    added. Packed models are tested for this once, by their contract.

    Args:
        weights: (R, ...) by name.

    Raises:
        PluginError: it depends on it.
    """
    batch = cast(Any, problem.splits["train"].evaluation_batches(1, EXAMPLES, EXAMPLES)[0][1])
    sentences = isinstance(batch, Batch)
    if not problem.model.Network or not (sentences or isinstance(batch, sequence_regression.Batch)):
        return
    if (short := batch.inputs.shape[-1] // 2) < 1:
        return
    weights = _calibrated(problem, problem.model, weights, [batch])
    lengths = batch.input_lengths.clamp(max=short)

    def outputs(width: int) -> Tensor:
        """Of the beginnings of the inputs, padded to this width."""
        mask = torch.arange(width, device=lengths.device) < lengths.unsqueeze(-1)
        inputs = batch.inputs[..., :width].masked_fill(~mask, PAD)
        masks = {"input_mask": mask} if sentences else {}
        padded = replace(batch, inputs=inputs, input_lengths=lengths, **masks)
        with torch.no_grad():
            found = problem.model.forward(problem.model_parameters, weights, padded, silent_tap)
        return found[batch.target_mask] if sentences else found

    ours, theirs = outputs(short), outputs(batch.inputs.shape[-1])
    _refuse_apart(problem, ours, theirs, "its output changes if an input is padded further", "padding")
