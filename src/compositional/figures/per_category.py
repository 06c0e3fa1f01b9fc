"""Accuracy by category of the test set: where a regularizer helps, and where it stops."""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import style, words

SOURCE = "metrics.csv"
PARAMETERS = words.PARAMETERS | {
    "methods": {
        "type": "object",
        "names": "methods",
        "additionalProperties": {
            "type": ["string", "null"],
            "pattern": "^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*/lambda=[0-9][0-9.e+-]*$",
        },
        "default": {},
        "description": "label -> <model>/<regularizer>/lambda=<number>, in the order to show (null: left out); empty: all",
    },
    "groups": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "default": {},
        "description": "label -> categories: shown first, in this order; the others are grouped by what stands before a slash",
    },
}
_CATEGORY = "accuracy of "  # and the category's name


def _order(categories: list[str], groups: dict[str, list[str]]) -> tuple[list[str], list[int]]:
    """Categories in order, and where a new block begins: the groups, then the rest by what stands before "/".

    Numbers in names count as numbers.
    """

    def natural(name: str) -> list:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]

    blocks = [[name for name in own if name in categories] for own in groups.values()]
    rest = sorted(set(categories) - {name for own in groups.values() for name in own}, key=natural)
    # "a" belongs to "a/b"; what has no parts stands together.
    parents = [name.split("/")[0] for name in rest]
    kinds = [parent if any(name.startswith(f"{parent}/") for name in rest) else "" for parent in parents]
    blocks += [[name for name, own in zip(rest, kinds, strict=True) if own == kind] for kind in dict.fromkeys(kinds)]
    blocks = [block for block in blocks if block]
    return [name for block in blocks for name in block], list(np.cumsum([len(block) for block in blocks])[:-1])


def _counts(rows: pd.DataFrame) -> str:
    """How many seeds of a method there are, for the legend; "3 to 5 seeds" where tasks differ."""
    counts = rows.groupby("task").seed.nunique()
    few, many = counts.min(), counts.max()
    return f"{few} seed{'' if few == 1 else 's'}" if few == many else f"{few} to {many} seeds"


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options as in PARAMETERS.

    Raises:
        ValueError: no metric names a category.
    """
    rows = table[(table.split == "test") & table.metric.str.startswith(_CATEGORY)]
    rows = rows.assign(category=rows.metric.str.removeprefix(_CATEGORY))
    if rows.empty:
        raise ValueError(f"per_category: no metric of the test set begins with {_CATEGORY!r}")
    parts = style.methods(rows, options["methods"])
    tasks = sorted(set(rows.task))
    placed = {task: _order(list(dict.fromkeys(rows[rows.task == task].category)), options["groups"]) for task in tasks}
    shades = dict(zip(parts, style.shades(len(parts), 0, 0.8), strict=True))
    height = max(len(names) for names, _ in placed.values()) * (0.055 * len(parts) + 0.12) + 1.4
    longest = max(len(name) for names, _ in placed.values() for name in names)
    width = max(4.6, 2.8 + 0.085 * longest)  # names take their room from the figure, not from the bars
    figure, panels = plt.subplots(1, len(tasks), figsize=(width * len(tasks), height), squeeze=False, layout="constrained")
    lines = [
        "Accuracy on the members of test by category. Dots are seeds, bars means with 95 % intervals (Student's "
        "t, from three seeds on, drawn only as far as 0 and 1), crosses runs that diverged and are not averaged. Numbers: means "
        "over seeds." + style.swaps_words(pd.concat(parts.values()), table),
        "",
    ]
    for axes, task in zip(panels[0], tasks, strict=True):
        names, begins = placed[task]
        lines.append(f"* {task}")
        for index, (method, all_rows) in enumerate(parts.items()):
            own = all_rows[all_rows.task == task]
            offset = 0.8 * ((index + 0.5) / len(parts) - 0.5)
            name: str | None = f"{method} ({_counts(all_rows)})"
            for place, category in enumerate(names):
                values = own[own.category == category].value.to_numpy()
                if len(values):
                    style.seeds_and_mean(axes, values, place + offset, shades[method], height=0.1 / len(parts), name=name, size=7)
                    name = None  # one entry of the legend
            means = own.groupby("category").value.mean().reindex(names).dropna()
            if len(own):
                shown = ", ".join(f"{category} {value:.3f}" for category, value in means.items()) or "nothing known"
                lines.append(f"  - {method} ({style.seeds(own.groupby('seed').value.mean())}): {shown}")
        for begin in begins:
            axes.axhline(begin - 0.5, color="0.6", linewidth=0.8)
        axes.set(title=words.of(task, options), xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="accuracy")
        axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
    handles, labels = style.legend_entries(panels[0])
    figure.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=min(3, len(labels)))
    return figure, "\n".join(lines)
