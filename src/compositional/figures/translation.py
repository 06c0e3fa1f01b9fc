"""Translation: BLEU on a complete test set, for which numbers are published, and on its sentences with a new pair of words."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import named_runs, page, style, words
from compositional.figures.shared import rows as charts

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "against": {
        "type": "object",
        "names": "options.methods",
        "additionalProperties": {"type": "string", "names": "options.methods"},
        "default": {},
        "description": "label of a method -> label of the method that it is compared with, such as a plain run of the same cost",
    },
    "published": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["bleu", "source"],
                "properties": {"bleu": {"type": "number"}, "source": {"type": "string"}},
            },
        },
        "default": {},
        "description": "task -> {system: {bleu, source}}: published BLEU on the complete test set, in percent",
    },
}
_MEMBERS = {"in_distribution": ("whole test set", "o", 0.16), "test": ("its sentences with a new pair of words", "^", -0.16)}
_LOWER, _SIGNATURE = "bleu, lower-cased tokens", "bleu nrefs"


def _values(rows: pd.DataFrame, task: str, member: str, metric: str = "bleu") -> pd.DataFrame:
    return rows[(rows.task == task) & (rows.split == member) & (rows.metric == metric)]


def _summary(values: pd.Series, sign: str = "") -> str:
    """Mean and interval; without the number of seeds, which a line states once, if there is only one."""
    return f"{values.mean():{sign}.3f}" if values.count() == 1 else style.summary(values, sign)


def _method_line(methods: dict[str, pd.DataFrame], label: str, task: str, against: dict[str, str]) -> list[str]:
    """The caption's line about one method on one task, if it has runs there."""
    own = methods[label]
    whole, new = (_values(own, task, member) for member in _MEMBERS)
    if not len(whole):
        return []
    lower = _values(own, task, "in_distribution", _LOWER)
    line = (
        f"  - {label} ({style.seeds(whole.value)}): BLEU {_summary(whole.value)} on the whole test set "
        f"({_summary(lower.value)} on lower-cased tokens), {_summary(new.value)} on sentences with a new pair"
    )
    if (other := against.get(label)) in methods:
        gained = [style.gains(_values(own, task, name), _values(methods[other], task, name)) for name in _MEMBERS]
        if all(map(len, gained)):
            line += f"; gain over {other}: {_summary(gained[0], '+')}, and {_summary(gained[1], '+')} on those"
    return [line]


def _caption(table: pd.DataFrame, methods: dict[str, pd.DataFrame], tasks: list[str], options: dict[str, Any]) -> str:
    """Numbers, all from the table."""
    signatures = sorted({name.partition(" ")[2] for name in table.metric if name.startswith(_SIGNATURE)})
    lines = [
        f"Translation of captions, BLEU in percent on raw text (sacrebleu, {' and '.join(signatures) or 'no signature known'}). "
        "Circles: the complete test set. Triangles: its sentences with an adjective and a noun that are adjacent in no training "
        "caption; there are few, so their BLEU varies by points from seed to seed. Small marks are seeds, bars means with 95 % "
        "intervals (Student's t, three seeds or more). "
        + (
            "Published numbers (open diamonds) are for the complete test set, most of them on lower-cased tokens: another "
            "score, often higher. Compare them with the crosses, ours on lower-cased tokens, whose tokenizer is simpler. "
            if any(task in options["published"] for task in tasks)
            else ""
        )
        + "Gains are over the run of the same seed. No checkpoint is chosen.",
        "",
    ]
    for task in tasks:
        counts = table[(table.task == task) & (table.split == "reference")].drop_duplicates("metric")
        said = ", ".join(
            f"{name.rpartition(': ')[2]} {value:.0f}" for name, value in zip(counts.metric, counts.value, strict=True)
        )
        lines.append(f"* {task}{f' ({said})' if said else ''}")
        for label in methods:
            lines += _method_line(methods, label, task, options["against"])
        lines += [
            f"  - published, {name}: {given['bleu']:.2f} ({given['source']})"
            for name, given in options["published"].get(task, {}).items()
        ]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS.

    Raises:
        ValueError: a run has no BLEU on one of the two sets.
    """
    rows = table[table.metric == "bleu"]
    if lacking := [name for name in _MEMBERS if name not in set(rows.split)]:
        raise ValueError(
            f"translation: no run has bleu on {lacking[0]}; the figure is for tasks that measure it, such as multi30k"
        )
    methods = style.methods(table, options["methods"])
    tasks = sorted(set(rows.task))
    systems = charts.systems(options["published"], tasks)
    names = [words.of_label(label, own, options) for label, own in methods.items()]
    figure, panels = charts.panels(
        len(tasks), names, options.get("style", {}), width=3.0, height=0.36, below=0.8, published=systems, sharex=True
    )
    shades = style.distinct_colors(own.regularizer.iloc[0] for own in methods.values())
    for axes, task in zip(panels, tasks, strict=True):
        for place, own in enumerate(methods.values()):
            shade = shades[own.regularizer.iloc[0]]
            for member, (_, marker, above) in _MEMBERS.items():
                known = _values(own, task, member).value.dropna().to_numpy()
                if len(known):
                    axes.plot(
                        known, [place - above] * len(known), marker, color=shade, alpha=0.6, markersize=4, markeredgewidth=0
                    )
                if len(known) > 1:
                    spread = style.inside(known.mean(), style.drawn_interval(known), 100)
                    axes.errorbar([known.mean()], [place - above], xerr=spread, color=shade, marker="|", markersize=9, capsize=2)
            lower = _values(own, task, "in_distribution", _LOWER).value.dropna()
            if systems and len(lower):
                axes.plot(lower.mean(), place, "x", color=shade, markersize=4.5)  # apart from the circle, which is near
        for place, name in enumerate(systems, len(methods)):
            if given := options["published"].get(task, {}).get(name):
                axes.plot(given["bleu"], place, "D", color="0.45", markerfacecolor="white", markersize=4.5)
        axes.set(title=words.of(task, options), xlabel="BLEU", xlim=(0, None))
        axes.grid(axis="both", color="0.93")
        axes.set_axisbelow(True)
    marks = [
        plt.Line2D([], [], linestyle="", marker=marker, color="0.4", markersize=4, label=name)
        for name, marker, _ in _MEMBERS.values()
    ]
    if systems:
        for marker, label in (("D", "published value (another score)"), ("x", "whole test set, lower-cased tokens")):
            marks.append(plt.Line2D([], [], linestyle="", marker=marker, color="0.45", markerfacecolor="white", label=label))
    page.legend(figure, panels, options, *marks, style.INTERVAL)
    return figure, _caption(table, methods, tasks, options)
