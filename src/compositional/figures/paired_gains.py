"""The gain of every term over the plain run of the same seed: on the test set and in distribution, one panel per task."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, page, paired, rows, style, words

SOURCE = "metrics.csv"
REGULARIZED = True
PARAMETERS = {
    "tasks": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "task -> title of its panel, in display order",
    },
    "exposing": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "array", "items": {"type": "string", "names": "regularizers"}},
        "default": {},
        "description": "task -> terms that show test inputs, but not their targets, to the network in training",
    },
}
_SPLITS = {"test": "held out of training", "in_distribution": "in distribution"}


def _lines(table: pd.DataFrame) -> list[tuple[str, float]]:
    """(term, lambda) of every line, in order."""
    rows = table[table.regularizer != "none"][["regularizer", "lambda"]].drop_duplicates()
    return sorted(rows.itertuples(index=False, name=None))


def _caption(table: pd.DataFrame, options: dict[str, Any]) -> str:
    count = len(table[table.regularizer != "none"][["task", "regularizer", "lambda"]].drop_duplicates())
    lines = [
        "Gain in accuracy of every term over the plain run (lambda = 0) of the same seed. Small dots are seeds, large ones means "
        "of paired differences with 95 % intervals (Student's t, three seeds or more): filled for examples held out of "
        f"training, hollow for examples drawn from the training distribution. Of the {count} intervals of each kind, about "
        f"{0.05 * count:.0f} exclude 0 by chance alone; none is corrected for this. All seeds of a task share its examples, so "
        "intervals leave out how much other examples would change a gain. The budget is fixed and nothing is chosen on the test "
        "set.",
        "",
    ]
    for task, title in options["tasks"].items():
        own = table[table.task == task]
        plain = own[own.regularizer == "none"]
        values = {split: style.accuracies(plain, split).value for split in _SPLITS}
        lines += [
            f"* {title}: plain {style.summary(values['test'])} held out, {style.summary(values['in_distribution'])} in "
            f"distribution ({style.seeds(values['test'])})",
            "",
        ]
        categories = sorted({metric for metric in own[own.split == "test"].metric if metric.startswith("accuracy of ")})
        gains = {metric: paired.gains(own, "test", metric) for metric in ("accuracy", *categories)}
        inside = paired.gains(own, "in_distribution")
        for (term, strength), held_out in gains["accuracy"].groupby(["regularizer", "lambda"]):
            by_category = {metric.removeprefix("accuracy of "): _of(gains[metric], term, strength) for metric in categories}
            of = [f"{name} {style.summary(gain, '+')}" for name, gain in by_category.items()]
            said = paired.conclusion(held_out.gain, "helps", "hurts", "no effect seen")
            lost = int(held_out.gain.isna().sum())
            exposes = term in options["exposing"].get(task, [])
            lines.append(
                f"  - {term} {strength:g}: {style.summary(held_out.gain, '+')} held out, {said}"
                + (f" ({lost} of {len(held_out)} pairs of runs diverged)" if lost else "")
                + (" (its exchanges make test inputs)" if exposes else "")
                + (f"; {', '.join(of)}" if of else "")
                + f"; in distribution {style.summary(_of(inside, term, strength), '+')}"
            )
        lines.append("")
    return "\n".join(lines)


def _of(gains: pd.DataFrame, term: str, strength: float) -> pd.Series:
    return gains[(gains.regularizer == term) & (gains["lambda"] == strength)].gain


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    tasks = options["tasks"]
    table = table[table.task.isin(tasks)]
    lines = _lines(table)
    names = [f"{words.of(term, options)}, lambda {strength:g}" for term, strength in lines]
    figure, panels = rows.panels(len(tasks), names, options.get("style", {}), width=2.9, height=0.36, below=0.9, sharex=True)
    shades = style.distinct_colors({term.partition("_")[0] for term, _ in lines})
    for axes, (task, title) in zip(panels, tasks.items(), strict=True):
        for split in _SPLITS:
            gains = paired.gains(table[table.task == task], split)
            filled, beside = split == "test", -0.16 if split == "test" else 0.16
            for place, (term, strength) in enumerate(lines):
                known = _of(gains, term, strength).dropna().to_numpy()
                if len(known):
                    shade = shades[term.partition("_")[0]]
                    face = shade if filled else "white"
                    intervals.seeds_and_gain(axes, known, place + beside, shade, markerfacecolor=face)
        axes.axvline(0, color="0.3", linewidth=0.8, zorder=1, label="the plain run of the same seed")
        axes.set(title=title, xlabel="gain in accuracy")
        axes.grid(axis="x", color="0.93")
        axes.set_axisbelow(True)
    for split, name in _SPLITS.items():  # gray, because each is drawn in every color
        face = "0.4" if split == "test" else "white"
        panels[0].plot([], [], "o", color="0.4", markerfacecolor=face, markersize=5, label=f"mean, {name}")
    page.legend(figure, panels, options, style.RUN, style.INTERVAL)
    return figure, _caption(table, options)
