"""The cost of a regularizer: gain on recombinations against loss in distribution and against time per step."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import page, paired, style, words

SOURCE = ("metrics.csv", "run.json")
REGULARIZED = True
PARAMETERS: dict = {}
COLUMNS = {"loss": "loss in distribution", "time": "seconds per step, over the plain run's"}
_LINEAR = 0.05  # losses are drawn on a linear scale up to here, on a logarithmic one beyond
_TICKS = (-1, -0.2, -0.05, 0, 0.05, 0.2, 1)


def _effects(table: pd.DataFrame) -> pd.DataFrame:
    """One row per regularized run: gain, loss and ratio of times compared with the plain run of the same seed."""
    found, own = (paired.gains(table, split).set_index(paired.RUN) for split in ("test", "in_distribution"))
    seconds, steps = (table[table.metric == metric].set_index(paired.RUN).value for metric in ("wall_seconds", "steps"))
    step = seconds / steps
    # The time of a single run is noisy and does not depend on its seed, so plain runs are averaged.
    usual = step.xs("none", level="regularizer").groupby(["task", "model"]).mean().rename("usual")
    found = found.assign(loss=own.plain - own.value, seconds=step).reset_index().join(usual, on=["task", "model"])
    return found.assign(time=found.seconds / found.usual)


def _summary(values: pd.Series) -> tuple[float, float]:
    known = values.dropna().to_numpy()
    return (float(known.mean()), style.drawn_interval(known)) if len(known) else (np.nan, 0.0)


def _caption(table: pd.DataFrame, effects: pd.DataFrame) -> str:
    lines = [
        "Gain in accuracy on combinations never seen, over the plain run (lambda = 0) of the same seed, against the loss of "
        "accuracy in distribution (left) and against the time of a training step (right). Pale dots are seeds. Each point is one "
        "lambda; the best and the largest are labeled. Points are means over seeds of paired differences, gain and loss with 95 "
        "% intervals (Student's t, three seeds or more); lines join a regularizer's lambdas. Up and to the left is better. Time "
        "is wall-clock time spent in training steps, relative to the plain runs' mean. Runs of a family train together, so the "
        "time of a run is that of its pack divided by the number of runs in it; it depends on this number and on what else the "
        "machine did. It is one number per pack without a spread over seeds, so it has no interval. The largest gain is an "
        "oracle's, found on these very runs, which is too optimistic if there are several lambdas. Diverged runs are left out."
        + style.exposure(effects, table),
        "",
    ]
    for (task, model), own in effects.groupby(["task", "model"]):
        lines.append(f"* {task}, {model}")
        if style.holds_nothing_out(table, task):
            lines.append("  - no examples of its distribution are held out: the loss is that on training examples")
        for name, regularized in own.groupby("regularizer"):
            means = regularized.groupby("lambda")[["gain", "loss", "time"]].mean()
            if means.gain.notna().any():
                best = means.gain.idxmax()
                gain = style.summary(regularized[regularized["lambda"] == best].gain, "+")
                loss, time = means["loss"][best], means.time.mean()
                lines.append(
                    f"  - {name}: largest gain {gain} at lambda {best:g}, with a loss of {loss:+.3f}; "
                    f"a step takes {time:.2f} times the plain run's (mean over lambdas)"
                )
            if lost := int(regularized.value.isna().sum()):
                lines.append(f"  - {name}: {words.runs(lost)} diverged")
        if lost := own[own.plain.isna()].seed.nunique():
            lines.append(f"  - plain: {words.runs(lost)} diverged, so nothing of their seeds is compared")
    return "\n".join(lines)


def _line(axes: Axes, runs: pd.DataFrame, column: str, shade: str, name: str, below: bool) -> None:
    """Draw one regularizer: its means by lambda and, of losses, its runs. below: where to write the lambdas."""
    of_loss = column == "loss"
    if of_loss:
        axes.scatter(runs.loss, runs.gain, s=9, color=shade, alpha=0.35, linewidths=0)
    points = []
    for strength, own in runs.groupby("lambda"):
        (across, wide), (gain, high) = _summary(own[column]), _summary(own.gain)
        if np.isfinite([across, gain]).all():
            points.append((across, gain, wide, high, strength))
    if not points:
        return
    x, y, xerr, yerr, strengths = np.array(points).T
    axes.errorbar(
        x,
        y,
        xerr=xerr if of_loss else None,
        yerr=yerr,
        color=shade,
        marker="o",
        markersize=4,
        linewidth=0.8 if of_loss else 0,
        elinewidth=0.5,
        capsize=2,
        label=name,
    )
    for index in sorted({int(np.argmax(y)), len(y) - 1}):
        axes.annotate(
            f"{strengths[index]:g}",
            (x[index], y[index]),
            xytext=(3, -10 if below else 3),
            textcoords="offset points",
            fontsize="small",
            color=shade,
            bbox=style.BEHIND,
        )


def _losses(axes: Axes) -> None:
    """Set up the axis of losses after they are drawn: logarithmic if some are large."""
    limits = axes.get_xlim()
    if max(map(abs, limits)) > _LINEAR:
        axes.set_xscale("symlog", linthresh=_LINEAR)
        axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS], fontsize="small")
        axes.xaxis.minorticks_off()
        axes.set_xlim(limits)
    else:
        axes.locator_params(axis="x", nbins=4)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    effects = _effects(table)
    problems = sorted(set(zip(effects.task, effects.model, strict=True)))
    figure, grid = plt.subplots(len(problems), 2, figsize=(8.6, 2.9 * len(problems)), squeeze=False, layout="constrained")
    shades = style.distinct_colors(effects.regularizer)
    for panels, (task, model) in zip(grid, problems, strict=True):
        own = effects[(effects.task == task) & (effects.model == model)]
        for axes, (column, title) in zip(panels, COLUMNS.items(), strict=True):
            for number, (name, runs) in enumerate(own.groupby("regularizer")):
                _line(axes, runs, column, shades[name], words.of(name, options), below=number % 2 == 1)
            axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
            axes.axvline(0 if column == "loss" else 1, color="0.7", linewidth=0.8, zorder=0)
            axes.set(xlabel=title, ylabel="gain on recombinations")
            axes.grid(color="0.94")
        if style.holds_nothing_out(table, task):
            panels[0].set(xlabel="loss on training examples (nothing is held out)")
        _losses(panels[0])
        panels[0].set(title=f"{words.of(task, options)}, {words.of(model, options)}")
    page.legend(figure, grid.flat, options, style.RUN, style.INTERVAL)
    return figure, _caption(table, effects)
