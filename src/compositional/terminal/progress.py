"""How far a build is, and how long it will take: every job's seconds, those that are over and those that are left.

What a unit costs (a step of training, the evaluation of a run) is first believed to be what it was before (`costs`). As soon as
jobs of this build have told, their families cost what was measured, and all others are scaled by the same factor.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from pathlib import Path

from compositional.planning.packs import Pack
from compositional.terminal.costs import OTHERWISE, START, Costs

FIRST_WORD = 10.0  # seconds of training that must have been measured before they are believed
ALMOST = 0.95  # a job that takes longer than was believed is so far
LAST = ("aggregate", "plot", "manifest", "archive", "report")  # stages that wait for all that is before them


@dataclass
class Task:
    """One job of a build. units: steps of all its runs, or runs; 0 of jobs that have none."""

    stage: str
    name: str  # of its family, or of what it makes
    units: int = 0
    board: Path | None = None  # where a training job says how far it is
    began: float | None = None
    ended: float | None = None


def tasks_of(stats: dict[str, int], packs: list[Pack], results: Path) -> dict[str, list[Task]]:
    """The jobs of a build by their rules.

    Args:
        stats: how many jobs there are of each rule, as Snakemake says.
        packs: all that there are. results: the results folder, only read.
    """
    found: dict[str, list[Task]] = {}
    needed = [pack for pack in packs if pack.name in stats]
    for pack in needed:
        stage, family, board = pack.content["stage"], "/".join(pack.family), results / "progress" / f"{pack.name}.json"
        training = stage == "train"
        found[pack.name] = [Task(stage, family, pack.steps if training else len(pack.runs), board if training else None)]
    names = sorted({pack.family[0] for pack in needed}, key=lambda task: ((results / "splits" / task).exists(), task))
    for rule, count in stats.items():
        if rule not in found and rule not in ("all", "total"):
            named = names if rule == "split" else []
            found[rule] = [Task(rule, named[place] if place < len(named) else "") for place in range(count)]
    return found


def read_board(path: Path | None) -> tuple[float, int, int]:
    """What a training job has said last: seconds of training, steps taken in them, and steps that are done."""
    try:
        told = json.loads(path.read_text(encoding="utf-8")) if path else {}
        return float(told["seconds"]), int(told["trained"]), int(told["done"])
    except (OSError, ValueError, KeyError):
        return 0.0, 0, 0


class Build:
    """The jobs of a build. workers: how many run at once."""

    def __init__(self, tasks: list[Task], costs: Costs, workers: int) -> None:
        self.tasks, self.costs, self.workers = tasks, costs, workers

    def _believed(self, task: Task) -> float:
        """Seconds of a unit, or of a job without units, before this build told anything."""
        seconds = self.costs.seconds(task.stage, task.name)
        return OTHERWISE if seconds is None else seconds

    def estimate(self, now: float) -> tuple[float, float]:
        """Share of the work that is done, and seconds that are left."""
        told = {id(task): read_board(task.board) for task in self.tasks if task.began is not None}
        measured: dict[tuple[str, str], list[float]] = {}  # seconds, units
        for task in self.tasks:
            seconds, units = 0.0, 0
            if task.stage == "train" and task.began is not None:
                seconds, units, _ = told[id(task)]
            elif task.units and task.began is not None and task.ended is not None:
                seconds, units = max(0.1, task.ended - task.began - START), task.units
            if units and (seconds > FIRST_WORD or task.ended is not None):
                known = measured.setdefault((task.stage, task.name), [0.0, 0])
                known[0], known[1] = known[0] + seconds, known[1] + units
        believed = {(task.stage, task.name): self._believed(task) for task in self.tasks}
        expected = sum(believed[key] * units for key, (_, units) in measured.items())
        factor = sum(seconds for seconds, _ in measured.values()) / expected if expected else 1.0
        unit = {key: seconds * factor for key, seconds in believed.items()}
        unit |= {key: seconds / units for key, (seconds, units) in measured.items()}
        done = 0.0
        left: list[tuple[bool, float]] = []  # whether a job has yet to begin, and its seconds
        last: dict[str, float] = {}  # by stage, of the longest job that waits for all others
        for task in self.tasks:
            whole = START + unit[task.stage, task.name] * (task.units or 1)
            share = 0.0
            if task.ended is not None:
                share = 1.0
            elif task.began is not None:
                elapsed = min(ALMOST, (now - task.began) / whole)
                share = told[id(task)][2] / task.units if task.board else elapsed
            done += share * whole
            rest = (1 - share) * whole
            if task.stage in LAST:
                last[task.stage], rest = max(rest, last.get(task.stage, 0.0)), min(rest, last.get(task.stage, 0.0))
            left.append((task.began is None, rest))
        # Those that run, then the longest first, each to the worker that is free first.
        ends = [0.0] * self.workers
        for _, rest in sorted(left, key=lambda one: (one[0], -one[1])):
            heapq.heapreplace(ends, ends[0] + rest)
        total = done + sum(rest for _, rest in left) + sum(last.values())
        return done / total if total else 1.0, max(ends) + sum(last.values())
