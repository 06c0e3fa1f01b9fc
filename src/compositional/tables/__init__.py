"""What readers make of runs' files that are no tables themselves. A reader is a module with what `Table` says.

CSV files of runs need none: a table takes their rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositional.plugins import available, declarations


@dataclass(frozen=True)
class Table:
    """What a module here defines; what has a default, where it needs that."""

    # The file of every run that it reads, such as "run.json"; or "split": the folders of tasks.
    SOURCE: str
    # collect(sources): rows, each the run (for "split": the name of the task) and a value per column. sources: a table's files
    # by their run, or folders by their task; a row may depend on several.
    collect: Callable[[dict[Any, Path]], Iterable[tuple]]
    # Of its rows, after those that name the run or task.
    COLUMNS: tuple[str, ...] = ("split", "metric", "value")


def reader_of(source: str) -> str | None:
    """The module here that makes rows of such a file, such as "tables.run" of "run.json"; None: there is none."""
    modules = [f"tables.{name}" for name in available("tables")]
    return next((module for module in modules if declarations(module)["SOURCE"] == source), None)
