"""What a build prints: one bar on a terminal, plain lines in a file, and at the end what failed.

It listens to Snakemake's logger, like Snakemake's logger plug-ins, and hides Snakemake's own output, all of which is in
.snakemake/log. If a call sets the amount of Snakemake's output (--quiet, --verbose, --printshellcmds) or uses another logger,
Snakemake's output is shown instead, and only the failures are repeated at the end.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from compositional.planning.costs import START, Costs, took, words
from compositional.planning.packs import Pack
from compositional.terminal import commands, failures, progress, refusals
from compositional.terminal.progress import Task

HANDLER = "DefaultStreamHandler"  # the name of Snakemake's own handler
TERMINAL_SECONDS, FILE_SECONDS = 1.0, 30.0  # interval between two readings of the board
# Beginnings of Snakemake's messages: plain ones that are shown, and warnings and errors that are hidden.
SHOWN = (
    "Nothing to be done",
    "SLURM run ID",
    "Unlocked",
    "Terminating",
    "Shutting down",
    "Will exit after finishing",
    "Trying to restart",
    "Congratulations",
)
HIDDEN = (
    "RuleException:\nCalledProcessError in file ",
    "Cannot restore ",
    "Exiting because a job",
    "Restored previous version of ",  # of files that a failed job was to update
    "--keep-incomplete mode is set",
    "WorkflowError:\nAt least one job did not complete successfully",
)
BEFORE = ("Config file ", "Workflow has started", "Assuming unrestricted", "Building DAG", "Reasons:")  # hidden in dry runs
OF_A_JOB = ("rule_name", "rule_msg", "wildcards", "output", "log")  # attributes of Snakemake's events that are kept
INTERRUPTED = "Terminating processes on user request"
MISSING = re.compile(r"No rule to produce (\S+)")
PROTECTED = re.compile(r"Write-protected output files.*?affected files:\s*([^\n]+)", re.DOTALL)


class Display(logging.Handler):
    """The output of one call of Snakemake.

    Args:
        logger: Snakemake's. settings: Snakemake's output settings.
        nearest: returns a sentence about a target that no rule makes.
        options: command-line options of this call, which are added to printed commands.
    """

    def __init__(self, logger: logging.Logger, settings: Any, nearest: Callable[[str], str], options: str) -> None:
        super().__init__()
        self.nearest, self.options = nearest, options
        self.looking = bool(getattr(settings, "dryrun", False))
        asked = [getattr(settings, name, None) for name in ("quiet", "verbose", "printshellcmds", "debug_dag")]
        theirs = next((handler for handler in logger.handlers if handler.name == HANDLER), None)
        # Other programs that use Snakemake control their own output.
        self.shows = theirs is not None and not any(asked) and "snakemake" in sys.argv[0]
        self.stats: dict[str, int] = {}
        self.jobs: dict[int, dict[str, Any]] = {}  # by Snakemake's job numbers
        self.tasks: dict[str, list[Task]] = {}
        self.build: progress.Build | None = None
        self.bar: Any = None
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.ended = threading.Event()
        self.title, self.interrupted = "", False
        self.began = time.monotonic()
        if theirs is not None and self.shows:
            theirs.addFilter(self.keeps)
            self.theirs = theirs
        logger.addHandler(self)

    # Snakemake's own output

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's own handler may write a record."""
        text = record.getMessage()
        if missing := MISSING.search(text):
            self.say(self.nearest(missing[1]))
            return False
        if protected := PROTECTED.search(text):
            self.say(f"{protected[1]} must be made again and is write-protected{refusals.permitting(Path(protected[1]))}")
            return False
        event = str(getattr(record, "event", None) or "")
        if self.looking:
            if event == "job_info":
                commands.put(f"Job {record.__dict__['jobid']}: {record.__dict__['rule_msg']}", sys.stdout)
            first = event == "run_info" and not self.stats  # the same table is shown again below the jobs
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
        """Write lines above the bar. If that fails, the build goes on without them."""
        if self.bar:
            with suppress(OSError):
                self.bar.write(text, file=sys.stderr)
        else:
            commands.put(text, sys.stderr)

    # Events from Snakemake

    def emit(self, record: logging.LogRecord) -> None:
        """Update the state of a job from an event."""
        event = str(getattr(record, "event", None) or "")
        told, now = record.__dict__, time.monotonic()
        self.interrupted |= record.getMessage().startswith(INTERRUPTED)
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
            # Executors know more than the job's log: why a scheduler refused or ended it, and where the scheduler's own log is.
            job |= {"reason": failures.reason(told.get("rule_msg")), "log": told.get("log") or job.get("log")}
            if job["reason"] and self.shows:
                self.say(f"{time.strftime('[%H:%M:%S]')} {job.get('rule_msg') or job.get('rule_name')}: {job['reason']}")
            if event == "job_finished" and (task := job.get("task")):
                task.ended = now
                if seconds := took(Path(str(job["log"][0]))) if job["log"] else None:  # without the time in a scheduler's queue
                    task.began = max(task.began, now - START - seconds)

    def _task(self, job: dict[str, Any]) -> Task | None:
        """The planned job that a started job corresponds to: the one with the same name, else one of its rule not yet started."""
        tasks = self.tasks.get(job["rule_name"], [])
        made = (job["wildcards"] or {}).values()
        same = [task for task in tasks if task.name in made or len(tasks) == 1]
        return next(iter([*same, *(task for task in tasks if task.began is None)]), None)

    # Progress of the build

    def begin(self, packs: list[Pack], costs: Costs, workers: int) -> None:
        """Start to show the progress of a build.

        Args:
            packs: all packs. costs: what is known of their costs before. workers: number of jobs that run at the same time.
        """
        self.tasks = progress.tasks_of(self.stats, packs, costs.results)
        every = [task for tasks in self.tasks.values() for task in tasks]
        for task in every:
            if task.board:
                task.board.unlink(missing_ok=True)  # left by an earlier build
        self.build = progress.Build(every, costs, workers)
        if not self.shows:
            return
        # Standard error may be closed (2>&-). A dumb terminal, such as a buffer of Emacs, cannot replace a line.
        if sys.stderr and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            # Give tqdm fixed sizes: it shows nothing on a terminal that does not report its own.
            size = {"ncols": _columns(), "nrows": 20}
            self.bar = tqdm(total=1.0, bar_format="|{bar:20}| {desc}", leave=False, file=sys.stderr, **size)
            atexit.register(self.end)
        self.watch.start()

    def _line(self, share: float, seconds: float) -> str:
        """The progress of the build in words."""
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
                self.say(f"{time.strftime('[%H:%M:%S]')} {line}")

    def end(self) -> None:
        """Stop showing progress."""
        if not self.ended.is_set():
            self.ended.set()
            if self.watch.is_alive():
                self.watch.join()
            if self.bar:
                self.bar.close()
                self.bar = None

    def succeed(self) -> None:
        """Report that a build is done."""
        self.end()
        if self.shows:
            done = sum(job["state"] == "done" for job in self.jobs.values())
            self.say(f"{done} of {self.stats.get('total', done)} jobs done in {words(time.monotonic() - self.began)}")

    def fail(self) -> None:
        """Report the failed jobs, their errors and logs, and the commands that run each of them alone."""
        self.end()
        failed = [job for job in self.jobs.values() if job["state"] == "failed"]
        if self.interrupted:  # Ctrl-C ends jobs, too
            failed = [job for job in failed if not failures.error_of(job).startswith(failures.SILENT)]
        done = sum(job["state"] == "done" for job in self.jobs.values())
        self.say(failures.summary(failed, done, self.stats.get("total", len(self.jobs)), self.options))


def _columns() -> int:
    """Columns of the terminal minus one, so that no line wraps; 80 columns are assumed if the terminal does not report them."""
    return shutil.get_terminal_size().columns - 1
