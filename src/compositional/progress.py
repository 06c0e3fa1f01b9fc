"""Reports of a training job: a log with every run's numbers, and a short line with the time left on the terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from compositional.training import State

TERMINAL_SECONDS = 20


class Progress:
    """Progress of one pack, counted in steps of all its runs."""

    def __init__(self, log: TextIO, steps: int, states: list[State], restored: int) -> None:
        self.log = log
        self.steps, self.states = steps, states
        self.began = self.shown = time.monotonic()
        self.resumed = self._done()
        if restored:
            self.log.write(f"{restored} runs were in the store and are not trained again\n")
        if self.resumed:
            self.log.write(f"going on from checkpoints, {self.resumed} steps were done before\n")

    def _done(self) -> int:
        return sum(self.steps if state.diverged_at is not None else state.step for state in self.states)

    def report(self, members: dict[str, State]) -> None:
        """Log the last record of the runs `members`; now and then say on the terminal how far the pack is."""
        for name, state in members.items():
            last = [f"{split} {metric} {value:.4g}" for step, split, metric, value in state.history if step == state.step]
            diverged = "" if state.diverged_at is None else f" DIVERGED at step {state.diverged_at}"
            self.log.write(f"{name} step {state.step}/{self.steps} {', '.join(last)}{diverged}\n")
        done, total, now = self._done(), self.steps * len(self.states), time.monotonic()
        left = (now - self.began) * (total - done) / max(done - self.resumed, 1)
        family = next(iter(members)).split("/lambda=")[0]
        line = f"{family}: {len(self.states)} runs, {100 * done / total:.0f} %, about {left / 60:.1f} min left"
        self.log.write(line + "\n")
        if now - self.shown > TERMINAL_SECONDS:
            print(line, file=sys.stderr, flush=True)
            self.shown = now
