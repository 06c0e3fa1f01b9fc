"""Expand series of tasks, and grids of several tasks and models, into single ones.

A task with `series: {loop: [0, 1], generation: 2}` stands for the tasks <name>_loop0_generation1, <name>_loop0_generation2,
<name>_loop1_generation1, ... A grid of a series becomes one grid per task, and its pack size applies to each of them. The values
of all axes but the last name a part of a series, such as <name>_loop0, which grids may use, too. Some options of figures map
labels to tasks or tasks to values. Such an option may name a part, or a series with one axis. It then becomes
{"1": <name>_loop0_generation1, ...} or {<name>_loop0_generation1: 1, ...}.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

from compositional.configuration.schema import declared_by, several
from compositional.plugins import available

LARGEST = 1_000_000  # tasks of a series, or runs of a grid; the largest ones of this repository have some hundred


def _members(name: str, entry: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[int, str]]]:
    """Two dictionaries by name: the tasks that an entry stands for (itself if it has no series), and the parts of its series,
    each with its tasks by the value of the last axis."""
    given = entry.get("series")
    if given is None:
        return {name: entry}, {}
    module = entry.get("module", name)
    # Sort the axes as the module declares them, because overlays may change the order of keys.
    order = list(declared_by(f"tasks.{module}")["PARAMETERS"]) if module in available("tasks") else []
    axes = sorted(given, key=lambda axis: order.index(axis) if axis in order else -1)
    choices = [range(1, given[axis] + 1) if isinstance(given[axis], int) else given[axis] for axis in axes]
    tasks: dict[str, dict[str, Any]] = {}
    parts: dict[str, dict[int, str]] = {}
    rest = {"module": module} | {key: value for key, value in entry.items() if key != "series"}
    for values in itertools.product(*choices):
        words = [name, *(f"{axis}{value}" for axis, value in zip(axes, values, strict=True))]
        tasks["_".join(words)] = rest | dict(zip(axes, values, strict=True))
        parts.setdefault("_".join(words[:-1]), {})[values[-1]] = "_".join(words)
    return tasks, parts


def _count(value: Any) -> int:
    """How many entries a number, a list or a single name stands for."""
    return value if isinstance(value, int) else len(value) if isinstance(value, list) else 1


def _runs(grid: dict[str, Any], members: dict[str, list[str]]) -> int:
    """The number of runs of a grid."""
    tasks = sum(len(members.get(name, [name])) for name in several(grid["task"]))
    methods = 1 + sum(map(len, grid.get("regularizers", {}).values()))
    return tasks * methods * _count(grid.get("model")) * _count(grid.get("seeds"))


def _single_grids(grid: dict[str, Any], members: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Split a grid of several tasks and models into grids of one task and one model each, with listed seeds."""
    names = {key: several(grid[key]) for key in ("task", "model") if key in grid}
    names["task"] = [member for task in names["task"] for member in members.get(task, [task])]
    seeds = {"seeds": list(range(grid["seeds"]))} if isinstance(grid.get("seeds"), int) else {}
    return [grid | seeds | dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]


def _with_tasks(schema: Any, value: Any, parts: dict[str, dict[int, str]]) -> Any:
    """A figure's option with series replaced by their tasks, if its schema maps labels to tasks or tasks to values."""
    if not isinstance(schema, dict):
        return value
    inside = schema.get("additionalProperties")
    if isinstance(value, str) and schema.get("type") == "object" and value in parts:
        if schema.get("names") == "tasks":
            return {task: place for place, task in parts[value].items()}
        if isinstance(inside, dict) and inside.get("names") == "tasks":
            return {str(place): task for place, task in parts[value].items()}
    if isinstance(value, dict):
        return {key: _with_tasks(schema.get("properties", {}).get(key, inside), own, parts) for key, own in value.items()}
    return [_with_tasks(schema.get("items"), own, parts) for own in value] if isinstance(value, list) else value


def written_out(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration with series expanded into single tasks, grids of one task, one model and listed seeds, and the pack sizes
    of its device only; and a list of problems: tasks with the same name, or more tasks or runs than a build can plan.

    For messages, `owners` holds the entry of the file that each task comes from, and in a figure, `places` lists for each grid
    which grid of the file it comes from.
    """
    tasks: dict[str, dict[str, Any]] = {}
    owners: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    parts: dict[str, dict[int, str]] = {}
    problems = []
    for name, entry in config["tasks"].items():
        if (count := math.prod(map(_count, entry.get("series", {}).values()))) > LARGEST:
            problems.append(f"tasks.{name}.series: these are {count} tasks, must be at most {LARGEST}")
            members[name] = []
            continue
        own, own_parts = _members(name, entry)
        problems += [
            f"tasks: {owners[task]!r} and {name!r} both make a task {task!r}; rename one of them"
            for task in own
            if task in owners
        ]
        tasks |= own
        owners |= dict.fromkeys(own, name)
        parts |= own_parts
        members |= {name: list(own), **{part: list(along.values()) for part, along in own_parts.items()}}
    studies = copy.deepcopy(config["studies"])
    for study, name, figure in [(study, *pair) for study, content in studies.items() for pair in content["figures"].items()]:
        for place, grid in enumerate(figure["grids"]):
            if (count := _runs(grid, members)) > LARGEST:
                where = f"studies.{study}.figures.{name}.grids.{place}"
                problems.append(f"{where}: these are {count} runs, must be at most {LARGEST}")
                grid["task"] = []
        grids = [(place, one) for place, grid in enumerate(figure["grids"]) for one in _single_grids(grid, members)]
        figure["places"], figure["grids"] = ([pair[index] for pair in grids] for index in (0, 1))
        if figure.get("options") and (module := figure.get("module", name)) in available("figures"):
            declared = declared_by(f"figures.{module}")["PARAMETERS"]
            figure["options"] = {key: _with_tasks(declared.get(key), own, parts) for key, own in figure["options"].items()}
    # `auto` plans like cpu even if there is a GPU: plans are made on one machine, such as a cluster's login node, for others.
    sizes = config["pack_size"]["cuda" if config["device"] == "cuda" else "cpu"]
    sizes = {task: sizes[name] for name in config["tasks"] if name in sizes for task in members[name]} | sizes
    archived = {"figures": "all", "data": False} | config.get("archive", {})
    return config | {"tasks": tasks, "owners": owners, "studies": studies, "pack_size": sizes, "archive": archived}, problems
