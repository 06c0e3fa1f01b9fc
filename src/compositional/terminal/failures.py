"""The end of a failed build: each failed job with its error, its log, and the command that runs it alone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from itertools import dropwhile
from pathlib import Path
from typing import Any

TRACEBACK = "Traceback (most recent call last):"
CLOCKS = 30.0  # seconds by which the clocks of two machines may differ
SILENT = "it ended"  # the beginning of an error that is in no log
AGAIN = "Repeat the command to resume: finished results are kept."


def no_slurm() -> str | None:
    """Why no jobs can be submitted to Slurm from here; None if they can."""
    try:
        done = subprocess.run(["sinfo", "--noheader"], capture_output=True, encoding="utf-8", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "there is no sinfo on the PATH" if isinstance(error, FileNotFoundError) else str(error)
    else:
        if not done.returncode:
            return None
        why = " ".join(done.stderr.split()[:30])
    return (
        f"The profile submits jobs to Slurm, which does not answer here: {why}. Run this on a host of your cluster "
        "(docs/slurm.md), or leave out the profile"
    )


def error_in(log: Path, since: float = 0.0) -> str:
    """The error at the end of a job's log: type and message; a sentence if the log ends without an error.

    Args:
        since: when the job began, in seconds since the epoch. An older log belongs to an earlier job.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace") if log.stat().st_mtime > since - CLOCKS else None
    except OSError:
        text = None
    if text is None:
        return f"{SILENT} before it wrote a log; Snakemake's log is the latest file in .snakemake/log"
    _, found, trace = text.rpartition(TRACEBACK)
    lines = [line for line in (trace if found else text).splitlines() if line.strip()]
    # A traceback's own lines are indented. From the first line on that is not, it is the error.
    message = list(dropwhile(lambda line: line.startswith(" "), lines))
    if found and message:
        # Without the modules that an error's type is in, as on the terminal.
        return "\n".join([re.sub(r"^(?:\w+\.)+(?=\w+:)", "", message[0]), *message[1:]])
    last = f"; its last line is: {lines[-1].strip()}" if lines else ""
    return f"{SILENT} without an error message, like a job that is killed or out of memory{last}"


def reason(message: str | None) -> str:
    """What an executor such as Slurm's says about a job that failed, without the command that submitted the job."""
    said = str(message or "")
    for rest in ("\n    sbatch call:", "For further error details"):
        said = said.partition(rest)[0]
    return said.strip()


def error_of(job: dict[str, Any]) -> str:
    """The error of a failed job: from its log or, if that has none, from the executor."""
    error = error_in(Path(str(job["log"][0]) if job["log"] else "none"), job["since"])
    return f"{SILENT}: {job['reason']}" if error.startswith(SILENT) and job.get("reason") else error


def target_of(job: dict[str, Any]) -> str:
    """The target that makes a job alone: the rule of a pack, the first file of any other job."""
    # Snakemake's events mark files that a job may update.
    return str(job["output"][0]).removesuffix(" (update)") if job["wildcards"] else str(job["rule_name"])


def options_of(overlays: Iterable[Path], root: Path) -> str:
    """The options of a printed command that repeats a part of this call. In a folder other than the repository's, `root`, paths
    are absolute, so that the command works in any folder."""
    here = Path.cwd()
    words = [] if here == root.resolve() else ["--snakefile", str(root / "Snakefile"), "--directory", str(here)]
    files = [str(path.resolve()) if words else os.path.relpath(path) for path in overlays]
    return shlex.join([*words, *(["--configfile", *files] if files else [])])


def summary(failed: Iterable[dict[str, Any]], done: int, total: int, options: str) -> str:
    """The summary at the end of a build.

    Args:
        failed: jobs, with `rule_name`, `rule_msg`, `wildcards`, `output` and `log` from Snakemake's events, and `since` as for
            `error_in`.
        done: number of jobs that succeeded; total: number of all jobs.
        options: command-line options of the call, which are added to printed commands.
    """
    failed = list(failed)
    if not failed:
        return f"Stopped after {done} of {total} jobs. {AGAIN}"
    lines = [f"{len(failed)} of {total} jobs failed, {done} succeeded."]
    for job in failed:
        log, error = ", ".join(map(str, job["log"] or ["none"])), error_of(job).replace("\n", "\n  ")
        command = f"snakemake {target_of(job)} {options}".strip()
        lines += ["", str(job["rule_msg"] or job["rule_name"]), f"  {error}", f"  log: {log}", f"  alone: {command}"]
    return "\n".join([*lines, "", AGAIN])
