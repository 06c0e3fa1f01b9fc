"""Checks for faults of plug-ins that would otherwise pass unnoticed. They are made once per job, before its first step.

What models, regularizers and kinds return must have the right shape and type, be on the right device and be finite. They must not
change weights, options or batches. And no run may depend on its neighbors: the first run is computed alone and next to a twin
with other weights, another batch, other noise and another lambda, and both computations must give the same bytes. So must the
twin alone, because what mixes through the first run does not show in the first run. Gradients of one run with respect to another
run's weights would not be enough: they miss what mixes through data, detached values and buffers. Nor may a step depend on what
was computed before it: the twin's is computed once more by plug-ins that are imported again, after a step of other examples. This
all costs about seven steps of a run.

No number depends on this module, so it is imported by name (`import_module`) where it is needed. That keeps it out of the
fingerprints that identify runs: editing it retrains nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.util import find_spec, module_from_spec
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositional.kinds import Batch
from compositional.records import undeclared
from compositional.training.effects import check_initial, same_settings
from compositional.training.model_guards import (
    EXAMPLES,
    PLUG_INS,
    check_examples,
    check_network,
    check_order,
    check_padding,
    check_targets,
    evaluated,
    kept_in,
    state_of,
)
from compositional.training.pack import Pack
from compositional.training.plugin_errors import ROUNDING, code_of, forward_of, refuse
from compositional.training.problem import Problem, prepare, weight_layout, width_of
from compositional.training.state import State
from compositional.training.watching import Value, check, watch_model, watch_regularizer

_IN_EVALUATION = "output in evaluation"  # the name of a Value
# Standard deviation of the noise that is added to weights. With initial weights, a normalization can hide that runs mix.
_MOVE = 0.03


def _kept(problem: Problem, prepared: Any) -> dict[Callable, dict[str, str]]:
    """By function of a plug-in: its options, and what it could change from one pass to the next, as text."""
    found = {forward_of(problem.model): problem.model_parameters | state_of(problem)}
    if problem.regularizer is not None:
        found[problem.regularizer.penalty] = problem.regularizer_parameters | dict(kept_in("step.prepared", prepared))
    for written, values in found.items():
        own = {name: value for name, value in code_of(written).__globals__.items() if name[:2] != "__"} | vars(written)
        found[written] = values | {at: value for name, held in own.items() for at, value in kept_in(name, held)}
    return {written: {name: repr(value) for name, value in values.items()} for written, values in found.items()}


def _imported_again(problem: Problem) -> Problem:
    """The problem with its model and regularizer as a new process imports them: they have kept nothing from earlier passes."""
    modules: dict[str, Any] = {}

    def again(own: Any) -> Any:
        name = getattr(own, "__module__", None) or ""
        if not isinstance(own, type | FunctionType) or not name.startswith(PLUG_INS) or "<" in own.__qualname__:
            return own
        if name not in modules and (spec := find_spec(name)) and spec.loader:
            modules[name] = module_from_spec(spec)
            spec.loader.exec_module(modules[name])
        return getattr(modules.get(name), own.__name__, own)

    def described(plugin: Any) -> Any:
        return replace(plugin, **{field.name: again(getattr(plugin, field.name)) for field in fields(plugin)})

    found = copy.copy(problem)
    found.model, found.regularizer = described(problem.model), described(problem.regularizer) if problem.regularizer else None
    found.__post_init__()
    return found


def _check_draw(problem: Problem) -> None:
    """Refuse a split whose `draw` does not return row numbers, or whose rows of a step depend on the other steps requested."""
    train, size = problem.splits["train"], problem.settings["batch_size"]
    written, rows = type(train).draw, train.draw(0, range(3), size)
    if rows.dtype.kind != "i" or rows.shape not in ((3, size), (3, 1)) or rows.min() < 0:
        refuse(written, f"it must give row numbers (3, {size}), it gives {rows.dtype} {rows.shape} from {rows.min()}", "shape")
    if not np.array_equal(rows[2:], train.draw(0, range(2, 3), size)):
        refuse(written, "it draws other rows for step 2 if steps 0 and 1 are requested, too", "drawn")


def _in_training(
    problem: Problem, states: list[State], prepared: Any, twins: int, finite: bool, after: bool = False
) -> list[Value]:
    """The values that these runs compute in a step, in order.

    The last `twins` states use the next step's batch and noise of other streams, because a twin may have the same seed.

    after: whether the step comes after a pass over other examples, which must make no difference.
    """
    outputs: list[tuple[Batch, Tensor]] = []
    seen: list[Value] = []
    watched = copy.copy(problem)
    watched.model, watched.regularizer = watch_model(problem, outputs, finite), watch_regularizer(problem, seen, finite)
    pack = Pack(watched, states, prepared)
    step, size = states[0].step, problem.settings["batch_size"]
    later = [int(index >= len(states) - twins) for index in range(len(states))]

    def draw(ahead: int) -> None:
        drawn = [
            pack.train.draw(pack.key(state, "batches"), range(step + more, step + more + 1), size)[0]
            for state, more in zip(states, (ahead + own for own in later), strict=True)
        ]
        pack.rows.copy_(torch.from_numpy(np.stack(drawn)))

    if after:
        draw(2)
        pack._objective()
    draw(0)
    for noise in (pack.noise, pack.dropout):
        noise.keys = [key + more for key, more in zip(noise.keys, later, strict=True)]
        noise.draw(step)
    outputs.clear()
    seen.clear()  # values of the pass in which a pack counts the random numbers of a step
    task_loss, penalty, gradient, *_ = pack.gradient()
    (batch, result), written = outputs[0], forward_of(problem.model)
    losses = batch.losses(result, problem.settings["loss"])
    check(type(batch).losses, "its result", losses, (len(states), None), result.device, finite)
    seen += [Value("output", written, result), Value("task loss", type(batch).losses, task_loss)]
    if problem.regularizer is not None:
        seen.append(Value("penalty", problem.regularizer.penalty, penalty))
    blamed = written
    if problem.regularizer is not None and finite and not gradient[-1].isfinite().all():
        watched.regularizer = None
        blamed = problem.regularizer.penalty if pack.gradient()[2][-1].isfinite().all() else written
    check(blamed, "the gradient through it", gradient, tuple(gradient.shape), gradient.device, finite)
    return [*seen, Value("gradient", written, gradient), *_in_evaluation(problem, pack.tensors, finite)]


def _in_evaluation(problem: Problem, weights: dict[str, Tensor], finite: bool) -> list[Value]:
    """The outputs for a few training examples, as evaluation computes them."""
    model = watch_model(problem, [], finite)
    runs = len(next(iter(weights.values())))
    rows, batch = problem.splits["train"].evaluation_batches(runs, EXAMPLES, EXAMPLES)[0]
    outputs = evaluated(problem, model, weights, batch)
    losses = batch.example_losses(batch.losses(outputs, problem.settings["loss"]))
    _check_examples(type(batch).example_losses, "its result", losses, runs, len(rows))
    for name, values in batch.metrics(outputs).items():
        if name == "loss":
            refuse(type(batch).metrics, "it gives 'loss', which is the task's loss", "name")
        _check_examples(type(batch).metrics, f"its {name!r}", values, runs, len(rows))
    return [Value(_IN_EVALUATION, forward_of(problem.model), outputs)]


def _check_examples(function: Callable, what: str, value: Any, runs: int, examples: int) -> None:
    """Refuse anything but one value per run and example; after those of the batch's examples, there may be some of padding."""
    if isinstance(value, Tensor) and value.ndim == 2 and len(value) == runs and value.shape[1] >= examples:
        return
    found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
    refuse(function, f"{what} must be one value per run and example, ({runs}, {examples}), it is {found}", "shape")


def _first_difference(left: list[Value], right: list[Value], place: int) -> tuple[Value, float] | None:
    """The first value of the run at this place that differs, and by how much, relative to its largest number."""
    for one, other in zip(left, right, strict=True):
        ours, theirs = (own.value[place].detach().cpu().numpy() for own in (one, other))
        if not np.array_equal(ours, theirs, equal_nan=True):
            return one, float(np.abs(ours - theirs).max() / np.abs(ours).max())
    return None


def _check_alone(
    problem: Problem, alone: list[Value], together: list[Value], place: int, compute: Callable[[], list[Value]]
) -> None:
    """Refuse a plug-in if the run at this place computes something else together with others than `alone`, which is the result of
    `compute`."""
    if (found := _first_difference(alone, together, place)) is None:
        return
    again = _first_difference(alone, compute(), place)
    (name, function, _), difference = again or found
    how = "when the same is computed again" if again else "when another run is computed next to it"
    cause = "changes" if again else "mixes" if not difference < ROUNDING else "rounds"
    if cause == "rounds" and name == _IN_EVALUATION and (examples := len(problem.splits["train"])) < EXAMPLES and examples % 2:
        how, cause = f"{how}, in a batch of all {examples} training examples", "odd"  # which is no fault of the model
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
        PermissionError: a model or a regularizer reads a file.
        ValueError: outputs of an unknown member are to be recorded.
    """
    if unknown := [name for name in problem.settings["record_outputs"] if name not in problem.splits]:
        allowed = ", ".join(problem.splits)
        raise ValueError(f"training.record_outputs: task {problem.task!r} has no {unknown[0]!r}. Allowed: {allowed}")
    with undeclared.refused([], undeclared.NO_FILES_OF_MODELS), same_settings(problem):
        check_initial(problem)
        _check_step(problem, states, prepared)


def _check_step(problem: Problem, states: list[State], prepared: Any) -> None:
    prepared = copy.deepcopy(prepared)  # what these passes change must not be what training starts with
    first, width = states[0], width_of(problem)
    other = next((state for state in states if state.seed != first.seed), first)
    moved = first.tensors | {"weights": _moved(first.tensors["weights"])}
    subject, twin = replace(first, tensors=moved, strength=1.0), replace(other, step=first.step, strength=2.0)
    finite = other.step == 0  # later, numbers that are not finite mean a diverged run, which is no fault of a plug-in
    twins = (width or 2) - 1

    _check_draw(problem)
    if problem.model.Network:
        check_network(problem)

    def first_alone() -> list[Value]:
        return _in_training(problem, (width or 1) * [subject], prepared, 0, False)

    def last_alone() -> list[Value]:
        return _in_training(problem, (width or 1) * [twin], prepared, width or 1, False)

    alone = first_alone()
    before = _kept(problem, prepared)  # after a first pass, which may set what stays
    if not twins:  # runs that are computed one after the other have no neighbors, but their results must be right, too
        _in_training(problem, [twin], prepared, 0, finite)
    together = _in_training(problem, [subject] + twins * [twin], prepared, twins, finite and twins > 0)
    _check_alone(problem, alone, together, 0, first_alone)
    if twins:
        _check_alone(problem, last_alone(), together, -1, last_alone)
    for written, values in _kept(problem, prepared).items():
        if changed := [name for name in values if values[name] != before[written].get(name, values[name])]:
            refuse(written, f"it changes {', '.join(changed)}", "kept")
    weights = Pack(problem, (width or 1) * [subject], prepared).tensors
    fresh = _imported_again(problem)
    _in_evaluation(fresh, weights, False)
    after_another = _in_training(fresh, (width or 1) * [twin], prepare(fresh), width or 1, False, after=True)
    if found := _first_difference(last_alone(), after_another, 0):
        (name, function, _), difference = found
        refuse(function, f"the {name} changes with what was computed before, by {difference:.1e} of its size", "earlier")
    check_order(problem, weights)
    check_targets(problem, weights)
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

    def compute(runs: list[dict[str, Tensor]], finite: bool) -> list[Value]:
        return _in_evaluation(problem, {name: torch.cat([run[name] for run in runs]) for name in first}, finite)

    def first_alone() -> list[Value]:
        return compute((width or 1) * [first], not diverged)

    def last_alone() -> list[Value]:
        return compute((width or 1) * [twin], False)

    alone, together = first_alone(), compute([first, *((width or 2) - 1) * [twin]], False)
    _check_alone(problem, alone, together, 0, first_alone)
    if width != 1:
        _check_alone(problem, last_alone(), together, -1, last_alone)
