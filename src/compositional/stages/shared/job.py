"""The frame around a job's script: errors go to its log in full and to the terminal in one line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from compositional.records.fingerprint import of_script


@contextmanager
def logged(path: str, code: dict[str, Any] | None = None) -> Iterator[TextIO]:
    """Open a job's log; on an error write the traceback there, the message to the terminal, and end the job.

    code: what the job was planned with, its `script`, the `modules` that it loads by name, and their `fingerprint`. If someone
    has edited these since, the job ends before it does anything: what it made would pass for the old code's.
    """
    log = Path(path)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", buffering=1) as stream:
        stream.truncate(0)
        try:
            if code and of_script(code["script"], code["modules"]) != code["fingerprint"]:
                raise RuntimeError("the code has changed since this build began. Call the same command again")
            yield stream
        except Exception as error:
            print(f"{type(error).__name__}: {error}\n(details in {log})", file=sys.stderr, flush=True)
            with suppress(OSError), stream:  # a full disk takes no log either
                traceback.print_exc(file=stream)
            sys.exit(1)
