"""Which device a job computes on, and which of a machine's GPUs is its own.

Snakemake's resource gpu only counts. So jobs of one machine agree among themselves: each locks a file that stands for one GPU,
and the operating system gives the lock back when the process ends, however it ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import platform
import tempfile
import time
import warnings
from pathlib import Path
from typing import TextIO

import torch

VARIABLE = "CUDA_VISIBLE_DEVICES"
_POLL_SECONDS = 0.5
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of settings in malloc.h
_held: list[TextIO] = []  # an open file keeps its lock


def visible() -> list[str]:
    """The GPUs that this process may use: those it was given, or else all of the machine."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return [str(index) for index in range(torch.cuda.device_count())]
    names = [name.strip() for name in given.split(",") if name.strip()]
    # Indices end, by CUDA's rule, where one does not exist (-1 hides all). Of names PyTorch is not asked: it cannot count MIG
    # instances without starting CUDA, which would then keep to the first.
    return names if given[:1].isalpha() else names[: torch.cuda.device_count()]


def claim(jobs_per_gpu: int) -> str | None:
    """Keep one visible GPU until this process ends and hide the others; None if none is visible.

    Must come before the first use of CUDA. Waits while every GPU has its `jobs_per_gpu` jobs. Jobs of the same user share the
    locks, whichever folder they run in. Inside a Slurm job only that job's own processes do: between jobs Slurm decides, and
    two of them may call different GPUs by the same number.
    """
    names = visible()
    if not names or _held:
        return names[0] if names else None
    scope = f"job{os.environ['SLURM_JOB_ID']}" if "SLURM_JOB_ID" in os.environ else "host"
    folder = Path(tempfile.gettempdir()) / f"compositional-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        # Every GPU gets its first job before any gets its second.
        for slot in range(jobs_per_gpu):
            for name in names:
                lock = (folder / f"{scope}.{name.replace('/', '_')}.{slot}").open("a")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.close()
                    continue
                _held.append(lock)
                os.environ[VARIABLE] = name
                return name
        time.sleep(_POLL_SECONDS)


def keep_freed_memory() -> None:
    """Let this process reuse the memory of one step in the next, instead of returning it to the system and faulting it in anew.

    By default the C library maps large blocks afresh each time; for packs of convolutional networks that cost more than the
    arithmetic (benchmarks/packed_training.py). Where it has no such settings (it is not GNU's), nothing happens.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def _cuda() -> tuple[bool, str]:
    """Whether PyTorch can use CUDA here, and what it warns of if not, such as a driver that is too old."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    return available, "".join(f"; {' '.join(str(warning.message).split())}" for warning in caught if not available)


def resolve(wanted: str, jobs_per_gpu: int = 1) -> str:
    """ "cpu" or "cuda" for a configured device, made ready for reproducible computation.

    Raises:
        RuntimeError: CUDA was asked for and is not there.
    """
    if wanted != "cpu":
        claim(jobs_per_gpu)
        # Read when CUDA starts: a workspace of fixed size, without which cuBLAS is not deterministic on several streams.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    available, why = _cuda() if wanted != "cpu" else (False, "")
    if wanted == "cuda" and not available:
        raise RuntimeError(
            "device: cuda was asked for, but PyTorch sees no CUDA device on this machine "
            f"({platform.node()}, {VARIABLE}={os.environ.get(VARIABLE, '(not set)')}{why}); ask the scheduler for a GPU, "
            "or set device: cpu (or auto) in the configuration"
        )
    device = "cuda" if available else "cpu"
    if device == "cuda":
        # TensorFloat32 and kernels whose sums have no fixed order would make results depend on luck. An operation that has no
        # other kernel ends the job with its name.
        torch.use_deterministic_algorithms(True)
        # Nothing here reads what it has not written. (The library's types lack this setting.)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    else:
        torch.set_num_threads(1)
        keep_freed_memory()
        # What is imported by now stays: the collector looked through it again and again, for 4 % of a step.
        gc.freeze()
    return device


def describe(device: str) -> str:
    """One line for a job's log: what it computes on, and where."""
    parts = [f"computing on {device}", f"host {os.environ.get('SLURMD_NODENAME', platform.node())}"]
    parts += [f"{name}={os.environ[name]}" for name in ("SLURM_JOB_ID", VARIABLE) if name in os.environ]
    return ", ".join(parts)
