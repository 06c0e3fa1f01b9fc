"""What is shown, from a table to a figure and its caption. A figure is a module with what `Figure` says.

Diverged runs have no accuracy: a figure draws the others and says that they are missing. What figures share is in `shared/`.
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
    """What a module here defines; what has a default, where it needs that."""

    # The files of every run that its table is made of, one name or several: CSV files, whose rows are taken as they are, and
    # others, of which a module in `tables/` makes rows; or "split": its tasks' examples.
    SOURCE: str | tuple[str, ...]
    # Its options, as JSON schema, each with default and description. "names": "tasks" (models, regularizers) in one, or within
    # one, says that it is such a name, or an object whose keys are: they must be known. "names": "methods" says that an object's
    # values are methods, which the figure's grids must train. Every figure has `labels` and `style`, too.
    PARAMETERS: dict[str, dict[str, Any]]
    # draw(table, options): the figure and its caption, from its tidy table alone; the same table gives the same bytes.
    draw: Callable[[pd.DataFrame, dict[str, Any]], tuple[Drawing, str]]
    # One of its grids at least must have a regularizer.
    REGULARIZED: bool = False
    # No task may have several models.
    ONE_MODEL: bool = False
