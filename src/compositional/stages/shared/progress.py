"""Progress of a training job: a log with every run's numbers, and a file of its own on the board, the folder results/progress.

The build's main process (compositional.terminal) reads these files and shows the progress of all jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from compositional import files

_LATEST = 1000  # this many rows at the end of a run's history always contain its last record


class Progress:
    """Progress of one pack, counted in steps of all its runs.

    Args:
        log: receives every run's numbers.
        board: the folder that all jobs share; name: of this pack's file in it, which no other job writes.
        steps: of one run. states: the runs that train. restored: number of runs that are already trained.
        ended: tells from a run's state whether it needs no more steps.
    """

    def __init__(
        self, log: TextIO, board: Path, name: str, steps: int, states: list, restored: int, ended: Callable[..., bool]
    ) -> None:
        self.log, self.board, self.name = log, board, name
        self.steps, self.states, self.restored, self.ended = steps, states, restored, ended
        self.began = time.monotonic()
        self.resumed = self._done()
        if restored:
            log.write(f"{restored} runs exist and are not trained again\n")
        if self.resumed:
            log.write(f"resuming from checkpoints, {self.resumed} steps were done before\n")
        self._post(self.resumed)

    def _done(self) -> int:
        """Steps that need not be done any more. A run that has ended counts all of its steps, even if it stopped early."""
        return sum(self.steps if self.ended(state) else state.step for state in self.states)

    def _post(self, done: int) -> None:
        """Write this pack's progress to the board: steps done, steps trained in this job, and the seconds these took."""
        mine = {
            "done": done + self.restored * self.steps,
            "trained": done - self.resumed,
            "seconds": time.monotonic() - self.began,
        }
        files.write_json(self.board / f"{self.name}.json", mine)

    def report(self, members: dict) -> None:
        """Log the last record of the runs `members` (states by name), and update the board."""
        for name, state in members.items():
            # Skip a model's measurements of itself: they are meant for figures and would hide the other numbers.
            latest = [row for row in state.history[-_LATEST:] if row[0] == state.step and row[1] != "model"]
            last = [f"{split} {metric} {value:.4g}" for _, split, metric, value in latest]
            diverged = "" if state.diverged_at is None else f" DIVERGED at step {state.diverged_at}"
            self.log.write(f"{name} step {state.step}/{self.steps} {', '.join(last)}{diverged}\n")
        self._post(self._done())
