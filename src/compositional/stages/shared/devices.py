"""The device that a job computes on, and which of a machine's GPUs it uses.

Snakemake's resource gpu only counts. Jobs of one machine therefore agree among themselves: each locks a file that stands for one
GPU. The operating system releases the lock when the process ends, however it ends.
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

from compositional.records.surroundings import DEVICES

_POLL_SECONDS = 0.5
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of settings in malloc.h
_held: list[TextIO] = []  # open files, which keep their locks


def visible() -> list[str]:
    """The GPUs that this process may use: those assigned to it, or else all of the machine."""
    given = os.environ.get(DEVICES)
    if given is None:
        return [str(index) for index in range(torch.cuda.device_count())]
    names = [name.strip() for name in given.split(",") if name.strip()]
    # By CUDA's rule, a list of indices ends at the first one that does not exist (-1 hides all). Names are not checked with
    # PyTorch: it cannot count MIG instances without starting CUDA, which would then use only the first one.
    return names if given[:1].isalpha() else names[: torch.cuda.device_count()]


def claim(jobs_per_gpu: int) -> str | None:
    """Reserve one visible GPU until this process ends and hide the others; None if none is visible.

    Call this before the first use of CUDA. It waits while every GPU has `jobs_per_gpu` jobs. All jobs of one user on a machine
    share the locks, whichever folder they run in. Inside a Slurm job, only the processes of that job share them: Slurm divides
    GPUs between its jobs, and two jobs may call different GPUs by the same number.
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
                os.environ[DEVICES] = name
                return name
        time.sleep(_POLL_SECONDS)


def keep_freed_memory() -> None:
    """Let this process reuse the memory of one step in the next, instead of returning it to the system and faulting it in again.

    By default the C library maps large blocks again each time. For packs of convolutional networks this cost more than the
    arithmetic (benchmarks/packed_training.py). C libraries other than GNU's have no such settings and stay as they are.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def _cuda() -> tuple[bool, str]:
    """Whether PyTorch can use CUDA here and, if not, its warnings, such as a driver that is too old."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    return available, "".join(f"; {' '.join(str(warning.message).split())}" for warning in caught if not available)


def resolve(wanted: str, jobs_per_gpu: int = 1) -> str:
    """The device, "cpu" or "cuda", for a configured one, made ready for reproducible computation.

    Raises:
        RuntimeError: CUDA was requested and is unavailable.
    """
    if wanted != "cpu":
        claim(jobs_per_gpu)
        # CUDA reads this when it starts: without a workspace of fixed size cuBLAS is not deterministic on several streams.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    available, why = _cuda() if wanted != "cpu" else (False, "")
    if wanted == "cuda" and not available:
        raise RuntimeError(
            "device: cuda was asked for, but PyTorch sees no CUDA device on this machine "
            f"({platform.node()}, {DEVICES}={os.environ.get(DEVICES, '(not set)')}{why}); ask the scheduler for a GPU, "
            "or set device: cpu (or auto) in the configuration"
        )
    device = "cuda" if available else "cpu"
    if device == "cuda":
        # TensorFloat32 and kernels that sum in no fixed order would make results depend on chance. An operation that has no
        # deterministic kernel stops the job with an error that names it.
        torch.use_deterministic_algorithms(True)
        # No code of this project reads uninitialized memory. (The library's types lack this setting.)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    else:
        torch.set_num_threads(1)
        keep_freed_memory()
        # Imported modules stay in memory. The garbage collector checked them again and again, which cost 4 % of a step.
        gc.freeze()
    return device


def describe(device: str) -> str:
    """One line for a job's log: its device and machine."""
    parts = [f"computing on {device}", f"host {os.environ.get('SLURMD_NODENAME', platform.node())}"]
    parts += [f"{name}={os.environ[name]}" for name in ("SLURM_JOB_ID", DEVICES) if name in os.environ]
    return ", ".join(parts)
