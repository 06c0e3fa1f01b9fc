"""The error of a job whose pack needs more memory than a GPU has: it says how many runs would fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from compositional.training.pack import Pack
from compositional.training.problem import Problem, prepare, width_of
from compositional.training.state import fresh_state

ROOM = 0.8  # of the free memory: a recorded step and its warm-up also occupy some
CONTEXT = 1.0  # GiB; CUDA itself takes about as much for each process


def _runs_that_fit(problem: Problem, seed: int) -> int:
    """Estimated from the memory of one step of one run; 0 if not even one fits."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    try:
        Pack(problem, [fresh_state(problem, seed, 0.0)], prepare(problem))._step()
    except torch.OutOfMemoryError:
        return 0
    needed = torch.cuda.max_memory_allocated() - before
    torch.cuda.empty_cache()
    return int(ROOM * torch.cuda.mem_get_info()[0] / max(needed, 1))


@contextmanager
def explained(problem: Problem, seed: int) -> Iterator[None]:
    """Explain what to do if the block runs out of a GPU's memory.

    Args:
        seed: of one of the runs that the block trains.

    Raises:
        RuntimeError: it ran out of memory; the message names `cuda_width`, its value and what would fit.
    """
    try:
        yield
        return
    except torch.OutOfMemoryError:
        asked = width_of(problem)  # do nothing else here: the failed block's memory is freed only after its traceback
    fitting = _runs_that_fit(problem, seed)
    free, total = torch.cuda.mem_get_info()
    others = (total - free - torch.cuda.memory_reserved()) / 2**30
    cure = f"{fitting} would fit: set cuda_width: {fitting} under training: of this task or model, which trains its runs again"
    raise RuntimeError(
        f"the memory of this GPU ({total / 2**30:.0f} GiB) is too small for {asked} runs of "
        f"{problem.task}/{problem.model_name} at once; {cure if fitting else 'not even one fits: use a GPU with more memory'}"
        + (f". Other processes use {others:.0f} GiB: if those are jobs of yours, lower jobs_per_gpu" if others > CONTEXT else "")
    )
