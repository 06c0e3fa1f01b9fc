"""The largest components of factorizations during training, one panel per model and quantity. They are learned one by one."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import page, style
from compositional.figures.shared.components import LEARNED, RANKS, tracked

SOURCE = "history.csv"
PARAMETERS = {
    "panels": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["model", "quantity", "title", "axis"],
            "properties": {
                "task": {"type": "string", "names": "tasks"},
                "model": {"type": "string", "names": "models"},
                "quantity": {"type": "string", "names": "metrics"},
                "title": {"type": "string"},
                "axis": {"type": "string"},
                "judged": {"type": "boolean"},
                "expected": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}},
            },
        },
        "default": [],
        "description": "one panel per model (and task, if several share it) and tracked quantity, such as singular_value; "
        "judged: false means that the claim is not about it; expected: numbers of components that the target may have, by "
        "default [5]",
    },
    "seeds": {"enum": ["first", "all"], "default": "first", "description": "which runs to show, drawn over each other"},
    "columns": {"type": "integer", "minimum": 1, "default": 5, "description": "panels side by side"},
}
EXPECTED = [5]


def appearances(curves: pd.DataFrame) -> dict[int, int]:
    """For each component that is learned in the end: the first recorded step at which it exceeds LEARNED of the largest one."""
    limit = LEARNED * curves.iloc[-1].max()
    return {int(name): int(curves.index[(curve > limit).argmax()]) for name, curve in curves.items() if curve.iloc[-1] > limit}


def _describe(rows: pd.DataFrame, curves: pd.DataFrame, panel: dict[str, Any]) -> str:
    last = curves.iloc[-1]
    found = appearances(curves)
    others = last.drop(list(found))
    error = rows[(rows.split == "target") & (rows.metric == "relative_error") & (rows.step == curves.index[-1])].value.item()
    values = ", ".join(f"{last[name]:.3g}" for name in found)
    steps = ", ".join(map(str, found.values()))
    several = len(set(found.values())) == len(found)
    verdict = ": " + style.verdict(len(found) in panel.get("expected", EXPECTED) and several and error < 0.01, of=[error])
    return (
        f"  - seed {rows.seed.iloc[0]}, {curves.index[-1]} steps: {len(found)} components above {LEARNED:g} of the largest "
        f"({values}), which they pass at steps {steps}; largest of the others {others.max() if len(others) else 0:.2g}; "
        f"normalized reconstruction error {error:.2g}{verdict if panel.get('judged', True) else ''}"
    )


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    panels, columns = options["panels"], min(options["columns"], len(options["panels"]))
    table = table if options["seeds"] == "all" else table[table.seed == table.seed.min()]
    height = -(-len(panels) // columns)
    figure, grid = plt.subplots(height, columns, figsize=(3.1 * columns, 2.5 * height), squeeze=False, layout="constrained")
    lines = [
        "Training of factorizations from a small initialization on half of the entries of a target of rank 5, full batch, "
        "against the step. Lines are the largest component at each step, the second largest and so on. Claim: as many components "
        "as the target has are learned one after the other, and others stay near 0. It holds if that many components pass the "
        "threshold at different steps and the error ends below 0.01.",
        "",
    ]
    shades = style.shades(len(RANKS), 0, 0.92)
    for axes, panel in zip(grid.flat, panels, strict=False):
        own = table[(table.model == panel["model"]) & (table.task == panel.get("task", table.task))]
        expected = " or ".join(map(str, panel.get("expected", EXPECTED)))
        lines.append(f"* {panel['title']}, {panel['axis']}" + (f": {expected} expected" if panel.get("judged", True) else ""))
        for _, rows in own.groupby("seed"):
            curves = tracked(rows, panel["quantity"])
            for component in curves.columns[: len(RANKS)]:
                width = 1.5 if options["seeds"] == "first" else 0.8
                label = RANKS[component - 1]
                axes.plot(curves.index, curves[component], color=shades[component - 1], linewidth=width, label=label)
            lines.append(_describe(rows, curves, panel))
        axes.set(title=panel["title"], xlabel="step", ylabel=panel["axis"], xlim=(0, own.step.max()), ylim=(0, None))
        axes.grid(axis="y", color="0.92")
    page.legend(figure, grid.flat, options)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    return figure, "\n".join(lines)
