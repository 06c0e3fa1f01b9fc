"""How far a training job is: a log with every run's numbers, and a file of its own below results/progress, the board.

What a build shows of all its jobs is made from these files by its main process (compositional.terminal).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from compositional import files

_LATEST = 1000  # rows of a run's history that hold its last record for sure


class Progress:
    """Progress of one pack, counted in steps of all its runs.

    Args:
        log: where every run's numbers go.
        board: the folder of all jobs; name: of this pack's file there, which no other job writes.
        steps: of one run. states: the runs that train. restored: how many are trained already.
        ended: whether a run, given its state, needs no more steps.
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
        """Steps that are not left to do: all of a run that has ended, whether it took them or not."""
        return sum(self.steps if self.ended(state) else state.step for state in self.states)

    def _post(self, done: int) -> None:
        """Leave on the board how far this pack is: steps that are done, and the seconds that were spent on those trained here."""
        mine = {
            "done": done + self.restored * self.steps,
            "trained": done - self.resumed,
            "seconds": time.monotonic() - self.began,
        }
        files.write_json(self.board / f"{self.name}.json", mine)

    def report(self, members: dict) -> None:
        """Log the last record of the runs `members` (states by name), and say on the board how far this pack is."""
        for name, state in members.items():
            # What a model shows of itself is for figures and would drown the rest.
            latest = [row for row in state.history[-_LATEST:] if row[0] == state.step and row[1] != "model"]
            last = [f"{split} {metric} {value:.4g}" for _, split, metric, value in latest]
            diverged = "" if state.diverged_at is None else f" DIVERGED at step {state.diverged_at}"
            self.log.write(f"{name} step {state.step}/{self.steps} {', '.join(last)}{diverged}\n")
        self._post(self._done())
