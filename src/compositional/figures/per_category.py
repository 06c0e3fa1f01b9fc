"""Accuracy by category of the test set: where a regularizer helps, and where it does not."""

from __future__ import annotations

import itertools
import re
import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, named_runs, page, style, words

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "groups": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "default": {},
        "description": "label -> categories shown first, in this order; the others are grouped by the part before the slash",
    },
    "published": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}},
        },
        "default": {},
        "description": "task -> {system: {category: published accuracy}}",
    },
}
_CATEGORY = "accuracy of "  # followed by the category's name
_PUBLISHED = "Ds^v"  # one mark per system


def _order(categories: list[str], groups: dict[str, list[str]]) -> tuple[list[str], list[int]]:
    """Categories in order, and the places where new blocks begin: the groups, then the rest by the part before "/".

    Numbers in names are sorted as numbers.
    """

    def natural(name: str) -> list:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]

    blocks = [[name for name in own if name in categories] for own in groups.values()]
    rest = sorted(set(categories) - {name for own in groups.values() for name in own}, key=natural)
    # "a" belongs to "a/b"; categories without parts form one block.
    parents = [name.split("/")[0] for name in rest]
    kinds = [parent if any(name.startswith(f"{parent}/") for name in rest) else "" for parent in parents]
    blocks += [[name for name, own in zip(rest, kinds, strict=True) if own == kind] for kind in dict.fromkeys(kinds)]
    blocks = [block for block in blocks if block]
    return [name for block in blocks for name in block], list(np.cumsum([len(block) for block in blocks])[:-1])


def _labels(names: list[str], begins: list[int], options: dict[str, Any]) -> list[str]:
    """Words for categories. The common part of a block's names is only in the label of its first category."""
    found = [words.of_category(name, options) for name in names]
    for begin in begins:
        parent, has_parts, _ = names[begin].partition("/")
        if has_parts:
            found[begin] = f"{words.of_category(parent, options)}: {found[begin]}"
        elif any(name.startswith(f"{parent}/") for name in names):
            found[begin] = f"{found[begin]}: all"
    return [textwrap.fill(label, 44) for label in found]


def _counts(rows: pd.DataFrame) -> str:
    """The number of seeds of a method, for the legend; "3 to 5 seeds" if tasks differ."""
    counts = rows.groupby("task").seed.nunique()
    few, many = counts.min(), counts.max()
    return f"{few} seed{'' if few == 1 else 's'}" if few == many else f"{few} to {many} seeds"


def _looks(parts: dict[str, pd.DataFrame]) -> dict[str, tuple[Any, Any]]:
    """Color and mark of every method: those of its regularizer and of its model, if these tell the methods apart."""
    keys = {method: (own.model.iloc[0], own.regularizer.iloc[0]) for method, own in parts.items()}
    if len(set(keys.values())) < len(keys):
        return {method: (shade, "|") for method, shade in zip(parts, style.apart(len(parts)), strict=True)}
    models = list(dict.fromkeys(model for model, _ in keys.values()))
    marks = {model: style.marker_of(place) if place else "|" for place, model in enumerate(models)}
    shades = style.distinct_colors(regularizer for _, regularizer in keys.values())
    return {method: (shades[regularizer], marks[model]) for method, (model, regularizer) in keys.items()}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS.

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
    looks = _looks(parts)
    # The panels are below each other on one page, because the names are long.
    heights = [len(names) * (0.034 * len(parts) + 0.11) + 0.7 for names, _ in placed.values()]
    figure, panels = plt.subplots(
        len(tasks), 1, figsize=(6.5, sum(heights) + 0.5), height_ratios=heights, squeeze=False, layout="constrained"
    )
    lines = [
        "Test accuracy by category. Dots are seeds, bars means with 95 % intervals (Student's t, three seeds or more, cut off at "
        "0 and 1)"
        + ", crosses runs that diverged and are not averaged" * any(own.value.isna().any() for own in parts.values())
        + ". Numbers: means over seeds."
        + (" Open marks are published values." if options["published"] else "")
        + style.exposure(pd.concat(parts.values()), table),
        "",
    ]
    for axes, task in zip(panels[:, 0], tasks, strict=True):
        names, begins = placed[task]
        lines.append(f"* {task}")
        for index, (method, all_rows) in enumerate(parts.items()):
            own = all_rows[all_rows.task == task]
            offset = 0.8 * ((index + 0.5) / len(parts) - 0.5)
            name = f"{words.of_label(method, all_rows, options)} ({_counts(all_rows)})"
            for place, category in enumerate(names):
                values = own[own.category == category].value.to_numpy()
                if len(values):
                    shade, mark = looks[method]
                    intervals.seeds_and_mean(
                        axes, values, place + offset, shade, height=0.1 / len(parts), name=name, size=7, mark=mark
                    )
            means = own.groupby("category").value.mean().reindex(names).dropna()
            if len(own):
                shown = ", ".join(f"{category} {value:.3f}" for category, value in means.items()) or "nothing known"
                lines.append(f"  - {method} ({style.seeds(own.groupby('seed').value.mean())}): {shown}")
        for mark, (system, values) in zip(itertools.cycle(_PUBLISHED), options["published"].get(task, {}).items(), strict=False):
            known = {names.index(category): value for category, value in values.items() if category in names}
            style_of = {"color": "0.35", "markerfacecolor": "white", "markersize": 4, "zorder": 2}
            axes.plot([*known.values()], [*known], mark, **style_of, label=f"{system} (published)")
            lines.append(
                f"  - published, {system}: " + ", ".join(f"{name} {words.published(value)}" for name, value in values.items())
            )
        for begin in begins:
            axes.axhline(begin - 0.5, color="0.6", linewidth=0.8)
        axes.set(title=words.of(task, options), xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="accuracy")
        axes.set_yticks(range(len(names)), _labels(names, [0, *begins], options))
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
    page.legend(figure, panels[:, 0], options, style.RUN, style.INTERVAL)
    return figure, "\n".join(lines)
