"""Checks for faults of plug-ins that would otherwise pass unnoticed. They are made once per job, before its first step.

What models, regularizers and kinds return must have the right shape and type, be on the right device and be finite. They must not
change weights, options or batches. And no run may depend on its neighbors: the first run is computed alone and next to a twin
with other weights, another batch, other noise and another lambda, and both computations must give the same bytes. So must the
twin alone, because what mixes through the first run does not show in the first run. This costs four steps of a run. Gradients of
one run with respect to another run's weights would not be enough: they miss what mixes through data, detached values and buffers.

No number depends on this module, so it is imported by name (`import_module`) where it is needed. That keeps it out of the
fingerprints that identify runs: editing it retrains nothing.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from compositional.kinds import Batch
from compositional.models import Model
from compositional.regularizers import Regularizer, Representation, Step
from compositional.training.effects import refuse_foreign, unchanged
from compositional.training.model_guards import (
    EXAMPLES,
    check_examples,
    check_network,
    check_order,
    check_padding,
    evaluated,
    state_of,
)
from compositional.training.pack import Pack
from compositional.training.plugin_errors import ROUNDING, forward_of, refuse
from compositional.training.problem import Problem, weight_layout, width_of
from compositional.training.state import State

# Standard deviation of the noise that is added to weights. With initial weights, a normalization can hide that runs mix.
_MOVE = 0.03


class _Value(NamedTuple):
    """Values (R, ...) that a function of a plug-in computed, one for each run."""

    name: str
    function: Callable
    value: Tensor


def _check(function: Callable, what: str, value: Any, shape: tuple[int | None, ...], device: torch.device, finite: bool) -> None:
    """Raise an error unless `value`, returned by `function`, is a tensor of this shape (None: any size) on this device.

    finite: whether the numbers of its last run must be finite.
    """
    wanted = f"({', '.join('any' if size is None else str(size) for size in shape)}{',' * (len(shape) == 1)})"
    if not isinstance(value, Tensor):
        refuse(function, f"{what} must be a tensor of shape {wanted}, it is of type {type(value).__name__}", "shape")
    if value.ndim != len(shape) or any(size not in (None, own) for size, own in zip(shape, value.shape, strict=True)):
        refuse(function, f"{what} must be of shape {wanted}, it is of shape {tuple(value.shape)}", "shape")
    if value.dtype != torch.float32:
        refuse(function, f"{what} must be of dtype torch.float32, it is of {value.dtype}", "dtype")
    if value.device != device:
        refuse(function, f"{what} must be on {device}, it is on {value.device}", "device")
    if finite and not value[-1].isfinite().all():
        refuse(function, f"{what} has numbers that are not finite, before the first step", "finite")


def _tensors(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch by name."""
    return {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)}


def _kept(problem: Problem) -> dict[Callable, dict[str, Any]]:
    """By function of a plug-in: its options, and numbers that it could change from one pass to the next."""
    found = {forward_of(problem.model): problem.model_parameters | state_of(problem)}
    if problem.regularizer is not None:
        found[problem.regularizer.penalty] = problem.regularizer_parameters
    numbers = {
        written: {name: value for name, value in inspect.unwrap(written).__globals__.items() if isinstance(value, int | float)}
        for written in found
    }
    return {written: copy.deepcopy(options) | numbers[written] for written, options in found.items()}


def _watch_model(problem: Problem, seen: list[tuple[Batch, Tensor]], finite: bool) -> Model:
    """The model, changed so that its outputs are checked and appended to `seen` with their batch."""
    model, written = problem.model, forward_of(problem.model)

    def forward(parameters: dict, weights: dict[str, Tensor], batch: Batch, tap: Callable) -> Tensor:
        like = next(iter(weights.values()))
        with unchanged(written, _tensors(batch), "batch", "in place"), unchanged(written, weights, "run", "weights"):
            outputs = model.forward(parameters, weights, batch, tap)
        _check(written, "its result", outputs, (len(like), *batch.output_shape(problem.about)), like.device, finite)
        if torch.is_grad_enabled() and like.requires_grad and not outputs.requires_grad:
            refuse(written, "its result has no gradient", "gradient")
        refuse_foreign(written, outputs, [*weights.values(), *_tensors(batch).values()])
        seen.append((batch, outputs))
        return outputs

    return replace(model, forward=forward)


def _watch_regularizer(problem: Problem, seen: list[_Value], finite: bool) -> Regularizer | None:
    """The regularizer, changed so that its results are checked; perturbed representations are appended to `seen`."""
    regularizer, written = problem.regularizer, forward_of(problem.model)
    if regularizer is None:
        return None

    def penalty(step: Step) -> Tensor:
        runs, device = len(step.active), step.active.device
        for shown in step.representations:
            leading = (runs,) if shown.mask is None else tuple(shown.mask.shape)
            shape = (*leading, *[None] * (shown.values.ndim - len(leading)))
            _check(written, f"the representation {shown.name!r}", shown.values, shape, device, finite)
        if missing := sorted({*problem.model.REPRESENTATIONS} - {shown.name for shown in step.representations}):
            refuse(written, f"it does not show {', '.join(missing)} of its REPRESENTATIONS", "shown")
        with unchanged(regularizer.penalty, step.weights, "run", "weights"):
            value = regularizer.penalty(step)
        _check(regularizer.penalty, "its result, one number per run,", value, (runs,), device, finite)
        if regularizer.perturb is None and not value.requires_grad:
            refuse(regularizer.penalty, "its result has no gradient", "gradient")
        reached = [*step.weights.values(), *(shown.values for shown in step.representations), step.outputs]
        refuse_foreign(regularizer.penalty, value, [*reached, *_tensors(step.batch).values()])
        return value

    if (own := regularizer.perturb) is None:
        return replace(regularizer, penalty=penalty)

    def perturb(step: Step, shown: Representation) -> Tensor:
        value, shape = own(step, shown), tuple(shown.values.shape)
        _check(own, f"what it makes of {shown.name!r}", value, shape, shown.values.device, finite)
        seen.append(_Value(f"representation {shown.name!r}", written, shown.values))
        seen.append(_Value(f"perturbed representation {shown.name!r}", own, value))
        return value

    return replace(regularizer, penalty=penalty, perturb=perturb)


def _check_draw(problem: Problem, key: int) -> None:
    """Refuse a split whose `draw` does not return row numbers, or whose rows of a step depend on the other steps requested."""
    train, size = problem.splits["train"], problem.settings["batch_size"]
    written, rows = type(train).draw, train.draw(key, range(3), size)
    if rows.dtype.kind != "i" or rows.shape not in ((3, size), (3, 1)) or rows.min() < 0:
        refuse(written, f"it must give row numbers (3, {size}), it gives {rows.dtype} {rows.shape}", "shape")
    if not np.array_equal(rows[2:], train.draw(key, range(2, 3), size)):
        refuse(written, "it draws other rows for step 2 if steps 0 and 1 are requested, too", "drawn")


def _in_training(problem: Problem, states: list[State], prepared: Any, twins: int, finite: bool) -> list[_Value]:
    """The values that these runs compute in a step, in order.

    The last `twins` states use the next step's batch and noise of other streams, because a twin may have the same seed.
    """
    outputs: list[tuple[Batch, Tensor]] = []
    seen: list[_Value] = []
    watched = copy.copy(problem)
    watched.model, watched.regularizer = _watch_model(problem, outputs, finite), _watch_regularizer(problem, seen, finite)
    pack = Pack(watched, states, prepared)
    step, size = states[0].step, problem.settings["batch_size"]
    later = [int(index >= len(states) - twins) for index in range(len(states))]
    drawn = [
        pack.train.draw(pack.key(state, "batches"), range(step + more, step + more + 1), size)[0]
        for state, more in zip(states, later, strict=True)
    ]
    pack.rows.copy_(torch.from_numpy(np.stack(drawn)))
    for noise in (pack.noise, pack.dropout):
        noise.keys = [key + more for key, more in zip(noise.keys, later, strict=True)]
        noise.draw(step)
    outputs.clear()
    seen.clear()  # values of the pass in which a pack counts the random numbers of a step
    task_loss, penalty, gradient, *_ = pack.gradient()
    (batch, result), written = outputs[0], forward_of(problem.model)
    losses = batch.losses(result, problem.settings["loss"])
    _check(type(batch).losses, "its result", losses, (len(states), None), result.device, finite)
    seen += [_Value("output", written, result), _Value("task loss", type(batch).losses, task_loss)]
    if problem.regularizer is not None:
        seen.append(_Value("penalty", problem.regularizer.penalty, penalty))
    _check(written, "the gradient through it", gradient, tuple(gradient.shape), gradient.device, finite)
    return [*seen, _Value("gradient", written, gradient), *_in_evaluation(problem, pack.tensors, finite)]


def _in_evaluation(problem: Problem, weights: dict[str, Tensor], finite: bool) -> list[_Value]:
    """The outputs for a few training examples, as evaluation computes them."""
    model = _watch_model(problem, [], finite)
    runs = len(next(iter(weights.values())))
    _, batch = problem.splits["train"].evaluation_batches(runs, EXAMPLES, EXAMPLES)[0]
    return [_Value("output in evaluation", forward_of(problem.model), evaluated(problem, model, weights, batch))]


def _first_difference(left: list[_Value], right: list[_Value], place: int) -> tuple[_Value, float] | None:
    """The first value of the run at this place that differs, and by how much, relative to its largest number."""
    for one, other in zip(left, right, strict=True):
        ours, theirs = (own.value[place].detach().cpu().numpy() for own in (one, other))
        if not np.array_equal(ours, theirs, equal_nan=True):
            return one, float(np.abs(ours - theirs).max() / np.abs(ours).max())
    return None


def _check_alone(alone: list[_Value], together: list[_Value], place: int, compute: Callable[[], list[_Value]]) -> None:
    """Refuse a plug-in if the run at this place computes something else together with others than `alone`, which is the result of
    `compute`."""
    if (found := _first_difference(alone, together, place)) is None:
        return
    again = _first_difference(alone, compute(), place)
    (name, function, _), difference = again or found
    how = "when the same is computed again" if again else "when another run is computed next to it"
    cause = "changes" if again else "mixes" if not difference < ROUNDING else "rounds"
    refuse(function, f"the {name} of a run changes {how}, by {difference:.1e} of its size", cause)


def _moved(weights: Tensor) -> Tensor:
    return weights + _MOVE * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0)).to(weights.device)


def check_training(problem: Problem, states: list[State], prepared: Any) -> None:
    """Check the first step of runs that are to be trained.

    Args:
        states: the states of the runs, at any steps.
        prepared: the result of the regularizer's `prepare`.

    Raises:
        PluginError: a model, a regularizer or a kind of task is wrong.
    """
    if problem.model.fit:
        return
    first, width = states[0], width_of(problem)
    other = next((state for state in states if state.seed != first.seed), first)
    moved = first.tensors | {"weights": _moved(first.tensors["weights"])}
    subject, twin = replace(first, tensors=moved, strength=1.0), replace(other, step=first.step, strength=2.0)
    finite = other.step == 0  # later, numbers that are not finite mean a diverged run, which is no fault of a plug-in
    twins = (width or 2) - 1

    _check_draw(problem, 0)
    if problem.model.Network:
        check_network(problem)
    if not twins:  # runs that are computed one after the other have no neighbors, but their results must be right, too
        _in_training(problem, [twin], prepared, 0, finite)

    def first_alone() -> list[_Value]:
        return _in_training(problem, (width or 1) * [subject], prepared, 0, False)

    def last_alone() -> list[_Value]:
        return _in_training(problem, (width or 1) * [twin], prepared, width or 1, False)

    alone = first_alone()
    before = _kept(problem)  # after a first pass, which may set what stays
    together = _in_training(problem, [subject] + twins * [twin], prepared, twins, finite and twins > 0)
    _check_alone(alone, together, 0, first_alone)
    if twins:
        _check_alone(last_alone(), together, -1, last_alone)
    for written, values in _kept(problem).items():
        if changed := [name for name in values if values[name] != before[written].get(name, values[name])]:
            refuse(written, f"it changes {', '.join(changed)}", "kept")
    weights = Pack(problem, (width or 1) * [subject], prepared).tensors
    check_order(problem, weights)
    check_examples(problem, weights)
    check_padding(problem, weights)


def check_evaluation(problem: Problem, weights: dict[str, Tensor], diverged: bool) -> None:
    """Check the first batch of runs that are to be evaluated.

    Args:
        weights: (R, ...) by name.
        diverged: whether the first run has diverged.

    Raises:
        PluginError: a model is wrong.
    """
    first = {name: values[:1] for name, values in weights.items()}
    trained = weight_layout(problem).slices
    twin = {name: values[-1:] for name, values in weights.items()}
    twin |= {name: _moved(twin[name]) for name in trained}  # there may be only one run
    width = width_of(problem)

    def compute(runs: list[dict[str, Tensor]], finite: bool) -> list[_Value]:
        return _in_evaluation(problem, {name: torch.cat([run[name] for run in runs]) for name in first}, finite)

    def first_alone() -> list[_Value]:
        return compute((width or 1) * [first], not diverged)

    def last_alone() -> list[_Value]:
        return compute((width or 1) * [twin], False)

    alone, together = first_alone(), compute([first, *((width or 2) - 1) * [twin]], False)
    _check_alone(alone, together, 0, first_alone)
    if width != 1:
        _check_alone(last_alone(), together, -1, last_alone)
