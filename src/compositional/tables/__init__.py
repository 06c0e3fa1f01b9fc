"""Readers: they make table rows from files of runs that are not tables. A reader is a module that defines what `Table` lists.

CSV files of runs need no reader: a table copies their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositional.plugins import available, declarations


@dataclass(frozen=True)
class Table:
    """The contract of a module in this folder. Names with a default are optional."""

    # The file of every run that it reads, such as "run.json"; or "split" for the folders of tasks.
    SOURCE: str
    # collect(sources): rows, each with the run (for "split": the name of the task) and one value per column. sources: the files
    # by run, or the folders by task; a row may depend on several of them.
    collect: Callable[[dict[Any, Path]], Iterable[tuple]]
    # The columns of its rows, after those that name the run or task.
    COLUMNS: tuple[str, ...] = ("split", "metric", "value")


def reader_of(source: str) -> str | None:
    """The module that reads such a file, for example "tables.run" for "run.json"; None if there is none."""
    modules = [f"tables.{name}" for name in available("tables")]
    found = [module for module in modules if declarations(module)["SOURCE"] == source]
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)} both read {source}: only one reader can; add the rows to one of them")
    return found[0] if found else None
