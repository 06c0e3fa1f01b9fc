"""Accuracy against the number of test-like commands in training: how many such commands is a regularizer worth?"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import doses, intervals, named_runs, page, paired, style, words
from compositional.figures.shared.doses import BITS, COMMANDS, DRAW

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "shown": {"type": "string", "default": "composed commands of jump", "description": "the commands that are counted, in words"},
    "tested": {"type": "string", "default": "other composed commands of jump", "description": "the commands of the test set"},
    "design": {
        "type": "string",
        "default": "The tested commands are in no training set of the draw. Jump alone and the shown commands are equally "
        "frequent and together a tenth of the training rows for every number, as in the published files; the draws are ours.",
        "description": "sentences of the caption about the training sets",
    },
}
_LACKING = "exposure_dose: {} has no number of commands; use tasks of scan_exposure or scan_fillers"
_RISE = (8, 32)  # numbers of commands between which the accuracy of plain networks should rise


def dose(curve: pd.Series, accuracy: float) -> float:
    """The number of commands n at which a curve first reaches an accuracy, interpolated linearly in log(1 + n); inf if nowhere.

    curve: accuracies by number of commands, in ascending order.
    """
    reached = np.flatnonzero(curve.to_numpy() >= accuracy)
    if not len(reached):
        return np.inf
    first = int(reached[0])
    if first == 0:
        return float(curve.index[0])
    between = curve.iloc[first - 1 : first + 1]
    return float(np.expm1(np.interp(accuracy, between.to_numpy(), np.log1p(between.index.to_numpy(dtype=float)))))


def _curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of one method: one row per draw, one column per number of commands; means if a draw has several seeds."""
    return rows.pivot_table(index=DRAW, columns=COMMANDS, values="value", dropna=False)


def _worth(ours: pd.DataFrame, plain: pd.DataFrame, share: float) -> str:
    """In words: how many commands give plain networks this share of the method's accuracy without commands, draw by draw."""
    if 0 not in ours:
        return "unknown, because no run of the method is without commands"
    known = plain.index[plain.notna().any(axis=1)]
    draws = [draw for draw in ours.index if draw in known and np.isfinite(ours.loc[draw, 0])]
    if not draws:
        return "unknown, because in no draw both have runs that did not diverge"
    found = np.array([dose(plain.loc[draw].dropna(), share * ours.loc[draw, 0]) for draw in draws])
    beyond, largest = int(np.isinf(found).sum()), plain.columns.max()
    if beyond == len(found):
        return f"more than {largest} in all {len(found)} draws"
    middle = np.median(found)
    text = f"more than {largest}" if np.isinf(middle) else f"{middle:.1f}"
    within = found[np.isfinite(found)]
    text += f" (median of {len(found)} draws, from {within.min():.1f} to "
    return text + (f"{within.max():.1f})" if not beyond else f"more than {largest}, in {beyond} of them)")


def _caption(methods: dict[str, pd.DataFrame], options: dict[str, Any]) -> str:
    """Numbers and verdicts, all from the table."""
    everything = pd.concat(methods.values())
    entropy = everything[BITS].notna().any()
    lines = [
        f"How many {options['shown']} is a regularizer worth? {'Left: a' if entropy else 'A'}ccuracy on {options['tested']} "
        f"against the number of {options['shown']} in training. {options['design']} Dots are draws, each with its own commands "
        "and initialization; within a draw, each number takes the first commands of one fixed order. Lines are means with 95 % "
        "intervals (Student's t over draws, three draws or more, cut off at 0 and 1). "
        + (
            "Right: the same runs of plain networks, with a marker for each model, against the entropy of the verb in composed "
            "training commands, which is at most 2 bits. "
            if entropy
            else ""
        )
        + "Lambda is that of the study's other figures; no checkpoint is chosen.",
        "",
    ]
    for label, rows in methods.items():
        curves = _curves(rows)
        shown = ", ".join(f"{count}: {style.mean(curves[count])}" for count in curves)
        lost = int(rows.value.isna().sum())
        lines.append(
            f"* {label} ({len(curves)} draw{'s' if len(curves) > 1 else ''}{f', {lost} runs diverged' if lost else ''}): {shown}"
        )
        model, regularizer = rows.model.iloc[0], rows.regularizer.iloc[0]
        if regularizer != "none":
            plain = _curves(everything[(everything.model == model) & (everything.regularizer == "none")])
            lines.append(f"  - commands that give the plain network the same accuracy: {_worth(curves, plain, 1.0)}")
            lines.append(f"  - commands for nine tenths of it: {_worth(curves, plain, 0.9)}")
        elif set(_RISE) <= set(curves):
            gain = curves[_RISE[1]] - curves[_RISE[0]]
            holds = style.verdict(paired.helps(gain), doses.undecided(gain))
            lines.append(f"  - rises from {_RISE[0]} to {_RISE[1]} commands: {holds} ({style.summary(gain, '+', of='draw')})")
    if entropy:
        bits = everything.groupby(COMMANDS)[BITS].mean()
        lines += ["", "Entropy of the verb, bits: " + ", ".join(f"{count}: {value:.3f}" for count, value in bits.items()) + "."]
    return "\n".join(lines)


def _line(axes: Axes, rows: pd.DataFrame, place: int, label: str, shade: str, line: Any, mark: Any) -> None:
    """Draw one method; place: its number, which determines its horizontal shift."""

    def move(counts: pd.Series, _: float) -> pd.Series:
        return np.expm1(np.log1p(counts) + np.log(1 + 0.02 * place))

    intervals.line_of_means(axes, rows, COMMANDS, move, shade, label, line, mark)


def _against_entropy(axes: Axes, rows: pd.DataFrame, shade: str, line: Any, mark: Any) -> None:
    """Draw the runs of a plain network, and their means by number of commands."""
    means = rows.groupby(COMMANDS)[[BITS, "value"]].mean()
    axes.scatter(rows[BITS], rows.value, s=14, color=shade, alpha=0.45, linewidths=0, marker=mark)
    axes.plot(means[BITS], means.value, color=shade, linestyle=line, linewidth=1.2, marker=mark, markersize=4)
    axes.set(xlabel="plain networks: entropy of the verb, bits")


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    methods = style.methods(doses.placed(table, [COMMANDS, DRAW], _LACKING, [BITS]), options["methods"])
    models = list(dict.fromkeys(rows.model.iloc[0] for rows in methods.values()))
    entropy = any(rows[BITS].notna().any() for rows in methods.values())
    widths = [1.5, 1] if entropy else [1]
    figure, panels = plt.subplots(
        1,
        len(widths),
        figsize=(8.6 if entropy else 5.6, 3.6),
        sharey=True,
        width_ratios=widths,
        layout="constrained",
        squeeze=False,
    )
    left = panels[0, 0]
    shades = style.distinct_colors(rows.regularizer.iloc[0] for rows in methods.values())
    for place, (label, rows) in enumerate(methods.items()):
        label = words.of_label(label, rows, options)
        shade, model = shades[rows.regularizer.iloc[0]], models.index(rows.model.iloc[0])
        line, mark = style.line_of(model), style.marker_of(model)
        _line(left, rows, place, label, shade, line, mark)
        if entropy and rows.regularizer.iloc[0] == "none":
            _against_entropy(panels[0, 1], rows, shade, line, mark)
    counts = sorted({count for rows in methods.values() for count in rows[COMMANDS]})
    left.set_xscale("function", functions=(np.log1p, np.expm1))
    left.set_xticks(counts, [str(count) for count in counts])
    left.xaxis.minorticks_off()
    left.set(xlabel=f"{options['shown']} in training", ylabel=f"accuracy, {options['tested']}", ylim=(-0.03, 1.04))
    for axes in panels.flat:
        axes.grid(color="0.93")
        axes.set_axisbelow(True)
    page.legend(figure, [left], options, style.RUN, style.INTERVAL)
    return figure, _caption(methods, options)
