"""How many runs train together: the choice from measurements of this machine or, without any, from a shipped table.

`workflow/calibrate.py` measures the time of a step and the memory for growing packs (`stages.shared.pack_times`). No result
depends on the choice.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from compositional import files
from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.records.provenance import processor

SHIPPED = Path(__file__).with_suffix(".csv")  # written by `benchmarks/pack_sizes.py`, on a machine with two cores
OWN = Path("pack_sizes.csv")  # in the results folder
COLUMNS = ("machine", "task", "model", "regularizer", "runs", "milliseconds", "megabytes")
GPU = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # a driver makes one of them; PyTorch takes seconds to import
ENOUGH = 1.2  # a time at most this many times the shortest is as good: more jobs cost more starts and longer planning
Key = tuple[str, str, str]
Times = dict[int, tuple[float, float]]  # by number of runs: milliseconds per step and run, megabytes of the process


def machine() -> str:
    """What a calibration is valid for."""
    return f"{processor()}, {os.cpu_count()} cores"


def room() -> float:
    """Megabytes of memory per core of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20 / (os.cpu_count() or 1)


def key_of(configuration: Configuration, family: Key) -> Key:
    """What is measured once for a family and all tasks that are like its own: the task's module, the model, the regularizer."""
    return configuration.module("tasks", family[0]).removeprefix("tasks."), *family[1:]


def read(path: Path, own: bool) -> dict[Key, Times]:
    """The measurements in a file; `own`: only those of this machine.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    found: dict[Key, Times] = {}
    here = machine()
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            for where, task, model, regularizer, runs, milliseconds, megabytes in list(csv.reader(stream))[1:]:
                if where == here or not own:
                    found.setdefault((task, model, regularizer), {})[int(runs)] = float(milliseconds), float(megabytes)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {error}. Delete it; make calibrate measures again") from error
    return found


def keep(path: Path, key: Key, times: Iterable[Sequence[object]]) -> None:
    """Put the measurements of a family on this machine into a file, which other calibrations may write at the same time."""
    there = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:] if path.exists() else []
    where = [machine(), *key]
    rows = [row for row in there if row[:4] != where] + [[*where, *map(str, own)] for own in times]
    files.write_csv(path, COLUMNS, rows)


def chosen(times: Times, memory: float) -> int:
    """The largest pack that is about as fast as the fastest, of those that need at most `memory` megabytes."""
    fitting = {runs: own for runs, (own, needed) in times.items() if needed <= memory}
    shortest = min(fitting.values(), default=0.0)
    return max((runs for runs, own in fitting.items() if own <= ENOUGH * shortest), default=min(times))


class PackSizes:
    """The number of runs in a pack, by family. It only reads."""

    def __init__(self, configuration: Configuration, results: Path) -> None:
        self.configuration = configuration
        self.most = configuration.config["pack_size"]
        device = configuration.config["device"]
        measured = device != "cuda"  # what was measured are steps on the CPU
        self.on_cores = device == "cpu" or (device == "auto" and not any(path.exists() for path in GPU))
        self._own = read(results / OWN, own=True) if measured else {}
        self._shipped = read(SHIPPED, own=False) if measured else {}
        self.of = cache(self._of)

    def _of(self, family: Key) -> int:
        """At most the configured number; exactly this number if no family with this model's module was measured."""
        key, most = key_of(self.configuration, family), self.most.get(family[0], self.most["default"])
        times = [self._own[key]] if key in self._own else self._of_the_like(key)
        return min([most, *(chosen(own, room()) for own in times)])

    def _of_the_like(self, key: Key) -> list[Times]:
        """The shipped measurements of what is most similar: in model, then task, then regularizer."""
        module = self.configuration.module("models", key[1])
        related = {other: own for other, own in self._shipped.items() if self.configuration.module("models", other[1]) == module}

        def alike(other: Key) -> tuple[bool, ...]:
            return tuple(key[part] == other[part] for part in (1, 0, 2))

        best = max(map(alike, related), default=())
        return [own for other, own in related.items() if alike(other) == best]
