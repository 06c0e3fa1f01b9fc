"""A run's accuracy by several protocols: last step, brackets repaired, best point on the test set; and published numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, named_runs, page, paired, style, words
from compositional.figures.shared import rows as charts

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "published": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}},
        "default": {},
        "description": "task -> {system: published accuracy}",
    },
}
_LAST, _REPAIRED, _BEST = "accuracy", "accuracy, brackets repaired", "accuracy, best of "  # followed by the number of points
_READINGS = {_LAST: "last step", _REPAIRED: "last step, brackets repaired", _BEST: "best point on the test set"}
_SHADES = {_LAST: "#0072B2", _REPAIRED: "#56B4E9", _BEST: "0.55"}


def _reading(metric: str) -> str | None:
    """The reading that a metric belongs to."""
    return _BEST if metric.startswith(_BEST) else metric if metric in _READINGS else None


def _caption(rows: pd.DataFrame, methods: dict[str, pd.DataFrame], options: dict[str, Any]) -> str:
    """Numbers, all from the table."""
    points = set(rows.metric[(rows.reading == _BEST) & rows.value.notna()])
    counts = sorted(name.removeprefix(_BEST).replace("points", "accuracies") for name in points) or ["no known accuracies"]
    lines = [
        "Exact match on the test set, with every run read in three ways. *Last step* is ours: nothing is chosen. *Brackets "
        "repaired*: missing closing brackets are appended, and surplus ones are removed at the end. *Best point on the test "
        f"set*: the largest of {' or '.join(counts)} during training, without repair. Scripts of published systems "
        "(open diamonds, as commonly reported) score every checkpoint on the test set, some after repair, and do not state which "
        "one their tables report: the last two readings come closest to it. Dots are seeds, bars means with 95 % intervals "
        "(Student's t, from three seeds on). Gains are those of the last step, over the plain run of the same seed."
        + style.exposure(rows, rows),
        "",
    ]
    for task in sorted(set(rows.task)):
        lines.append(f"* {task}")
        for label, all_rows in methods.items():
            own = all_rows[all_rows.task == task]
            if own.empty:
                continue
            found = {name: own[own.reading == name] for name in _READINGS}
            shown = "; ".join(f"{_READINGS[name]} {style.summary(part.value)}" for name, part in found.items() if len(part))
            lines.append(f"  - {label} ({style.seeds(found[_LAST].value)}): {shown}")
            plain = rows[(rows.task == task) & (rows.model == own.model.iloc[0]) & (rows.regularizer == "none")]
            if own.regularizer.iloc[0] != "none" and len(plain):
                gain = style.gains(found[_LAST], plain[plain.reading == _LAST])
                moves = "the interval excludes 0" if paired.differs(gain) else "the interval includes 0"
                moves = paired.TOO_FEW if paired.few(gain) else moves
                lines[-1] += f"; gain {style.summary(gain, '+')}: {moves}"
        lines += [
            f"  - published, {name}: {words.published(value)}" for name, value in options["published"].get(task, {}).items()
        ]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    rows = table[table.split == "test"]
    rows = rows.assign(reading=rows.metric.map(_reading)).dropna(subset="reading")
    methods = style.methods(rows, options["methods"])
    tasks = sorted(set(rows.task))
    systems = charts.systems(options["published"], tasks)
    names = [words.of_label(label, own, options) for label, own in methods.items()]
    page_style = options.get("style", {})
    figure, panels = charts.panels(len(tasks), names, page_style, width=2.9, height=0.36, below=0.8, published=systems)
    for axes, task in zip(panels, tasks, strict=True):
        for place, own in enumerate(methods.values()):
            for index, name in enumerate(_READINGS):
                values = own[(own.task == task) & (own.reading == name)].value.to_numpy()
                if len(values):
                    at = place + 0.24 * (index - 1)
                    intervals.seeds_and_mean(axes, values, at, _SHADES[name], height=0.06, size=7, name=_READINGS[name])
        for place, name in enumerate(systems, len(methods)):
            if name in options["published"].get(task, {}):
                axes.plot(
                    options["published"][task][name], place, "D", color="0.45", markerfacecolor="white", label="published value"
                )
        axes.set(title=words.of(task, options), xlabel="exact match, test set", xlim=(-0.03, 1.03))
        axes.grid(axis="both", color="0.93")
        axes.set_axisbelow(True)
    page.legend(figure, panels, options, style.RUN, style.INTERVAL)
    return figure, _caption(rows, methods, options)
