"""How long jobs take: by earlier runs in the results folder, else by a table that is shipped, scaled to what this build shows.

The table is written by `python -m compositional.terminal.costs results >> costs.csv`, from the records of a build.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

from compositional.records.places import STAGES

TABLE = Path(__file__).with_suffix(".csv")  # of some figures on an Intel Xeon (Emerald Rapids), some while it had other work, too
START = 1.0  # seconds until a job begins its work: it is a fork of a process that has imported what jobs need
OTHERWISE = 5.0  # seconds of a split, a table or a figure of which nothing is known
LOOKED_AT = 5  # runs of a family whose records are read


def words(seconds: float) -> str:
    """A time that is estimated: "40 s", "7 min", "2.5 h"."""
    if seconds < 57:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


@cache
def shipped() -> dict[tuple[str, str], float]:
    """Stage and name -> seconds: per step of a run ("train"), per run ("evaluate", "represent"), per job ("split")."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        return {(stage, name): float(seconds) for stage, name, seconds in list(csv.reader(stream))[1:]}


def _of_runs(stage: str, folder: Path) -> float | None:
    """By the records of some runs of a family's folder; None if there are none."""
    found = []
    for path in sorted(folder.glob(f"lambda=*/seed=*/{STAGES[stage]}"))[:LOOKED_AT]:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.append(record["wall_seconds"] / (record["steps"] if stage == "train" else 1))
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            continue
    return median(found) if found else None


def _of_split(results: Path, task: str) -> float | None:
    """By the log of the job that made it last."""
    try:
        found = re.search(
            r"^took ([\d.]+) s,", (results / "logs" / "split" / f"{task}.log").read_text(encoding="utf-8"), re.MULTILINE
        )
    except (OSError, ValueError):
        return None
    return float(found[1]) if found else None


def _of_the_like(stage: str, name: str) -> float | None:
    """By the table: of this name, else the median of those most like it, in model, then regularizer, then task."""
    table = {key[1]: seconds for key, seconds in shipped().items() if key[0] == stage}
    if name in table or not table:
        return table.get(name)
    parts = name.split("/")

    def alike(other: str) -> tuple[bool, ...]:
        same = [one == its for one, its in zip(parts, other.split("/"), strict=False)]
        return (*same[1:], *same[:1])

    best = max(map(alike, table))
    return median(seconds for other, seconds in table.items() if alike(other) == best)


class Costs:
    """Seconds of a stage's unit, as in `shipped`, by what is known before a build; results: its folder, only read."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.seconds, self.timed = cache(self._seconds), cache(self._timed)

    def _seconds(self, stage: str, name: str) -> float | None:
        """None: nothing is known. name: of a family or of a task."""
        known = None
        if stage in STAGES:
            known = _of_runs(stage, self.results / "runs" / name)
        elif stage == "split":
            known = _of_split(self.results, name)
        return known if known is not None else _of_the_like(stage, name)

    def _timed(self, model: str) -> bool:
        """Whether training of a model was ever timed, in this results folder or for the table: else its cost is a guess."""
        known = {name.split("/")[1] for stage, name in shipped() if stage == "train"}
        return model in known or any((self.results / "runs").glob(f"*/{model}/*/lambda=*/seed=*/{STAGES['train']}"))


def measured(results: Path) -> Iterator[tuple[str, str, str]]:
    """Rows of the table by what is in a results folder."""
    for stage in STAGES:
        for folder in sorted((results / "runs").glob("*/*/*")):
            if (seconds := _of_runs(stage, folder)) is not None:
                yield stage, str(folder.relative_to(results / "runs")), f"{seconds:.3g}"
    for path in sorted((results / "logs" / "split").glob("*.log")):
        if (seconds := _of_split(results, path.stem)) is not None:
            yield "split", path.stem, f"{seconds:.3g}"


if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows(measured(Path(sys.argv[1])))
