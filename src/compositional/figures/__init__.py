"""Figures: from a table to a drawing and its caption. A figure is a module that defines what `Figure` lists.

Diverged runs have no accuracy: a figure draws the others and reports how many are missing. `shared/` holds code in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Figure:
    """The contract of a module in this folder. Names with a default are optional."""

    # The files of every run that its table is made from, one name or several: CSV files, whose rows are copied, and other files,
    # from which a module in `tables/` makes rows; or "split": the examples of its tasks.
    SOURCE: str | tuple[str, ...]
    # Its options, as JSON schemas, each with a default and a description. "names": "tasks" (or models, regularizers) in an
    # option, or in a part of one, means that its text is such a name, or that the keys of its object are; the names must exist.
    # "names": "methods" means that the values of its object are methods, which the figure's grids must train. "metrics" and
    # "representations" are names of these; "options.groups" those in the option `groups`, and "options.groups.*" those one level
    # below. Every figure also has the options `labels` and `style`.
    PARAMETERS: dict[str, dict[str, Any]]
    # draw(table, options): the figure and its caption, from its tidy table alone; equal tables give equal bytes.
    draw: Callable[[pd.DataFrame, dict[str, Any]], tuple[Drawing, str]]
    # At least one of its grids must have a regularizer.
    REGULARIZED: bool = False
    # Each task may have only one model.
    ONE_MODEL: bool = False
