"""Which tasks, models and regularizers can be combined, and which of them a figure of representations can show."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from importlib.util import find_spec

from compositional.configuration.entries import Entries
from compositional.configuration.messages import options_for
from compositional.configuration.schema import declared_by, several
from compositional.plugins import is_network, kinds_that
from compositional.records.provenance import RUN_RECORDS

# The files that the stage represent computes from a run's weights.
REPRESENTED = set(RUN_RECORDS["representation.json"])


def _wrong_settings(entries: Entries, task: str, model: str, kind: str) -> list[str]:
    """Why a task of this kind cannot be trained with its own settings and those of the model."""
    problems, settings, declared = [], entries.settings(task, model), declared_by(f"kinds.{kind}")
    size, multiple, option = settings["batch_size"], declared["BATCH_MULTIPLE"], declared["FULL_BATCH"]
    if size % multiple:
        problems.append(f"training.batch_size of {kind} tasks must be a multiple of {multiple}, {task!r} has {size}")
    if option and size != (examples := entries.parameters("tasks", task)[option]):
        problems.append(
            f"training.batch_size of {kind} tasks must be {option}, {examples}: every step uses all; {task!r} has {size}"
        )
    if settings["loss"] not in declared["LOSSES"]:
        allowed = ", ".join(declared["LOSSES"])
        problems.append(f"training.loss {settings['loss']!r} is not for {task!r}, a task of kind {kind!r}, which takes {allowed}")
    if settings["momentum"] and settings["optimizer"] != "sgd":
        problems.append(f"training.momentum is for optimizer: sgd; {task!r} with {model!r} has {settings['optimizer']}")
    if is_network(entries.module("models", model)) and settings["cuda_width"] not in (None, 1):
        problems.append(f"training.cuda_width: model {model!r} is a Network, whose runs take turns; leave it null")
    if (other := settings["seeded_as"]) is not None and other not in (known := entries.names("tasks")):
        problems.append(f"training.seeded_as of {task!r}: unknown task {other!r}{options_for(other, known)}")
    problems += [
        f"training.{setting} is for tasks of kind {', '.join(kinds_that(needed))}, {task!r} is a task of kind {kind!r}"
        for setting, needed in (("influence_examples", "INFLUENCE"), ("record_outputs", "MARGINS"))
        if settings[setting] and not declared[needed]
    ]
    return problems


def _unregularizable(entries: Entries, task: str, model: str, regularizer: str, kind: str) -> list[str]:
    """Why this regularizer cannot be used with this task of this kind and this model, which fit each other."""
    declared = entries.declared("regularizers", regularizer)
    shown = entries.declared("models", model)["REPRESENTATIONS"]
    if kind not in declared["APPLIES_TO"]:
        kinds = " and ".join(declared["APPLIES_TO"])
        return [f"regularizer {regularizer!r} applies to {kinds} tasks, {task!r} is a task of kind {kind!r}"]
    if declared["REPRESENTATIONS"] and not set(declared["REPRESENTATIONS"]) & set(shown):
        needed = " or ".join(declared["REPRESENTATIONS"])
        found = ", ".join(shown) or "none: name one in its REPRESENTATIONS"
        return [f"regularizer {regularizer!r} needs a model with {needed}, {model!r} has {found}"]
    if declared["PAIRED"] and (size := entries.settings(task, model)["batch_size"]) % 2:
        return [
            f"regularizer {regularizer!r} pairs the examples of a batch: training.batch_size of {task!r} must be even, "
            f"it is {size}"
        ]
    return []


def _in_single_precision(value: float) -> float:
    """The lambda that training computes with."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf


def wrong_strengths(entries: Entries, regularizer: str, strengths: Iterable[float]) -> list[str]:
    """Messages about lambdas that a regularizer cannot have, such as a dropout rate of 1; each says what is allowed."""
    strengths = list(strengths)
    bound = entries.declared("regularizers", regularizer)["LAMBDA_BELOW"]
    lost = [
        f"lambda {strength:g} is {single:g} in single precision, in which training computes; it must be between 1e-45 and 3.4e+38"
        for strength in strengths
        if strength > 0 and (single := _in_single_precision(strength)) in (0, math.inf)
    ]
    return lost + [
        f"lambda of regularizer {regularizer!r} must be below {bound}, it is {strength:g}"
        for strength in strengths
        if bound is not None and strength >= bound
    ]


def impossible(entries: Entries, task: str, model: str, regularizer: str) -> list[str]:
    """Why this combination cannot be trained; empty if it can."""
    kind, model_kind = entries.declared("tasks", task)["KIND"], entries.declared("models", model)["KIND"]
    if kind not in (accepted := several(model_kind)):
        return [f"model {model!r} is for {' and '.join(accepted)} tasks, {task!r} is a task of kind {kind!r}"]
    problems = _wrong_settings(entries, task, model, kind)
    problems += [
        f"model {model!r} needs the package {name}, which is not installed: pip install -r envs/optional.txt"
        for name in entries.declared("models", model)["PACKAGES"]
        if find_spec(name) is None
    ]
    if keys := entries.declared("tasks", task)["BUILT_FROM"]:
        # The network must have room for every graph that the search may find.
        allowed, found = entries.parameters("models", model), entries.parameters("tasks", task)
        problems += [
            f"{name} of task {task!r} is {found[name]}, of model {model!r} {allowed.get(name)}: it must not be smaller"
            for name in ("max_nodes", "max_edges")
            if found[name] > allowed.get(name, 0)
        ]
        where, source, network = f"tasks.{entries.owner(task)}", found[keys["task"]], found[keys["model"]]
        if (other := entries.declared("tasks", source)["KIND"]) != kind:
            problems.append(f"{where}.{keys['task']}: {source!r} is a task of kind {other!r}, must be of kind {kind!r}")
        elif network != model:
            problems += [f"{where}.{keys['model']}: {line}" for line in impossible(entries, task, network, "none")]
    return problems + (_unregularizable(entries, task, model, regularizer, kind) if regularizer != "none" else [])


def unrepresented(entries: Entries, task: str, model: str) -> list[str]:
    """Why the stage represent cannot measure this model's representations of this task; empty if it can. It can be trained."""
    kind, shown = entries.declared("tasks", task)["KIND"], entries.declared("models", model)["REPRESENTATIONS"]
    if not declared_by(f"kinds.{kind}")["REPRESENTED"]:
        kinds = " and ".join(kinds_that("REPRESENTED"))
        return [f"representations are measured of {kinds} tasks, {task!r} is a task of kind {kind!r}"]
    return [] if shown else [f"model {model!r} shows no representation to measure"]
