"""Distribution over seeds of the share of the toy problem's test quadrant that is classified correctly."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from compositional.figures.shared import claims, style

SOURCE = "metrics.csv"
PARAMETERS = {
    "settings": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "required": ["A", "B"],
        "properties": {"A": {"type": "string", "names": "tasks"}, "B": {"type": "string", "names": "tasks"}},
        "default": {},
        "description": "the task of each setting",
    },
    "models": {
        "type": "object",
        "minProperties": 1,
        "names": "models",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "the models to show, in order, each with its title",
    },
}


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; a panel per model."""
    models = options["models"]
    accuracy = table[table.metric == "accuracy"]
    shares = accuracy[accuracy.split == "test"].value
    left = np.floor(10 * np.nanmin([shares.quantile(0.01), 0.75])) / 10
    figure, grid = plt.subplots(
        1, len(models), figsize=(3.9 * len(models), 3), sharey=True, sharex=True, squeeze=False, layout="constrained"
    )
    lines = [
        "Share of the test quadrant, never seen in setting A, that is classified correctly at the end of training: the fraction "
        "of seeds that reach at most the share on the axis. A compositional solution has share 1 (dashed). Setting B is trained "
        "on all four quadrants, without redundancy, for comparison. The paper's claim, that the network trained in A does not "
        "have compositionality, is judged in degree (fewer seeds of A than of B reach 0.99) and in kind (most seeds of A get "
        "less than half). It is open if a 95 % interval of these fractions of seeds (Clopper and Pearson; of B's minus A's, "
        "Newcombe) includes 0 or one half.",
        "",
    ]
    for axes, (model, name) in zip(grid[0], models.items(), strict=True):
        lines.append(f"* {name}")
        reached = {}
        for setting, task in sorted(options["settings"].items()):
            rows = accuracy[(accuracy.model == model) & (accuracy.task == task)]
            values = rows[rows.split == "test"].value
            test = reached[setting] = values.dropna().sort_values()
            if test.empty:
                lines.append(f"  - setting {setting}: {style.mean(values)}")
                continue
            same = rows[rows.split == "validation"].value
            heights = np.arange(1, len(test) + 1) / len(test)
            axes.step([0, *test, 1], [0, *heights, 1], where="post", color=style.SETTINGS[setting], label=f"setting {setting}")
            outside = f", {int((test < left).sum())} below the panel's range" if (test < left).any() else ""
            lines.append(
                f"  - setting {setting}, {style.seeds(values)}{outside}: share mean {test.mean():.3f}, median "
                f"{test.median():.3f}, 5 % of seeds below {test.quantile(0.05):.3f}, minimum {test.min():.3f}; "
                f"{int((test >= 0.99).sum())} seeds reach 0.99, {int((test < 0.5).sum())} get less than half; accuracy on new "
                f"points of the training distribution {same.mean():.3f}"
            )
        if all(map(len, reached.values())):
            degree = claims.of_difference_of_shares(reached["B"] >= 0.99, reached["A"] >= 0.99)
            low, high = kind = claims.of_share(reached["A"] < 0.5)
            holds = [claims.verdict({"": one}) for one in (degree, (low - 0.5, high - 0.5))]
            lines.append(
                f"  - the claim in degree, B's fraction minus A's{claims.stated(degree)}: {holds[0]}; in kind, A's fraction"
                f"{claims.stated(kind)}: {holds[1]}"
            )
        axes.axvline(1, color="0.3", linestyle="--", linewidth=1, label="compositional", zorder=3)
        axes.xaxis.set_major_locator(MultipleLocator(0.1))
        axes.set(title=name, xlabel="share of the test quadrant correct", xlim=(left, 1.005), ylim=(0, 1.02))
        axes.grid(color="0.92")
    grid[0, 0].set_ylabel("fraction of seeds")
    grid[0, 0].legend(loc="upper left")
    return figure, "\n".join(lines)
