"""Models and regularizers whose results are checked as they are computed, for the guards (training.guards)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from compositional.kinds import Batch
from compositional.models import Model
from compositional.regularizers import Regularizer, Representation, Step
from compositional.training.effects import refuse_foreign, unchanged, unreached
from compositional.training.plugin_errors import forward_of, refuse
from compositional.training.problem import Problem


class Value(NamedTuple):
    """Values (R, ...) that a function of a plug-in computed, one for each run."""

    name: str
    function: Callable
    value: Tensor


def _written(shape: Iterable[int | None]) -> str:
    return str(tuple(shape)).replace("None", "any")


def check(
    function: Callable,
    what: str,
    value: Any,
    shape: tuple[int | None, ...],
    device: torch.device,
    finite: bool,
    single: bool = False,
) -> None:
    """Raise an error unless `value`, returned by `function`, is a tensor of this shape (None: any size) on this device.

    finite: whether the numbers of its last run must be finite. single: whether the function is of one run, and its author knows
    no run axis.
    """
    wanted, cause = _written(shape[single:]), "sizes" if single else "shape"
    if not isinstance(value, Tensor):
        refuse(function, f"{what} must be a tensor of shape {wanted}, it is of type {type(value).__name__}", cause)
    if value.ndim != len(shape) or any(size not in (None, own) for size, own in zip(shape, value.shape, strict=True)):
        refuse(function, f"{what} must be of shape {wanted}, it is of shape {_written(value.shape[single:])}", cause)
    if value.dtype != torch.float32:
        refuse(function, f"{what} must be of dtype torch.float32, it is of {value.dtype}", "dtype")
    if value.device != device:
        refuse(function, f"{what} must be on {device}, it is on {value.device}", "device")
    if finite and not value[-1].isfinite().all():
        refuse(function, f"{what} has numbers that are not finite, before the first step", "finite")


def _tensors(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch by name."""
    return {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)}


class _Noting:
    """A tap that notes which representations a model shows, and what a regularizer makes of them."""

    def __init__(self, tap: Callable) -> None:
        self._tap, self.names = tap, set[str]()
        self.perturbed: dict[str, Tensor] = {}

    def __call__(self, name: str, values: Tensor, mask: Tensor | None) -> Tensor:
        self.names.add(name)
        given = self._tap(name, values, mask)
        if given is not values and torch.is_grad_enabled():
            # What depends on it shows in gradients, which numbers from frozen weights do not have.
            self.perturbed[name] = given = given if given.requires_grad else given.detach().requires_grad_()
        return given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tap, name)


def watch_model(problem: Problem, seen: list[tuple[Batch, Tensor]], finite: bool) -> Model:
    """The model, changed so that its outputs are checked and appended to `seen` with their batch."""
    model, written = problem.model, forward_of(problem.model)

    def forward(parameters: dict, weights: dict[str, Tensor], batch: Batch, tap: Callable) -> Tensor:
        like = next(iter(weights.values()))
        noting = _Noting(tap)
        with unchanged(written, _tensors(batch), "batch", "in place"), unchanged(written, weights, "run", "weights"):
            outputs = model.forward(parameters, weights, batch, noting)
        if missing := sorted({*model.REPRESENTATIONS} - noting.names):
            refuse(written, f"it does not show {', '.join(missing)} of its REPRESENTATIONS", "shown")
        # Only machines that are fitted have several columns; of a network, they would be averaged without notice.
        columns = None if problem.model.fit else 1
        shape = (columns if size is None else size for size in batch.output_shape(problem.about))
        check(written, "its result", outputs, (len(like), *shape), like.device, finite, model.Network is not None)
        if torch.is_grad_enabled() and like.requires_grad and not outputs.requires_grad:
            refuse(written, "its result has no gradient", "gradient")
        if lost := unreached(outputs, noting.perturbed):
            refuse(written, f"its result does not depend on what the regularizer makes of {', '.join(lost)}", "unused")
        refuse_foreign(written, outputs, [*weights.values(), *_tensors(batch).values()])
        seen.append((batch, outputs))
        return outputs

    return replace(model, forward=forward)


def watch_regularizer(problem: Problem, seen: list[Value], finite: bool) -> Regularizer | None:
    """The regularizer, changed so that its results are checked; perturbed representations are appended to `seen`."""
    regularizer, written = problem.regularizer, forward_of(problem.model)
    if regularizer is None:
        return None

    def penalty(step: Step) -> Tensor:
        runs, device = len(step.active), step.active.device
        for shown in step.representations:
            leading = (runs,) if shown.mask is None else tuple(shown.mask.shape)
            shape = (*leading, *[None] * (shown.values.ndim - len(leading)))
            check(written, f"the representation {shown.name!r}", shown.values, shape, device, finite)
        given = {shown.name: shown.values for shown in step.representations} | {"outputs": step.outputs}
        with (
            unchanged(regularizer.penalty, step.weights, "run", "weights"),
            unchanged(regularizer.penalty, _tensors(step.batch), "batch", "in place"),
            unchanged(regularizer.penalty, given, "step", "in place"),
        ):
            value = regularizer.penalty(step)
        check(regularizer.penalty, "its result, one number per run,", value, (runs,), device, finite)
        if regularizer.perturb is None and not value.requires_grad:
            refuse(regularizer.penalty, "its result has no gradient", "gradient")
        reached = [*step.weights.values(), *(shown.values for shown in step.representations), step.outputs]
        refuse_foreign(regularizer.penalty, value, [*reached, *_tensors(step.batch).values()])
        return value

    def watch(batch: Batch) -> Batch:
        shown = regularizer.watch(batch)
        if not isinstance(shown, type(batch)):
            refuse(regularizer.watch, f"its result must be a batch, it is of type {type(shown).__name__}", "watched")
        sizes, wanted = (own.output_shape(problem.about) for own in (shown, batch))
        if sizes != wanted:
            refuse(regularizer.watch, f"the outputs of its batch have the sizes {sizes}, must have {wanted}", "shape")
        return shown

    watched = replace(regularizer, penalty=penalty, watch=watch)
    if (own := regularizer.perturb) is None:
        return watched

    def perturb(step: Step, shown: Representation) -> Tensor:
        with unchanged(own, {shown.name: shown.values}, "representations", "in place"):
            value, shape = own(step, shown), tuple(shown.values.shape)
        check(own, f"what it makes of {shown.name!r}", value, shape, shown.values.device, finite)
        seen.append(Value(f"representation {shown.name!r}", written, shown.values))
        seen.append(Value(f"perturbed representation {shown.name!r}", own, value))
        return value

    return replace(watched, perturb=perturb)
