"""Functions compiled by numba for the CPU, whose cache on disk several processes may fill at once."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from numba import njit


def compiled(function: Callable, variant: str = "") -> Callable:
    """`function` compiled without reordering or fusing any operation (numba's default), and kept beside its source.

    numba numbers the files of a cache and takes no lock: two processes that compile at once could give one signature the other's
    code, for good. Here one compiles after the other.

    variant: tells functions apart that are made at one place in the source, such as by the widths that they hold.
    """
    function.__qualname__ += variant
    dispatcher = njit(cache=True, error_model="numpy")(function)
    compile_unlocked, folder = dispatcher.compile, Path(dispatcher.stats.cache_path or "")

    def compile_alone(signature):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "numba.lock").open("w") as lock:
            with suppress(OSError):  # a file system without locks
                fcntl.lockf(lock, fcntl.LOCK_EX)
            return compile_unlocked(signature)

    dispatcher.compile = compile_alone  # type: ignore[method-assign]
    return dispatcher
