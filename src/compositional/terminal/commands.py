"""What programs do at a terminal: they write, ask, and run other programs. This module imports no package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

STOPPED = 130  # the exit status of a program that Ctrl-C ended


def put(text: str, stream: TextIO | None) -> None:
    """Write a line. If that fails, as in a log on a full disk or a pipe whose reader has ended (`| head`), go on without it."""
    with suppress(OSError):
        try:
            print(text, file=stream, flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())  # or Python writes it again when it ends


def agreed(question: str) -> bool:
    """Whether the user answers yes; no, if there is no answer."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print("\nThere is no answer: --yes answers yes (make: OPTIONS=--yes).", file=sys.stderr)
        return False


def run(command: list[str], environment: Mapping[str, str], folder: Path = Path()) -> int:
    """The exit status of a program that reads the same Ctrl-C as this one.

    Raises:
        KeyboardInterrupt: after the program has ended. `subprocess.run` would kill it a quarter of a second after Ctrl-C, and
            Snakemake needs longer to end its jobs and to remove its lock.
    """
    with subprocess.Popen(command, env=environment, cwd=folder) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()  # until Ctrl-C is pressed again
            raise
