"""Functions compiled by numba for the CPU, with a cache on disk that several processes may fill at the same time."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numba
import torch
from numba import njit
from numba.extending import intrinsic
from torch import Tensor

# NUMBA_DISABLE_JIT is meant for debugging a user's own functions. The functions here must be compiled to give the same bits.
numba.config.DISABLE_JIT = 0  # type: ignore[attr-defined]
# The sources of what compiled functions have in common: the options below, and functions that they call.
_SHARED = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*compiled.py")))


def compiled(function: Callable, variant: str = "") -> Callable:
    """`function` compiled without reordering or fusing operations (numba's default), and cached next to its source.

    numba numbers the files of a cache and takes no lock: two processes that compile at the same time could permanently store one
    signature's code under the other. With the lock here, one compiles after the other.

    variant: distinguishes functions that are made at the same place in the source, for example by their constant width.
    """
    # numba finds a function in its cache by its file's time and size, which may stay the same.
    sources = _SHARED + Path(inspect.getfile(function)).read_bytes()
    function.__qualname__ += f"{variant}_{hashlib.sha256(sources).hexdigest()[:12]}"
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


def _fusing(context, left, right, more):
    return left(left, right, more), lambda context, builder, signature, numbers: builder.fma(*numbers)


fused: Callable = intrinsic(_fusing)  # left * right + more, rounded once, of three float32


def is_compiled(values: Tensor) -> bool:
    """Whether tensors like `values` take the functions that are compiled for float32 on the CPU."""
    return values.device.type == "cpu" and values.dtype == torch.float32
