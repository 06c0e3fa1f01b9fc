"""Series of tasks, and grids of several tasks and models, written out as one of each."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from compositional.configuration.schema import declared_by
from compositional.plugins import available


def _single_grids(grid: dict[str, Any], series: dict[str, list[str]]) -> list[dict[str, Any]]:
    """A grid of several tasks and models as one of each; a number of seeds written out."""
    names = {key: [grid[key]] if isinstance(grid[key], str) else grid[key] for key in ("task", "model") if key in grid}
    names["task"] = [member for task in names["task"] for member in series.get(task, [task])]
    seeds = {"seeds": list(range(grid["seeds"]))} if isinstance(grid.get("seeds"), int) else {}
    return [grid | seeds | dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]


def written_out(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration with series of tasks as single tasks, and grids of one task, one model and listed seeds; and which
    tasks have the same name then.

    `places` says of a figure's grids, for messages, which of the file they come from.
    A task with `series: {loop: [0, 1], generation: 2}` stands for the tasks <name>_loop0_generation1,
    <name>_loop0_generation2, <name>_loop1_generation1, ..., a grid of it for a grid of each, its pack size for that of each.
    """
    tasks: dict[str, dict[str, Any]] = {}
    series: dict[str, list[str]] = {}
    problems: list[str] = []
    for name, entry in config["tasks"].items():
        # In the order in which the module declares them: overlays may turn the order of keys around.
        module = entry.get("module", name)
        order = list(declared_by(f"tasks.{module}")["PARAMETERS"]) if module in available("tasks") else []
        given = entry.get("series", {})
        places = {axis: order.index(axis) if axis in order else -1 for axis in given}
        axes = {
            axis: list(range(1, given[axis] + 1)) if isinstance(given[axis], int) else given[axis]
            for axis in sorted(given, key=places.__getitem__)
        }
        rest = {key: value for key, value in entry.items() if key != "series"}
        single = rest if not axes else {"module": rest.get("module", name)} | rest
        series[name] = []
        for values in itertools.product(*axes.values()):
            member = "_".join([name, *(f"{axis}{value}" for axis, value in zip(axes, values, strict=True))])
            written = single | dict(zip(axes, values, strict=True))
            if member in tasks:
                other = next(other for other, members in series.items() if member in members)
                problems.append(f"tasks: {other!r} and {name!r} both make a task {member!r}; rename one of them")
            tasks[member] = written
            series[name].append(member)
    studies = copy.deepcopy(config["studies"])
    for study in studies.values():
        for figure in study["figures"].values():
            grids = [(place, one) for place, grid in enumerate(figure["grids"]) for one in _single_grids(grid, series)]
            figure["places"], figure["grids"] = ([pair[index] for pair in grids] for index in (0, 1))
    sizes = config["pack_size"]
    sizes = {member: sizes[name] for name in series if name in sizes for member in series[name]} | sizes
    archived = {"figures": "all", "data": False} | config.get("archive", {})
    return config | {"tasks": tasks, "studies": studies, "pack_size": sizes, "archive": archived}, problems
