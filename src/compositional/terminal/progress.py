"""How far a build is, and how long it will take, computed from the seconds that each job took and will take.

The cost of a unit (a training step, the evaluation of a run) is first assumed to be what it was before (`costs`). As soon as jobs
of this build report their progress, their families use the measured cost, and all other costs are scaled by the same factor.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from compositional.planning.costs import OTHERWISE, START, Costs, until_the_last_ends
from compositional.planning.packs import Pack

FIRST_WORD = 10.0  # seconds of training that must be measured before the measured cost is used
ALMOST = 0.95  # the share shown for a job that takes longer than expected
LAST = ("aggregate", "plot", "manifest", "archive", "report")  # stages that wait for all earlier ones


@dataclass
class Task:
    """One job of a build. units: steps of all its runs, or runs; 0 for jobs that have neither. every: units between reports."""

    stage: str
    name: str  # of its family, or of its result
    units: int = 0
    board: Path | None = None  # file to which a training job writes its progress
    began: float | None = None
    ended: float | None = None
    every: int = 0
    told: tuple[float, int, int] = (0.0, 0, 0)  # the last report on its board
    since: float | None = None  # when this report was first seen


def tasks_of(stats: dict[str, int], packs: list[Pack], results: Path) -> dict[str, list[Task]]:
    """The jobs of a build by their rules.

    Args:
        stats: number of jobs per rule, as reported by Snakemake.
        packs: all packs. results: the results folder; only read.
    """
    found: dict[str, list[Task]] = {}
    needed = [pack for pack in packs if pack.name in stats]
    for pack in needed:
        stage, family, board = pack.content["stage"], "/".join(pack.family), results / "progress" / f"{pack.name}.json"
        training = stage == "train"
        if training and pack.stored:  # its job only writes files
            found[pack.name] = [Task("restore", family)]
            continue
        if training:
            every = len(pack.runs) * pack.content["common"]["family"]["settings"]["record_every"]
            found[pack.name] = [Task(stage, family, pack.steps, board, every=every)]
        else:
            found[pack.name] = [Task(stage, family, len(pack.runs))]
    names = sorted({pack.family[0] for pack in needed}, key=lambda task: ((results / "splits" / task).exists(), task))
    for rule, count in stats.items():
        if rule not in found and rule not in ("all", "total"):
            named = names if rule == "split" else []
            found[rule] = [Task(rule, named[place] if place < len(named) else "") for place in range(count)]
    return found


def read_board(path: Path | None) -> tuple[float, int, int]:
    """The last report of a training job: seconds of training, steps trained in them, and steps done."""
    try:
        told = json.loads(path.read_text(encoding="utf-8")) if path else {}
        return float(told["seconds"]), int(told["trained"]), int(told["done"])
    except (OSError, ValueError, KeyError):
        return 0.0, 0, 0


class Build:
    """The jobs of a build. workers: number of jobs that run at the same time."""

    def __init__(self, tasks: list[Task], costs: Costs, workers: int) -> None:
        self.tasks, self.costs, self.workers = tasks, costs, workers

    def _unit(self) -> dict[tuple[str, str], float]:
        """Seconds of a unit, or of a job without units, by stage and name: those measured in this build or else those known
        before, scaled by one factor."""
        measured: dict[tuple[str, str], tuple[float, int]] = {}  # seconds, units
        for task in self.tasks:
            seconds, units = 0.0, 0
            if task.stage == "train" and task.began is not None:
                seconds, units, _ = task.told
            elif task.units and task.began is not None and task.ended is not None:
                seconds, units = max(0.1, task.ended - task.began - START), task.units
            if units and (seconds > FIRST_WORD or task.ended is not None):
                before = measured.get((task.stage, task.name), (0.0, 0))
                measured[task.stage, task.name] = before[0] + seconds, before[1] + units
        known = {key: self.costs.seconds(*key) for key in {(task.stage, task.name) for task in self.tasks}}
        believed = {key: OTHERWISE if seconds is None else seconds for key, seconds in known.items()}
        expected = sum(believed[key] * units for key, (_, units) in measured.items())
        factor = sum(seconds for seconds, _ in measured.values()) / expected if expected else 1.0
        return {key: seconds * factor for key, seconds in believed.items()} | {
            key: seconds / units for key, (seconds, units) in measured.items()
        }

    def estimate(self, now: float) -> tuple[float, float]:
        """Share of the work that is done, and the seconds that are left."""
        for task in self.tasks:
            if task.began is not None and (report := read_board(task.board)) != task.told:
                task.told, task.since = report, now
        unit, done = self._unit(), 0.0
        left: list[tuple[bool, float]] = []  # whether a job has yet to start, and its remaining seconds
        last: dict[str, float] = {}  # by stage: seconds of the longest job that waits for all others
        for task in self.tasks:
            whole = START + unit[task.stage, task.name] * (task.units or 1)
            share = 0.0
            if task.ended is not None:
                share = 1.0
            elif task.began is not None:
                share = min(ALMOST, (now - task.began) / whole)
                if task.board:  # what it reported, and what it has probably done since then
                    probably = 0.0 if task.since is None else (now - task.since) / whole
                    share = min(1.0, task.told[2] / task.units + min(ALMOST * task.every / task.units, probably))
            done += share * whole
            rest = (1 - share) * whole
            if task.stage in LAST:
                last[task.stage], rest = max(rest, last.get(task.stage, 0.0)), min(rest, last.get(task.stage, 0.0))
            left.append((task.began is None, rest))
        # Running jobs first, then the longest first.
        order = sorted(left, key=lambda one: (one[0], -one[1]))
        ends = until_the_last_ends((rest for _, rest in order), self.workers)
        total = done + sum(rest for _, rest in left) + sum(last.values())
        return done / total if total else 1.0, ends + sum(last.values())
