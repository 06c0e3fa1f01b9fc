"""Networks on transitive equivalence during training: rich ones infer the classes, lazy ones and kernel machines do not."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import page, style

SOURCE = "history.csv"
PARAMETERS = {
    "panels": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["title", "task", "models"],
            "properties": {
                "title": {"type": "string"},
                "task": {"type": "string", "names": "tasks"},
                "models": {"type": "object", "names": "models", "additionalProperties": {"type": "string"}},
            },
        },
        "default": [],
        "description": "title, task, and the models to show, each with its label",
    },
    "last_step": {"type": "integer", "minimum": 1, "default": 1000, "description": "last step on the axis"},
    "problem": {"type": "string", "default": "", "description": "what was trained, for the caption"},
}
_LINES = {
    "train": ("-", "0.35", "training pairs"),
    "validation": ("-", "#56B4E9", "trained pairs, new images"),
    "test": ("-", "#D55E00", "new pairs"),
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: one row per panel, one column per model."""
    panels = [panel | {"models": style.present(panel["models"], table.model)} for panel in options["panels"]]
    columns = max(len(panel["models"]) for panel in panels)
    figure, grid = plt.subplots(
        len(panels),
        columns,
        figsize=(2.5 * columns + 1.6, 2.3 * len(panels) + 0.3),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    lines = [
        f"{options['problem']} Accuracy during training; thick lines are means over seeds, thin ones single runs; dotted: "
        f"chance. Axes end at step {options['last_step']:,} or earlier. Numbers are final means with 95 % intervals.",
        "",
    ]
    for row, panel in zip(grid, panels, strict=True):
        for axes in row[len(panel["models"]) :]:
            axes.set_visible(False)
        for axes, (model, label) in zip(row, panel["models"].items(), strict=False):
            own = table[(table.task == panel["task"]) & (table.model == model) & (table.metric == "accuracy")]
            said = []
            for split, (line, shade, name) in _LINES.items():
                if split not in set(own.split):
                    continue
                curve = own[own.split == split].pivot(index="step", columns="seed", values="value")
                axes.plot(curve.index, curve, line, color=shade, linewidth=0.5, alpha=0.5)
                done = curve.mean(axis=1)
                axes.plot(done.index, done, line, color=shade, linewidth=1.8, label=name)
                right = done.index[done >= 0.999]
                if len(right):
                    course = f" (all right first at {right[0]})"
                elif done.notna().any():
                    course = f" (at most {done.max():.3f}, at step {done.idxmax()}; least {done.min():.3f})"
                else:
                    course = ""
                said.append(f"{name} {style.summary(curve.iloc[-1])} at step {done.index[-1]}{course}")
            lines.append(f"* {panel['title']}, {label} ({style.seeds(curve.iloc[-1])}): {', '.join(said)}")
            axes.axhline(0.5, color="0.6", linestyle=":", linewidth=1, label="chance")
            axes.set(title=f"{panel['title']}\n{label}", xlim=(0, min(options["last_step"], own.step.max())), ylim=(-0.03, 1.05))
            axes.set_xlabel("step")
        row[0].set_ylabel("accuracy")
    grid[0, 0].plot([], [], color="0.4", linewidth=0.5, label=style.RUN)
    page.legend(figure, grid.flat, options)
    return figure, "\n".join(lines)
