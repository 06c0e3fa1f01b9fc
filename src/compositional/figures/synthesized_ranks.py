"""Accuracies of the baseline and of every generation's networks, ranked by training accuracy, and of rules without a network."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy import stats

from compositional.figures.shared import page
from compositional.figures.shared import synthesized as tables

SOURCE = "metrics.csv"
PARAMETERS = {
    "kept": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the networks, the best by training accuracy, that the caption calls selected",
    },
}
_LINES = {"train": ("#D55E00", "training"), "validation": ("#0072B2", "validation")}


def _half(group: pd.DataFrame, kept: float) -> pd.DataFrame:
    """The networks with the highest training accuracy."""
    return tables.ranked(group).head(max(1, round(kept * len(group))))


def _spread(values: pd.Series) -> str:
    """Mean and, if there are several runs, their standard deviation."""
    return f"{values.mean():.3f}" + (f" (sd {values.std():.3f})" if len(values) > 1 else "")


def _against(rows: pd.DataFrame, baseline: pd.DataFrame) -> tuple[str, str]:
    """A generation's mean and spread of validation accuracy compared with the baseline's, treating networks as the sample.

    Empty if there are too few networks.
    """
    degrees = len(rows) - rows.loop.nunique(), len(baseline) - 1
    if min(degrees) < 1:
        return "", ""
    change = rows.validation.mean() - baseline.validation.mean()
    welch = stats.ttest_ind(rows.validation, baseline.validation, equal_var=False).pvalue
    within = rows.validation - rows.groupby("loop").validation.transform("mean")
    ratio = within.pow(2).sum() / degrees[0] / baseline.validation.var()
    return (
        f", {change:.3f} against the baseline's mean (Welch's test over networks, p = {welch:.2g})",
        f"; F = {ratio:.2f} ({degrees[0]} and {degrees[1]} degrees of freedom, one-sided p = {stats.f.sf(ratio, *degrees):.2g})",
    )


def _caption(found: pd.DataFrame, known: dict[str, float], kept: float) -> str:
    baseline = found[found.generation == 0]
    lines = [
        "Accuracy by rank of training accuracy: the baseline's runs, and the networks of every generation's programs. "
        "Thin lines: single loops; thick: their mean at each rank (of many baseline runs a moving average over six). Horizontal "
        "lines: the majority class, the rule that answers yes exactly for shapes in shapes (for binary targets), and the mean of "
        "the baseline, all on the validation puzzles. ± after a mean over loops is the half width of its 95 % interval; tests "
        "treat networks as independent, and F is their variance within loops over the baseline's.",
        "",
        "* no network: " + ", ".join(f"{name} {value:.3f}" for name, value in known.items()),
    ]
    if len(baseline):
        lines.append(
            f"* baseline, {len(baseline)} runs: train {_spread(baseline.train)}, validation {_spread(baseline.validation)}, "
            f"greatest {baseline.validation.max():.3f}, train minus validation "
            f"{(baseline.train - baseline.validation).mean():.3f}; selected by training accuracy: validation "
            f"{_half(baseline, kept).validation.mean():.3f}"
        )
    for generation, rows in found[found.generation > 0].groupby("generation"):
        loops = rows.groupby("loop")
        best = pd.concat([_half(group, kept).assign(loop=loop) for loop, group in loops]).groupby("loop")
        ratio = loops.validation.std() / baseline.validation.std()
        mean, spread = _against(rows, baseline)
        lines += [
            f"* generation {generation}, {loops.ngroups} loops of {len(rows) / loops.ngroups:g} networks: train "
            f"{tables.loop_interval(loops.train.mean())}, validation {tables.loop_interval(loops.validation.mean())}{mean}; "
            f"train minus validation {tables.loop_interval(loops.train.mean() - loops.validation.mean())}",
            f"  - spread of validation accuracy (sd within a loop) {tables.loop_interval(loops.validation.std())}, "
            f"{tables.loop_interval(ratio)} times the baseline's, taken as given{spread}",
            f"  - selected by training accuracy: train {tables.loop_interval(best.train.mean())}, validation "
            f"{tables.loop_interval(best.validation.mean())}; minus the baseline's mean, "
            f"taken as given, {tables.loop_interval(best.validation.mean() - baseline.validation.mean())}",
            f"  - greatest validation accuracy {rows.validation.max():.3f}"
            + "".join(
                f"; {int((rows.validation > value).sum())} of {len(rows)} networks are above {name}"
                for name, value in known.items()
            ),
        ]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; one panel for the baseline and one per generation."""
    found, known = tables.networks(table), tables.references(table)
    generations = sorted(set(found.generation)) or [0]  # all runs may have diverged
    mean = found[found.generation == 0].validation.mean()
    figure, grid = plt.subplots(
        1, len(generations), figsize=(2.6 * len(generations) + 1.6, 3.2), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, generation in zip(grid[0], generations, strict=True):
        ranked = tables.ranked(found[found.generation == generation])
        ranked = ranked.assign(rank=ranked.groupby("loop").cumcount() + 1)
        for split, (shade, label) in _LINES.items():
            loops = ranked.pivot(index="rank", columns="loop", values=split)
            for loop in loops:
                axes.plot(loops.index, loops[loop], color=shade, linewidth=0.7, alpha=0.5, marker=".", markersize=3)
            shown = loops.mean(axis=1)
            if loops.shape[1] == 1 and len(loops) > 15:  # as in the paper: a moving average over six networks
                shown = shown.rolling(6, center=True).mean()
            axes.plot(shown.index, shown, color=shade, linewidth=2, label=label)
        tables.draw_references(axes, known)
        if mean > 0:  # false if all of the baseline's runs diverged
            axes.axhline(mean, color="#009E73", linestyle="--", linewidth=1, label=f"baseline, mean ({mean:.3f})")
        axes.set(title=f"generation {generation}" if generation else "baseline", xlabel="rank by training accuracy")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    grid[0, 0].set_ylabel("accuracy")
    grid[0, 0].plot([], [], ".-", color="0.4", linewidth=0.7, markersize=3, label="a loop")
    page.legend(figure, grid.flat, options)
    return figure, _caption(found, known, options["kept"])
