"""Mean absolute value of each type of conjunction in context dependence: which conjunctions the outputs are made of.

A network or kernel machine generalizes if its value is in the right conjunctions (context with the relevant feature). Value in
the context alone is a shortcut. Value in whole inputs is memorization, which does not help on new combinations.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import kernel_theory, page, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "tasks": {
        "type": "object",
        "minProperties": 1,
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "columns: the task of each, and its title",
    },
    "models": {
        "type": "object",
        "minProperties": 1,
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "colors, in order: the model of each, and its label",
    },
    "problem": {"type": "string", "default": "", "description": "what was trained, for the caption"},
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table: magnitudes above, accuracies below, one column per task."""
    tasks, models = (style.present(options[key], table[key[:-1]]) for key in ("tasks", "models"))
    figure, grid = plt.subplots(
        2,
        len(tasks),
        figsize=(3.6 * len(tasks) + 0.8, 4.8),
        squeeze=False,
        layout="constrained",
        height_ratios=(3, 2),
        sharey="row",
    )
    lines = [
        f"{options['problem']} Top: mean absolute value of the conjunctions of each type; bars are means, dots are seeds. Right "
        "conjunction: context with the relevant feature; wrong: with the irrelevant one; sensory: features without context; "
        "memorization: all three. Bottom: accuracy on trained and on new combinations.",
        "",
    ]
    shades = style.shades(len(models))
    names = {"train": "training", "validation": "new images", "test": "new\ncombinations"}
    for column, (task, title) in enumerate(tasks.items()):
        own = {label: table[(table.task == task) & (table.model == model)] for model, label in models.items()}
        groups = {label: kernel_theory.magnitudes(rows[rows.split == "all"]) for label, rows in own.items()}
        kernel_theory.bars(grid[0, column], groups, shades)
        grid[0, column].set_title(title)
        axes = grid[1, column]
        for place, ((label, rows), shade) in enumerate(zip(own.items(), shades, strict=True)):
            accuracy = rows[rows.metric == "accuracy"].pivot(index="seed", columns="split", values="value")
            splits = [split for split in names if split in accuracy]
            for at, split in enumerate(splits):
                where = at + 0.6 * ((place + 0.5) / len(own) - 0.5)
                axes.scatter([where] * len(accuracy), accuracy[split], s=14, color=shade, linewidths=0, zorder=3, clip_on=False)
                axes.plot([where - 0.04, where + 0.04], [accuracy[split].mean()] * 2, color=shade, linewidth=2)
            if accuracy["test"].isna().all():
                lines.append(f"* {title}, {label}: {style.mean(accuracy['test'])}")
                continue
            shown = ", ".join(f"{split} {accuracy[split].mean():.3f}" for split in splits)
            values = ", ".join(f"{kind} {value:.2f}" for kind, value in groups[label].mean().items())
            additivity = rows[rows.metric == "additivity"].value.mean()
            lines.append(
                f"* {title}, {label} ({style.seeds(accuracy['test'])}): accuracy {shown}; {values}; "
                f"additivity index {additivity:.3f}"
            )
        axes.set_xticks(range(len(splits)), [names[split] for split in splits])
        axes.axhline(0.5, color="0.6", linestyle=":", linewidth=1, label="chance")
        axes.set(ylabel="accuracy", ylim=(-0.03, 1.04))
    page.legend(figure, grid.flat, options)
    return figure, "\n".join(lines)
