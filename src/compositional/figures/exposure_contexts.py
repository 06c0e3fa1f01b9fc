"""Does the number of different commands with a word decide, or the number of rows, and so the entropy of the word's position?

Wold, Charpentier and Simon (ACL Findings 2025, arXiv 2505.13089) claim that accuracy on new combinations rises with the entropy
of the parts in training, whatever the number of examples.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import doses, intervals, named_runs, page, paired, style, words
from compositional.figures.shared.doses import BITS, COMMANDS, DRAW, ROWS

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS
_LACKING = "exposure_contexts: {} has no number of rows; use tasks of scan_exposure with `rows`"


def doubling(rows: pd.DataFrame, of: str, fixed: str) -> pd.Series:
    """What twice as much of one quantity changes in accuracy while the other is fixed: a mean over neighboring values, by draw.

    rows: a method's runs; of, fixed: columns of numbers. A draw has a value if it has two such runs that did not diverge.
    """
    cells = rows.pivot_table(index=DRAW, columns=[fixed, of], values="value")
    steps = {
        (kept, less): (cells[kept, more] - cells[kept, less]) / np.log2(more / less)
        for kept in cells.columns.unique(0)
        for less, more in pairwise(sorted(cells[kept].columns))
    }
    return pd.DataFrame(steps, index=cells.index).mean(axis=1)


def _unmoved(places: pd.Series, _: float) -> pd.Series:
    return places


def _panels(left: Axes, right: Axes, rows: pd.DataFrame) -> None:
    """Draw a method's runs against the number of different commands, and against the entropy."""
    for axes, by, other, unit in ((left, COMMANDS, ROWS, "rows"), (right, BITS, COMMANDS, "commands")):
        values = sorted(rows[other].unique())
        for number, (value, shade) in enumerate(zip(values, style.shades(len(values)), strict=True)):
            own = rows[rows[other] == value]
            # The entropy differs slightly from draw to draw.
            own = own.assign(**{BITS: own.groupby(ROWS)[BITS].transform("mean")})
            look = style.line_of(0), style.marker_of(number)
            intervals.line_of_means(axes, own, by, _unmoved, shade, f"{value} {unit if value > 1 else unit[:-1]}", *look)
        axes.set(ylim=(-0.03, 1.04))
        axes.grid(color="0.93")
        axes.set_axisbelow(True)
    counts = sorted(rows[COMMANDS].unique())
    left.set(xscale="log", xlabel="different composed commands of jump")
    left.set_xticks(counts, [str(count) for count in counts])
    left.xaxis.minorticks_off()
    right.set(xlabel="entropy of the verb, bits")


def _lines(label: str, rows: pd.DataFrame) -> list[str]:
    """A method's means and verdicts."""
    commands, entropy = doubling(rows, COMMANDS, ROWS), doubling(rows, ROWS, COMMANDS)
    means = [
        f"{value} rows: " + ", ".join(f"{count}: {style.mean(runs)}" for count, runs in own.groupby(COMMANDS).value)
        for value, own in rows.groupby(ROWS)
    ]
    same = style.verdict(False, doses.undecided(commands))
    rises = style.verdict(paired.helps(entropy), doses.undecided(entropy))
    lost = int(rows.value.isna().sum())
    return [
        f"* {label}{f' ({lost} runs diverged)' if lost else ''}, by number of different commands. {'; '.join(means)}",
        "  - in as many rows, the number of different commands does not matter, as if the entropy alone decided: "
        f"{same} (twice as many: {style.summary(commands, '+', of='draw')})",
        f"  - with as many different commands, accuracy rises with the entropy: {rises} (twice as many rows: "
        f"{style.summary(entropy, '+', of='draw')})",
    ]


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: two panels per method; options: see PARAMETERS."""
    placed = doses.placed(table, [COMMANDS, ROWS, DRAW, BITS], _LACKING)
    methods = style.methods(placed, options["methods"])
    figure, panels = plt.subplots(
        len(methods), 2, figsize=(8.2, 0.5 + 3.1 * len(methods)), sharey=True, layout="constrained", squeeze=False
    )
    bits = placed.groupby(ROWS)[BITS].mean()
    lines = [
        "Accuracy on composed commands of jump that are in no training set of the draw. Training contains some of the other "
        "composed commands, each equally often, in the given number of rows. Jump alone fills up a tenth of all rows. Left: "
        "against the number of different commands. In as many rows, the verb of composed training commands has almost the same "
        f"entropy: {', '.join(f'{value:.3f} bits in {count} rows' for count, value in bits.items())}. Right: the same runs "
        "against this entropy, which is at most 2 bits. Lines are means with 95 % intervals (Student's t over draws, three draws "
        "or more, cut off at 0 and 1); dots are draws, each with its own commands and initialization. Changes are means over "
        "neighboring settings, per doubling.",
        "",
    ]
    for (left, right), (label, rows) in zip(panels, methods.items(), strict=True):
        _panels(left, right, rows)
        left.set(ylabel=f"accuracy, {words.of_label(label, rows, options)}")
        lines += _lines(label, rows)
    page.legend(figure, panels.flat, options, style.RUN, style.INTERVAL)
    return figure, "\n".join(lines)
