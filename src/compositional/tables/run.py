"""The cost of a run, from its run.json: seconds of training and the number of steps taken.

Runs of one family train together: a run's seconds are those of its pack, without evaluation during training, divided by the
number of runs in the pack. They depend on the machine, on its other load, and on how many runs share a pack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from compositional.runs import Run

SOURCE = "run.json"


def collect(sources: dict[Run, Path]) -> Iterator[tuple[Run, str, str, float]]:
    """Rows (run, split, metric, value)."""
    for run, path in sources.items():
        described = json.loads(path.read_text(encoding="utf-8"))
        yield run, "train", "steps", described["steps"]
        yield run, "train", "wall_seconds", described["wall_seconds"]
