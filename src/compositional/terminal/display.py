"""What a build shows: one bar on a terminal, plain lines in a file, and at the end what failed.

It listens to Snakemake's logger, as its plugins for loggers do, and hides what Snakemake itself would show; all of that is in
.snakemake/log. Where a call says how much Snakemake is to show (--quiet, --verbose, --printshellcmds) or has another logger,
Snakemake shows it, and only what failed is repeated.
"""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from compositional.planning.packs import Pack
from compositional.terminal import failures, progress
from compositional.terminal.costs import Costs, words
from compositional.terminal.progress import Task

HANDLER = "DefaultStreamHandler"  # Snakemake's own
TERMINAL_SECONDS, FILE_SECONDS = 1.0, 30.0  # between two looks at the board
# What is shown of Snakemake's plain messages, by their beginnings; of warnings and errors, what is not.
SHOWN = ("Nothing to be done", "SLURM run ID", "Unlocked", "Terminating", "Shutting down", "Trying to restart", "Congratulations")
HIDDEN = (
    "RuleException:\nCalledProcessError in file ",
    "Cannot restore ",
    "Exiting because a job",
    "WorkflowError:\nAt least one job did not complete successfully",
)
BEFORE = ("Config file ", "Workflow has started", "Assuming unrestricted", "Building DAG", "Reasons:")  # where nothing is built
OF_A_JOB = ("rule_name", "rule_msg", "wildcards", "output", "log")  # of what Snakemake tells
MISSING = re.compile(r"No rule to produce (\S+)")


class Display(logging.Handler):
    """Of one call of Snakemake.

    Args:
        logger: Snakemake's. settings: its settings of output.
        nearest: a sentence about a target that nothing makes.
        options: of this call, to stand behind a target.
    """

    def __init__(self, logger: logging.Logger, settings: Any, nearest: Callable[[str], str], options: str) -> None:
        super().__init__()
        self.nearest, self.options = nearest, options
        self.looking = bool(getattr(settings, "dryrun", False))
        asked = [getattr(settings, name, None) for name in ("quiet", "verbose", "printshellcmds", "debug_dag")]
        theirs = next((handler for handler in logger.handlers if handler.name == HANDLER), None)
        # Another program that uses Snakemake shows what it likes.
        self.shows = theirs is not None and not any(asked) and "snakemake" in sys.argv[0]
        self.stats: dict[str, int] = {}
        self.jobs: dict[int, dict[str, Any]] = {}  # by Snakemake's numbers
        self.tasks: dict[str, list[Task]] = {}
        self.build: progress.Build | None = None
        self.bar: Any = None
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.ended = threading.Event()
        self.title = ""
        self.began = time.monotonic()
        if theirs is not None and self.shows:
            theirs.addFilter(self.keeps)
            self.theirs = theirs
        logger.addHandler(self)

    # What Snakemake says itself

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's own handler is to write a record."""
        text = record.getMessage()
        if missing := MISSING.search(text):
            self.say(self.nearest(missing[1]))
            return False
        event = str(getattr(record, "event", None) or "")
        if self.looking:
            if event == "job_info":
                print(f"Job {record.__dict__['jobid']}: {record.__dict__['rule_msg']}", file=sys.stdout)
            first = event == "run_info" and not self.stats  # the table is shown below the jobs, too
            return event != "job_info" and not first and not text.startswith(BEFORE)
        if record.levelno < logging.WARNING:
            kept = text.startswith(SHOWN)
        else:
            kept = event not in ("job_error", "group_error") and not text.startswith(HIDDEN)
        if kept and self.bar:
            self.say(self.theirs.format(record))
            return False
        return kept

    def say(self, text: str) -> None:
        """Write lines above the bar."""
        if self.bar:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    # What Snakemake tells

    def emit(self, record: logging.LogRecord) -> None:
        """Take down what happened to a job."""
        event = str(getattr(record, "event", None) or "")
        told, now = record.__dict__, time.monotonic()
        if event == "run_info":
            self.stats = dict(told.get("stats", {}))
        elif event == "job_info":
            job = self.jobs[told["jobid"]] = {key: told.get(key) for key in OF_A_JOB}
            job |= {"task": self._task(job), "state": "running", "since": time.time()}
            if job["task"]:
                job["task"].began, job["task"].ended = now, None
            self.title = str(job["rule_msg"] or job["rule_name"])
            if self.shows and not self.looking and not self.bar:
                self.say(f"{time.strftime('[%H:%M:%S]')} {self.title}")
        elif event in ("job_finished", "job_error"):
            job = self.jobs.get(told["job_id"] if event == "job_finished" else told["jobid"], {})
            job["state"] = "done" if event == "job_finished" else "failed"
            if event == "job_finished" and job.get("task"):
                job["task"].ended = now

    def _task(self, job: dict[str, Any]) -> Task | None:
        """The job in the plan that this one is: of what it makes, else one of its rule that has not started."""
        tasks = self.tasks.get(job["rule_name"], [])
        made = (job["wildcards"] or {}).values()
        same = [task for task in tasks if task.name in made or len(tasks) == 1]
        return next(iter([*same, *(task for task in tasks if task.began is None)]), None)

    # How far the build is

    def begin(self, packs: list[Pack], results: Path, workers: int) -> None:
        """Show from now on how far a build is.

        Args:
            packs: all that there are. results: the results folder. workers: how many jobs run at once.
        """
        self.tasks = progress.tasks_of(self.stats, packs, results)
        every = [task for tasks in self.tasks.values() for task in tasks]
        for task in every:
            if task.board:
                task.board.unlink(missing_ok=True)  # of an earlier build
        self.build = progress.Build(every, Costs(results), workers)
        if not self.shows:
            return
        if sys.stderr.isatty():
            # With fixed sizes: tqdm shows nothing on a terminal that does not know its own.
            size = {"ncols": _columns(), "nrows": 20}
            self.bar = tqdm(total=1.0, bar_format="|{bar:20}| {desc}", leave=False, file=sys.stderr, **size)
            atexit.register(self.end)
        self.watch.start()

    def _line(self, share: float, seconds: float) -> str:
        """How far the build is, in words."""
        states = [job["state"] for job in [*self.jobs.values()]]
        failed = f", {states.count('failed')} failed" if "failed" in states else ""
        count = f"{states.count('done')} of {self.stats.get('total', len(states))} jobs{failed}"
        return f"{100 * share:.0f} % done ({count}), about {words(seconds)} left"

    def _watch(self) -> None:
        while self.build and not self.ended.wait(TERMINAL_SECONDS if self.bar else FILE_SECONDS):
            share, seconds = self.build.estimate(time.monotonic())
            line = self._line(share, seconds)
            if bar := self.bar:
                bar.n, bar.ncols = share, _columns()
                bar.set_description_str(f"{line}; {self.title}")
            else:
                self.say(line)

    def end(self) -> None:
        """Show nothing more."""
        if not self.ended.is_set():
            self.ended.set()
            if self.watch.is_alive():
                self.watch.join()
            if self.bar:
                self.bar.close()
                self.bar = None

    def succeed(self) -> None:
        """Say that a build is done."""
        self.end()
        if self.shows:
            done = sum(job["state"] == "done" for job in self.jobs.values())
            self.say(f"{done} of {self.stats.get('total', done)} jobs done in {words(time.monotonic() - self.began)}")

    def fail(self) -> None:
        """Say which jobs failed, why, where that is written, and how each is made alone."""
        self.end()
        failed = [job for job in self.jobs.values() if job["state"] == "failed"]
        done = sum(job["state"] == "done" for job in self.jobs.values())
        self.say(failures.summary(failed, done, self.stats.get("total", len(self.jobs)), self.options))


def _columns() -> int:
    """Of the terminal, less one, so that no line wraps; a terminal that does not know counts as 80 wide."""
    return shutil.get_terminal_size().columns - 1
