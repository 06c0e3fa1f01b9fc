"""Training of runs to their end, in segments. At the end of each segment a point of the curves is recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import torch
from torch import Tensor

from compositional.training.pack import Pack
from compositional.training.problem import Problem, prepare, weight_layout, width_of
from compositional.training.state import State, has_ended

# (problem, weights (R, ...) by name, examples) -> for each run {(split, metric): value}
Measure = Callable[[Problem, dict[str, Tensor], int], list[dict[tuple[str, str], float]]]


def train_runs(
    problem: Problem, states: list[State], measure: Measure, on_record: Callable[[list[State]], None] = lambda states: None
) -> None:
    """Train all runs to the end (or to divergence), in place.

    A model with `fit(parameters, task, train_split) -> weights` is fitted instead, one run after the other.

    Args:
        states: fresh runs (`fresh_state`) or runs from checkpoints; they may be at different steps.
        measure: what is recorded of the runs.
        on_record: called after every segment with the runs that took part in it, for checkpoints and progress.
    """
    if problem.device == "cpu":
        torch.set_num_threads(1)
    prepared = prepare(problem)
    settings = problem.settings
    steps, every = settings["steps"], settings["record_every"]
    if fit := problem.model.fit:
        for state in [state for state in states if state.step < steps]:
            _record(problem, measure, _fitted(problem, fit, state), [state])
            on_record([state])

    if pending := [state for state in states if not has_ended(state, settings)]:
        # Imported by name: it determines no number and must not be part of a run's fingerprint.
        import_module("compositional.training.guards").check_training(problem, pending, prepared)
    pack: Pack | None = None
    current: list[State] = []
    width = width_of(problem)
    while pending := [state for state in states if not has_ended(state, settings)]:
        begin = min(state.step for state in pending)
        members = [state for state in pending if state.step == begin][:width]
        if pack is None or members != current:
            fill = [replace(members[0], history=[]) for _ in range(len(members), width or 0)]
            pack = None  # frees its memory, on CUDA that of a recorded step: two packs may not fit
            pack, current = Pack(problem, members + fill, prepared), members
        if begin == 0 and 0 in settings["record_steps"]:
            _record(problem, measure, pack.tensors, members)
        pack.advance(min(steps, begin - begin % every + every, *(step for step in settings["record_steps"] if step > begin)))
        _record(problem, measure, pack.tensors, members)
        on_record(members)


def _fitted(problem: Problem, fit: Callable, state: State) -> dict[str, Tensor]:
    """The weights of a run, (1, ...) by name, after fitting it in place."""
    layout, started = weight_layout(problem), time.perf_counter()
    weights = layout.flatten(fit(problem.model_parameters, problem.about, problem.splits["train"]))
    state.tensors["weights"] = weights
    state.step = problem.settings["steps"]
    state.diverged_at = None if weights.isfinite().all() else state.step
    state.seconds = time.perf_counter() - started
    return layout.views(weights.unsqueeze(0).to(problem.device))


def _record(problem: Problem, measure: Measure, weights: dict[str, Tensor], members: list[State]) -> None:
    """Add a point to the curves of the runs. The last finite weights of a diverged run are not a result."""
    measured = measure(problem, weights, problem.settings["curve_examples"])
    for state, values in zip(members, measured, strict=False):  # rows beyond the members are padding
        lost = state.diverged_at is not None
        state.history += [(state.step, split, metric, math.nan if lost else value) for (split, metric), value in values.items()]
