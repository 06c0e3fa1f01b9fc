"""Tables of runs whose tasks state how much of a word training shows."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from compositional.tables.shared.reading import RUN


def table(runs: Iterable[tuple[str, str, float, float, dict[str, float]]]) -> pd.DataFrame:
    """One seed of `cnn` for each (task, regularizer, lambda, test accuracy, reference values of the task)."""
    rows = []
    for task, regularizer, strength, accuracy, told in runs:
        run = (task, "cnn", regularizer, strength, 0)
        rows.append((*run, "test", "accuracy", accuracy))
        rows += [(*run, "reference", metric, known) for metric, known in told.items()]
    return pd.DataFrame(rows, columns=[*RUN, "split", "metric", "value"])
