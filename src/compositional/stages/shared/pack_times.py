"""The time of a step and the memory of packs of growing size."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import replace

from compositional.stages.shared import devices
from compositional.training.pack import Pack
from compositional.training.problem import Problem, prepare, width_of
from compositional.training.state import fresh_state

SECONDS = 0.3  # of CPU time for each size, at least, and three steps
GAIN = 0.97  # larger packs are tried until two in a row take more than this share of the shortest time so far


def pack_times(problem: Problem, most: int, memory: float) -> Iterator[tuple[int, float, float]]:
    """Number of runs, milliseconds of CPU time for one step of one run, and megabytes of this process, for doubling sizes.

    Nothing is measured for models that compute one run after the other, because no size is faster for them. The shortest of
    several times is taken: other work on the machine only lengthens them. A size that would need more than `memory` megabytes
    is not tried.
    """
    if problem.model.fit or width_of(problem):
        return
    devices.resolve("cpu")
    problem = replace(problem, settings=problem.settings | {"steps": 2**31})
    prepared, strength = prepare(problem), 1.0 if problem.regularizer else 0.0
    runs, shortest, needed, failed = 1, float("inf"), 0.0, 0
    while failed < 2 and runs <= most and 2 * needed <= memory:
        pack, spent = Pack(problem, [fresh_state(problem, seed, strength) for seed in range(runs)], prepared), [0.0]
        pack.advance(1)  # compiles and allocates
        while len(spent) < 4 or sum(spent) < SECONDS:
            began = time.process_time()
            pack.advance(pack.states[0].step + 1)
            spent.append(time.process_time() - began)
        own = 1000 * min(spent[1:]) / runs
        needed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        yield runs, own, needed
        failed = failed + 1 if own > GAIN * shortest else 0
        shortest, runs = min(own, shortest), 2 * runs
        del pack
