"""Does training accuracy predict which network generalizes? And does its graph, when it is trained again?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from compositional.figures.shared import page
from compositional.figures.shared import synthesized as tables

SOURCE = "metrics.csv"
PARAMETERS: dict = {}
_SPLITS = {"train": "training accuracy", "validation": "validation accuracy"}
_SHADES = ["#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2"]


def _retrained(found: pd.DataFrame) -> pd.DataFrame:
    """Networks of graphs that were kept unchanged, each with the network of the same graph one generation before."""
    later = found[(found.origin >= 0) & (found.changed == 0)].assign(before=found.generation - 1)
    return later.merge(
        found, left_on=["loop", "before", "origin"], right_on=["loop", "generation", "seed"], suffixes=("", "_before")
    )


def _graphs(again: pd.DataFrame) -> int:
    """The number of graphs in the pairs: a graph that was kept twice is in two pairs."""
    later = again.set_index(["loop", "generation", "seed"]).index
    return int((~again.set_index(["loop", "before", "origin"]).index.isin(later)).sum())


def _between_loops(found: pd.DataFrame, split: str) -> list[float]:
    """Correlations of accuracies between every two loops, over the programs that both have in their first generation."""
    first = found[found.generation == 1].pivot(index="program", columns="loop", values=split).dropna()
    pairs = [tables.correlation(first[left], first[right]) for left, right in combinations(first, 2)]
    return [r for r in pairs if np.isfinite(r)]


def _caption(found: pd.DataFrame, again: pd.DataFrame) -> str:
    baseline = found[found.generation == 0]
    r = tables.correlation(baseline.train, baseline.validation)
    interval = ""
    if np.isfinite(r):
        low, high = stats.pearsonr(baseline.train, baseline.validation).confidence_interval()
        interval = f", 95 % interval {low:.2f} to {high:.2f} (Fisher)"
    lines = [
        "Left and middle: training against validation accuracy, one point per network, for the baseline (only seeds differ) and "
        "for the populations (one graph each). Right: validation accuracy of the graphs that were kept, in the generation in "
        "which they were selected, and trained again from scratch in the next; points below the diagonal became worse. Claim: "
        "training accuracy predicts validation accuracy among graphs (reported r 0.70 to 0.74) and not among the baseline's runs "
        "(0.04).",
        "",
        f"* baseline, {len(baseline)} runs: r {'unknown' if np.isnan(r) else f'= {r:.2f}'}{interval}",
    ]
    for generation, rows in found[found.generation > 0].groupby("generation"):
        within = pd.Series({loop: tables.correlation(own.train, own.validation) for loop, own in rows.groupby("loop")}).dropna()
        sizes = pd.Series({loop: tables.correlation(own.nodes, own.validation) for loop, own in rows.groupby("loop")})
        lines.append(
            f"* generation {generation}: r = {tables.loop_interval(within)}"
            + (f" over {len(within)} loops ({', '.join(f'{value:.2f}' for value in within)})" if len(within) else "")
            + f"; between number of nodes and validation accuracy {tables.loop_interval(sizes)}"
        )
    if between := {name: values for split, name in _SPLITS.items() if (values := _between_loops(found, split))}:
        told = [f"{name} {np.mean(r):.2f} (from {min(r):.2f} to {max(r):.2f})" for name, r in between.items()]
        lines.append(
            "* the first generation's programs, which every loop trains and nothing has selected: mean r between two loops of "
            f"the same graph's {', '.join(told)}"
        )
    if len(again) > 2:
        loops = again.groupby("loop")
        change = loops.apply(lambda own: (own.validation - own.validation_before).mean(), include_groups=False)
        train = loops.apply(lambda own: (own.train - own.train_before).mean(), include_groups=False)
        twice = []
        for split, name in _SPLITS.items():
            r = pd.Series({loop: tables.correlation(own[f"{split}_before"], own[split]) for loop, own in loops})
            twice.append(f"{name} {tables.loop_interval(r)}")
        left_out = int(found[found.origin >= 0].changed.sum())
        lines += [
            f"* kept graphs trained again, {len(again)} pairs of trainings ({_graphs(again)} graphs; {left_out} others are left "
            "out: a program of an isomorphic graph took their place): training accuracy changes by "
            f"{tables.loop_interval(train)}, validation accuracy by {tables.loop_interval(change)} (means over loops)",
            f"  - r between a kept graph's two trainings, within a loop: {', '.join(twice)} (means over loops). Selecting by the "
            "first training accuracy narrows its range, which lowers r",
        ]
        rest = found[(found.origin < 0) & (found.generation > 1)]
        both = pd.DataFrame({"kept": loops.validation.mean(), "new": rest.groupby("loop").validation.mean()}).dropna()
        if len(both):
            lines.append(
                f"  - trained again, kept graphs reach validation accuracy {tables.loop_interval(both.kept)}, new graphs of the "
                f"same generations {tables.loop_interval(both.new)}; difference {tables.loop_interval(both.kept - both.new)}"
            )
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    found, known = tables.networks(table), tables.references(table)
    again = _retrained(found)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
    baseline = found[found.generation == 0]
    left.scatter(baseline.train, baseline.validation, s=14, color=tables.BASELINE, alpha=0.7, linewidth=0, label="baseline")
    r = tables.correlation(baseline.train, baseline.validation)
    left.set_title("baseline" if np.isnan(r) else f"baseline, r = {r:.2f}")
    for generation, rows in found[found.generation > 0].groupby("generation"):
        within = pd.Series([tables.correlation(own.train, own.validation) for _, own in rows.groupby("loop")])
        middle.scatter(
            rows.train,
            rows.validation,
            s=14,
            color=_SHADES[(generation - 1) % len(_SHADES)],
            alpha=0.7,
            linewidth=0,
            label=f"generation {generation}" + (f", mean r = {within.mean():.2f}" if within.notna().any() else ""),
        )
    middle.set_title("populations of graphs")
    middle.sharex(left)
    middle.sharey(left)
    for axes in (left, middle):
        tables.draw_references(axes, known)
        axes.set(xlabel="training accuracy", ylabel="validation accuracy")
    right.axline((0.65, 0.65), slope=1, color="0.6", linewidth=1, label="equal")
    right.scatter(
        again.validation_before, again.validation, s=14, color=tables.POPULATION, alpha=0.7, linewidth=0, label="a kept graph"
    )
    right.set(title="kept graphs", xlabel="validation accuracy when selected", ylabel="validation accuracy, trained again")
    page.legend(figure, (left, middle, right), options)
    return figure, _caption(found, again)
