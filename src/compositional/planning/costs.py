"""How long jobs take: estimated from earlier runs in the results folder, else from a table that is part of the project.

The table is written by `python -m compositional.planning.costs results >> costs.csv`, from the records of a build. For models
whose runs take hours, it has the time of a step that `make calibrate` measures.
"""

from __future__ import annotations

import csv
import heapq
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from statistics import median

from compositional.records.places import STAGES

TABLE = Path(__file__).with_suffix(".csv")  # measured on an Intel Xeon (Emerald Rapids) and an AMD EPYC, partly under other load
START = 1.0  # seconds until a job begins its work; it is forked from a process that has imported the libraries
OTHERWISE = 5.0  # seconds of a split, table or figure that was never timed
LOOKED_AT = 5  # number of runs per family whose records are read


def words(seconds: float) -> str:
    """An estimated time in words: "40 s", "7 min", "2.5 h"."""
    if seconds < 57:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def until_the_last_ends(jobs: Iterable[float], workers: int) -> float:
    """Seconds until jobs of these durations have ended. In this order, each starts on the worker that becomes free first."""
    ends = [0.0] * workers
    for seconds in jobs:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


@cache
def shipped() -> dict[tuple[str, str], float]:
    """Stage and name -> seconds: per step of a run ("train"), per run ("evaluate", "represent"), per job ("split")."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        return {(stage, name): float(seconds) for stage, name, seconds in list(csv.reader(stream))[1:]}


def _of_runs(stage: str, folder: Path) -> float | None:
    """The cost according to the records of some runs in a family's folder; None if there are none."""
    found = []
    for path in sorted(folder.glob(f"lambda=*/seed=*/{STAGES[stage]}"))[:LOOKED_AT]:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.append(record["wall_seconds"] / (record["steps"] if stage == "train" else 1))
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            continue
    return median(found) if found else None


def took(log: Path) -> float | None:
    """How long the last job that wrote this log worked; None if there is no log, or if the job has not ended."""
    try:
        found = re.search(r"^took ([\d.]+) s,", log.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return float(found[1]) if found else None


def _of_split(results: Path, task: str) -> float | None:
    """The cost of a split according to the log of the last job that made it; None if there is no log."""
    return took(results / "logs" / "split" / f"{task}.log")


def _of_the_like(stage: str, name: str) -> float | None:
    """The cost of this name in the table, or the median cost of the most similar names: in model, then in the beginning of the
    task's name, which names its data, then in regularizer."""
    table = {key[1]: seconds for key, seconds in shipped().items() if key[0] == stage}
    if name in table or not table:
        return table.get(name)
    task, *method = name.split("/")

    def alike(other: str) -> tuple[bool, int, bool]:
        its_task, *its_method = other.split("/")
        words_of_both = zip(task.split("_"), its_task.split("_"), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], words_of_both))
        return (method[:1] == its_method[:1], shared, method[1:] == its_method[1:])  # splits have no method

    likeness = {other: alike(other) for other in table}
    best = max(likeness.values())
    return median(seconds for other, seconds in table.items() if likeness[other] == best)


class Costs:
    """Seconds per unit of a stage, as in `shipped`, from what is known before a build. results: the results folder; only read."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.seconds, self.timed = cache(self._seconds), cache(self._timed)

    def _seconds(self, stage: str, name: str) -> float | None:
        """name: of a family or a task. None if nothing is known."""
        known = None
        if stage in STAGES:
            known = _of_runs(stage, self.results / "runs" / name)
        elif stage == "split":
            known = _of_split(self.results, name)
        return known if known is not None else _of_the_like(stage, name)

    def _timed(self, model: str) -> bool:
        """Whether a model's training was ever timed, in this results folder or for the table. Otherwise its cost is a guess."""
        known = {name.split("/")[1] for stage, name in shipped() if stage == "train"}
        return model in known or any((self.results / "runs").glob(f"*/{model}/*/lambda=*/seed=*/{STAGES['train']}"))


def measured(results: Path) -> Iterator[tuple[str, str, str]]:
    """Rows of the table, from the contents of a results folder."""
    for stage in STAGES:
        for folder in sorted((results / "runs").glob("*/*/*")):
            if (seconds := _of_runs(stage, folder)) is not None:
                yield stage, str(folder.relative_to(results / "runs")), f"{seconds:.3g}"
    for path in sorted((results / "logs" / "split").glob("*.log")):
        if (seconds := _of_split(results, path.stem)) is not None:
            yield "split", path.stem, f"{seconds:.3g}"


if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows(measured(Path(sys.argv[1])))
