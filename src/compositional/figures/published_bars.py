"""Published values compared with ours, on test examples that occur in training and on others that are held out of it."""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import bars, claims, page, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "about": {"type": "string", "default": "", "description": "what is compared, for the caption"},
    "metrics": {
        "type": "array",
        "items": {"type": "string", "names": "metrics"},
        "default": ["accuracy"],
        "description": "metrics to show, one panel each",
    },
    "groups": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["task", "model"],
                "properties": {
                    "task": {"type": "string", "names": "tasks"},
                    "model": {"type": "string", "names": "models"},
                    "published": {"type": "object", "names": "options.metrics", "additionalProperties": {"type": "number"}},
                },
            },
        },
        "default": {},
        "description": "title of a panel -> {label of a line: its plain runs, and their published values by metric}",
    },
    "claims": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["claim", "of"],
            "properties": {
                "claim": {"type": "string"},
                "of": {"type": "string", "names": "options.groups.*"},
                "than": {"type": "string", "names": "options.groups.*"},
                "metric": {"type": "string", "names": "metrics"},
                "at_least": {"type": "number"},
                "at_most": {"type": "number"},
            },
        },
        "default": [],
        "description": "published claims about the line `of` (minus the line `than`, paired by seed), with bounds that confirm "
        "them",
    },
}
_SPLITS = {bars.LEAK: "in_distribution", bars.HELD_OUT: "test"}


def _values(table: pd.DataFrame, line: dict[str, Any], split: str, metric: str) -> pd.Series:
    """One value per seed, from plain runs."""
    rows = table[(table.task == line["task"]) & (table.model == line["model"]) & (table.regularizer == "none")]
    return style.accuracies(rows, split, metric).set_index("seed").value if len(rows) else pd.Series(dtype=float)


def _verbatim(label: str) -> str:
    """A line's label in a caption. Operators need quotes: reStructuredText reads "+ - *" as items of a list."""
    return label if re.search(r"\w", label) else f"``{label}``"


def _judge(table: pd.DataFrame, lines: dict[str, dict[str, Any]], claim: dict[str, Any]) -> list[str]:
    """The reported claim, and for both ways of testing the measured value and whether the claim holds.

    Raises:
        ValueError: a claim is about a line that is not shown.
    """
    metric = claim.get("metric", "accuracy")
    if unknown := [name for name in (claim["of"], claim.get("than")) if name is not None and name not in lines]:
        raise ValueError(f"published_bars: claims name {', '.join(unknown)}, the lines are {', '.join(lines)}")
    expected = " and ".join(f"{key.replace('_', ' ')} {claim[key]:g}" for key in ("at_least", "at_most") if key in claim)
    than = f" minus {_verbatim(claim['than'])}" if "than" in claim else ""
    found = [f"* reported: {claim['claim']}. Expected: {metric}, {_verbatim(claim['of'])}{than}, {expected}"]
    for name, split in _SPLITS.items():
        values = _values(table, lines[claim["of"]], split, metric)
        if "than" in claim:
            values = values - _values(table, lines[claim["than"]], split, metric)
        bounds = claim.get("at_least", -np.inf), claim.get("at_most", np.inf)
        holds = claims.verdict({"": claims.within(values, *bounds)})
        found.append(f"  - {name.removeprefix('ours, ')}: {style.summary(values, '+' if than else '')}: {holds}")
    return [found[0], "", *found[1:], ""]


def _caption(table: pd.DataFrame, options: dict[str, Any]) -> str:
    lines = {label: line for group in options["groups"].values() for label, line in group.items()}
    text = [
        f"{options['about']} Gray: published. Orange: examples from the training distribution, almost all of which occur in "
        "training, as in the paper's test set. Blue: examples held out of training. Bars are means with 95 % intervals "
        "(Student's t, three seeds or more), dots are seeds. All seeds of a line share one draw of examples, so "
        "intervals and verdicts leave out how much draws differ. The budget is fixed and nothing is chosen on the test set.",
        "",
    ]
    for claim in options["claims"]:
        text += _judge(table, lines, claim)
    for title, group in options["groups"].items():
        text += [f"* {title}", ""]
        for label, line in group.items():
            parts = []
            for metric in options["metrics"]:
                ours = [_values(table, line, split, metric) for split in _SPLITS.values()]
                given = line.get("published", {}).get(metric)
                published = f", published {given:g}" if given is not None else ""
                parts.append(
                    f"{metric} {style.summary(ours[0])} on examples in training{published}, {style.summary(ours[1])} held out"
                )
            text.append(f"  - {_verbatim(label)}: {'; '.join(parts)} ({style.seeds(ours[1])})")
        text.append("")
    return "\n".join(text)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    groups, metrics = options["groups"], options["metrics"]
    heights = [0.5 * len(group) + 0.9 for group in groups.values()]
    figure, grid = plt.subplots(
        len(groups),
        len(metrics),
        figsize=(1.8 + 4.6 * len(metrics), sum(heights) + 0.8),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for panels, (title, group) in zip(grid, groups.items(), strict=True):
        for axes, metric in zip(panels, metrics, strict=True):
            largest = 1.0 if metric == "accuracy" else np.inf
            for place, line in enumerate(group.values()):
                given = line.get("published", {})
                values = {bars.PUBLISHED: pd.Series([given[metric]] if metric in given else [], dtype=float)}
                values |= {name: _values(table, line, split, metric) for name, split in _SPLITS.items()}
                for number, (name, own) in enumerate(values.items()):
                    bars.bar(axes, place + (number - 1) * 0.27, own, name, width=0.27, upright=False, largest=largest)
            axes.set_yticks(range(len(group)), list(group))
            axes.set_ylim(len(group) - 0.5, -0.5)
            axes.set(title=title, xlabel=metric, **({"xlim": (-0.01, 1.03)} if metric == "accuracy" else {}))
            axes.grid(axis="x", color="0.93")
            axes.set_axisbelow(True)
    page.legend(figure, grid.flat, options, style.INTERVAL)
    return figure, _caption(table, options)
