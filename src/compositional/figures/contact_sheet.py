"""Examples of image tasks, one block per task with its labels in separate rows; and what was verified when they were made."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.tables import examples

SOURCE = "split"
PARAMETERS = {
    "titles": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "the tasks to show, in order, each with its title",
    },
    "classes": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "meanings of the labels, by number",
    },
    "columns": {"type": "integer", "minimum": 1, "maximum": 8, "default": 6, "description": "examples per label"},
    "width": {"type": "number", "exclusiveMinimum": 0, "default": 1.1, "description": "width of an example in inches"},
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the table of examples (compositional.tables.examples). It shows training examples."""
    labels = {int(number): name for number, name in options["classes"].items()}
    blocks = [(task, label) for task in options["titles"] for label in sorted(labels, reverse=True)]
    first = examples.decode(table.image.iloc[0])
    shape = options["width"] * first.shape[0] / first.shape[1]
    columns = options["columns"]
    size = (options["width"] * columns + 1.6, (shape + 0.12) * len(blocks) + 0.3)
    figure, grid = plt.subplots(len(blocks), columns, figsize=size, squeeze=False, layout="constrained")
    for axes, (task, label) in zip(grid, blocks, strict=True):
        own = table[(table.task == task) & (table.split == "train") & (table.label == label)]
        for panel, picture in zip(axes, own.image, strict=False):
            pixels = examples.decode(picture)
            panel.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        for panel in axes:
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_visible(False)
        name = f"{options['titles'][task]}\n{labels[label]}"
        axes[0].set_ylabel(name, rotation=0, ha="right", va="center")
    lines = ["Training examples, one row per task and label, as the networks see them (before normalization).", ""]
    for task, title in options["titles"].items():
        about = json.loads(table[(table.task == task) & table.about.notna()].about.iloc[0])
        items = ", ".join(f"{count} {name}" for name, count in about["items"].items())
        lines.append(f"* {title}: {items}")
        if "verification" in about:
            found = about["verification"]
            lines.append(
                f"  - {found['connected']} of {found['images']} are joined; a solver that sees only the picture agrees with the "
                f"label of {found['tracer_agrees']}, contradicts {found['tracer_contradicts']} and is undecided on "
                f"{found['tracer_undecided']}; of joined paths it counts all dashes on {found['paths_of_full_length']}"
            )
    return figure, "\n".join(lines)
