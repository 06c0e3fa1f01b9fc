"""The scope of a term: its gain over the plain model on several tasks, by what is new in the test set."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, named_runs, page, paired, style, words

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "groups": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["task", "metric"],
            "properties": {"task": {"type": "string", "names": "tasks"}, "metric": {"type": "string", "names": "metrics"}},
        },
        "default": {},
        "description": "what is new -> the task whose test set has it, and its metric, in display order; gains are over the "
        "first method",
    },
    "against": {
        "type": ["array", "null"],
        "items": {"type": "string", "names": "options.groups"},
        "minItems": 2,
        "maxItems": 2,
        "default": None,
        "description": "two groups for a second panel, with their gains on the x-axis and the y-axis; null: none",
    },
}
_Gains = dict[str, dict[str, pd.Series]]  # by method and group, one value per seed, NaN if one of the two runs diverged


def _gains(methods: dict[str, pd.DataFrame], groups: dict[str, dict[str, str]]) -> _Gains:
    """The gains of every method except the first on the test set.

    Raises:
        ValueError: no run has a group's metric.
    """
    plain, *others = methods
    found: _Gains = {method: {} for method in others}
    for group, about in groups.items():
        at = {name: rows[(rows.task == about["task"]) & (rows.metric == about["metric"])] for name, rows in methods.items()}
        if not any(map(len, at.values())):
            raise ValueError(f"reach: groups: {group}: no run of {about['task']} has {about['metric']!r} on its test set")
        for method in others:
            shared = sorted(set(at[method].seed) & set(at[plain].seed))
            found[method][group] = style.gains(at[method], at[plain]).reindex(shared)
    return found


def _caption(gains: _Gains, table: pd.DataFrame, plain: str) -> str:
    lines = [
        f"Gain in accuracy over the run of {plain!r} with the same seed, by what is new in the test set. Small dots are seeds, "
        "large ones means of paired differences with 95 % intervals (Student's t, three seeds or more), on the left cut off at "
        f"-1 and 1. A method gains or loses if this interval excludes 0; the {sum(map(len, gains.values()))} intervals are not "
        "corrected for their number. "
        "The budget is fixed and nothing is chosen on a test set." + style.exposure(table, table),
        "",
    ]
    for method, of in gains.items():
        lines.append(f"* {method}")
        for group, gain in of.items():
            said = paired.conclusion(gain, "gains", "loses", "nothing seen")
            lines.append(f"  - {group}: {style.summary(gain, '+')} ({style.seeds(gain)}): {said}")
    return "\n".join(lines)


def _shades(methods: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The color of every method: that of its regularizer, as in other figures, if this tells the methods apart."""
    names = {method: rows.regularizer.iloc[0] for method, rows in methods.items()}
    if len(set(names.values())) < len(names):
        return dict(zip(names, style.apart(len(names)), strict=True))
    shades = style.distinct_colors(names.values())
    return {method: shades[name] for method, name in names.items()}


def _against(axes: Axes, gains: _Gains, shades: dict[str, Any], across: str, up: str) -> None:
    """One point per method: its gain in one group across, in another one up."""
    for method, of in gains.items():
        (x, wide), (y, high) = ((gain.mean(), style.drawn_interval(gain.dropna().to_numpy())) for gain in (of[across], of[up]))
        both = pd.concat([of[across], of[up]], axis=1).dropna().to_numpy()
        axes.scatter(both[:, 0], both[:, 1], s=8, color=shades[method], alpha=0.35, linewidths=0)
        axes.errorbar(x, y, xerr=wide, yerr=high, color=shades[method], marker="o", markersize=5, capsize=2, elinewidth=1)
    axes.axline((0, 0), slope=1, color="0.7", linestyle=":", linewidth=1, label="equal gains")
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel=f"gain, {across}", ylabel=f"gain, {up}")
    axes.set_aspect("equal", "datalim")


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    methods = style.methods(table[table.split == "test"], options["methods"])
    plain, gains = next(iter(methods)), _gains(methods, options["groups"])
    groups, against = [*options["groups"]], options["against"]
    size = (5.0 + 3.4 * bool(against), max(0.5 * len(groups) + 1.2, 3.2))
    figure, panels = plt.subplots(1, 1 + bool(against), figsize=size, squeeze=False, layout="constrained")
    axes = panels[0, 0]
    shades = _shades({method: methods[method] for method in gains})
    for index, (method, of) in enumerate(gains.items()):
        beside = 0.7 * ((index + 0.5) / len(gains) - 0.5)
        name = words.of_label(method, methods[method], options)
        for place, group in enumerate(groups):
            if len(known := of[group].dropna().to_numpy()):
                intervals.seeds_and_gain(axes, known, place + beside, shades[method], linestyle="", label=name)
    axes.axvline(0, color="0.3", linewidth=0.8, zorder=1, label=f"{plain}, same seed")
    axes.set(xlabel="gain in accuracy", ylim=(len(groups) - 0.5, -0.5))
    axes.set_xlim(*np.clip(axes.get_xlim(), -1.03, 1.03))  # no gain is larger, but an interval may be
    axes.set_yticks(range(len(groups)), groups)
    axes.grid(axis="x", color="0.93")
    axes.set_axisbelow(True)
    if against:
        _against(panels[0, 1], gains, shades, *against)
    page.legend(figure, panels[0], options, style.RUN, style.INTERVAL)
    return figure, _caption(gains, table, plain)
