"""Reports of training jobs: a log with every run's numbers, and on the terminal how far the whole build is.

Jobs are separate processes, so each keeps its state in a file of a common folder, the board; the main process lays out there
what there is to do. Whoever speaks next adds everything up.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from compositional import files

TERMINAL_SECONDS = 20
_LATEST = 1000  # rows of a run's history that hold its last record for sure
SILENT_SECONDS = 600  # a job that has not reported for so long, and for twice its own longest silence, is not running


def announce(board: Path, work: dict[str, dict]) -> None:
    """Lay out what a build trains: for every pack its family, runs and steps (summed over its runs)."""
    for old in board.glob("*.json"):
        old.unlink()
    files.write_json(board / "work.json", work)


@dataclass(frozen=True)
class Overall:
    """Of a whole build: runs, the share of them that is trained, seconds left of the families that have begun (None: nothing to
    go by yet), and the number of runs of families that have not: nobody knows yet what these cost."""

    runs: int
    share: float
    seconds: float | None
    unknown: int

    def __str__(self) -> str:
        text = f"training {self.runs} runs: {100 * self.share:.0f} % done"
        if self.seconds is not None:
            text += f", about {self.seconds / 60:.1f} min left"
            text += f" and then {self.unknown} runs of families that have not started" if self.unknown else ""
        return text


def overall(board: Path, now: float) -> Overall:
    """How far all jobs of the build are. A pack that has not started is assumed to cost per step what others of its family do."""
    work = json.loads((board / "work.json").read_text(encoding="utf-8"))
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in board.glob("*.json") if path.stem in work}
    costs = {name: report["seconds"] / report["trained"] for name, report in reports.items() if report["trained"]}
    by_family: dict[str, list[float]] = {}
    for name, cost in costs.items():
        by_family.setdefault(work[name]["family"], []).append(cost)
    runs = sum(pack["runs"] for pack in work.values())
    done = left = 0.0
    unknown = running = 0
    for name, pack in work.items():
        finished = reports.get(name, {"done": 0})["done"]
        done += pack["runs"] * finished / pack["steps"]
        running += finished < pack["steps"] and name in reports and now < reports[name]["expected"]
        if family := by_family.get(pack["family"]):
            left += costs.get(name, sum(family) / len(family)) * (pack["steps"] - finished)
        elif finished < pack["steps"]:
            unknown += pack["runs"]
    return Overall(runs, done / max(runs, 1), left / max(running, 1) if costs else None, unknown)


class Progress:
    """Progress of one pack, counted in steps of all its runs.

    Args:
        log: where every run's numbers go.
        board: the common folder; name: of this pack on it.
        steps: of one run. states: the runs that train. restored: how many are trained already.
        ended: whether a run, given its state, needs no more steps.
    """

    def __init__(
        self, log: TextIO, board: Path, name: str, steps: int, states: list, restored: int, ended: Callable[..., bool]
    ) -> None:
        self.log, self.board, self.name = log, board, name
        self.steps, self.states, self.restored, self.ended = steps, states, restored, ended
        self.began = self.shown = self.reported = time.monotonic()
        self.longest_silence = 0.0
        self.resumed = self._done()
        if restored:
            log.write(f"{restored} runs exist and are not trained again\n")
        if self.resumed:
            log.write(f"resuming from checkpoints, {self.resumed} steps were done before\n")
        self._post(self.resumed, self.began)

    def _done(self) -> int:
        """Steps that are not left to do: all of a run that has ended, whether it took them or not."""
        return sum(self.steps if self.ended(state) else state.step for state in self.states)

    def _post(self, done: int, now: float) -> None:
        """Leave on the board how far this pack is, and by when the next word of it is due."""
        self.longest_silence = max(self.longest_silence, now - self.reported)
        self.reported = now
        mine = {
            "done": done + self.restored * self.steps,
            "trained": done - self.resumed,
            "seconds": now - self.began,
            "expected": time.time() + max(SILENT_SECONDS, 2 * self.longest_silence),
        }
        files.write_json(self.board / f"{self.name}.json", mine)

    def report(self, members: dict) -> None:
        """Log the last record of the runs `members` (states by name); now and then say how far the build is."""
        for name, state in members.items():
            # What a model shows of itself is for figures and would drown the rest.
            latest = [row for row in state.history[-_LATEST:] if row[0] == state.step and row[1] != "model"]
            last = [f"{split} {metric} {value:.4g}" for _, split, metric, value in latest]
            diverged = "" if state.diverged_at is None else f" DIVERGED at step {state.diverged_at}"
            self.log.write(f"{name} step {state.step}/{self.steps} {', '.join(last)}{diverged}\n")
        done, now = self._done(), time.monotonic()
        self._post(done, now)
        if now - self.shown > TERMINAL_SECONDS:
            self.shown = now
            print(self._line(next(iter(members)), done), file=sys.stderr, flush=True)

    def _line(self, example: str, done: int) -> str:
        own = f"{example.split('/lambda=')[0]} {100 * done / (self.steps * len(self.states)):.0f} %"
        try:
            build = overall(self.board, time.time())
        except (OSError, ValueError, KeyError):  # asked for outside a build, or another process is writing
            return f"training: {own}"
        # Runs that exist and are made again, because something changed, are not laid out.
        return f"{build} ({own})" if build.runs else f"training: {own}"
