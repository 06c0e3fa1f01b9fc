"""The frame around a job's script: errors go to its log in full and to the terminal in one line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def logged(path: str) -> Iterator[TextIO]:
    """Open a job's log; on an error write the traceback there, the message to the terminal, and end the job."""
    log = Path(path)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", buffering=1) as stream:
        stream.truncate(0)
        try:
            yield stream
        except Exception as error:
            traceback.print_exc(file=stream)
            print(f"{type(error).__name__}: {error}\n(details in {log})", file=sys.stderr, flush=True)
            sys.exit(1)
