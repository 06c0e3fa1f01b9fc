"""The mechanism: how much the target output depends on the redundant component, along training, beside the accuracies."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures import style

SOURCE = "history.csv"
PARAMETERS = {
    "problems": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["A", "B"],
            "properties": {"A": {"type": "string"}, "B": {"type": "string"}},
        },
        "default": {},
        "description": "a column each: its title, and the task of either setting",
    },
    "split": {
        "enum": ["train", "test"],
        "default": "test",
        "description": "on which examples; test: the same for both settings",
    },
}


def _curves(table: pd.DataFrame, task: str, split: str) -> dict[str, pd.DataFrame]:
    """Accuracy, both norms and their ratio: a row a recorded step, a column a seed."""
    rows = table[(table.task == task) & (table.split == split)]
    names = {"accuracy": "accuracy", "relevant": "influence_relevant", "redundant": "influence_redundant"}
    curves = {
        name: rows[rows.metric == metric].pivot(index="step", columns="seed", values="value") for name, metric in names.items()
    }
    # A dead network depends on nothing: its ratio is undefined and left out of the means.
    return curves | {"ratio": curves["redundant"] / curves["relevant"].where(curves["relevant"] > 0)}


def _line(axes: Axes, values: pd.DataFrame, shade: str, line: str, label: str) -> None:
    middle, low, high = (values.quantile(share, axis=1) for share in (0.5, 0.25, 0.75))
    axes.plot(middle.index, middle, line, color=shade, label=label, linewidth=1.4)
    axes.fill_between(middle.index, low, high, color=shade, alpha=0.15, linewidth=0)


def _caption(curves: dict[str, dict[str, dict[str, dict[str, pd.DataFrame]]]], split: str) -> str:
    lines = [
        "The norm of the gradient of the target output with respect to the redundant component (solid) and to the relevant one "
        f"(dashed), mean over {split} examples, their ratio, and the accuracies, along training. Lines are medians over seeds, "
        "bands the middle half. Images: score of the label, left half relevant, right half redundant. SCAN: mean logit of the "
        "target's turns and end symbol, which the primitive (walk, look, run, jump) does not determine; embeddings of the other "
        "words relevant, of the primitives redundant. Toy problem: score of the label, X_1 relevant, X_2 redundant. Setting A: the "
        "redundant component is informative in training; B: it is not. Claim: in A the influence of the redundant component rises "
        "early and stays well above B's.",
        "",
    ]
    for problem, of in curves.items():
        lines.append(f"* {problem}")
        for name in ("train", "test"):
            a, b = (of[setting][name]["ratio"].median(axis=1) for setting in ("A", "B"))
            both = [of[setting][name]["redundant"].median(axis=1) for setting in ("A", "B")]
            last = a.index[-1]
            above = int((of["A"][name]["ratio"].loc[last] > of["B"][name]["ratio"].loc[last].median()).sum())
            lines.append(
                f"  - {name} examples, ratio redundant / relevant: A {a.iloc[0]:.3f} at step {a.index[0]}, highest {a.max():.3f} at "
                f"step {a.idxmax()}, {a.loc[last]:.3f} at step {last}; B {b.iloc[0]:.3f}, highest {b.max():.3f} at step "
                f"{b.idxmax()}, {b.loc[last]:.3f} at the end; norm of the redundant one at the end A {both[0].loc[last]:.3g}, "
                f"B {both[1].loc[last]:.3g}; {above} of {of['A'][name]['ratio'].shape[1]} seeds of A end above B's median: "
                f"{'holds' if a.loc[last] > b.loc[last] else 'DOES NOT HOLD'}"
            )
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    problems, split = options["problems"], options["split"]
    curves = {
        problem: {
            setting: {name: _curves(table, task, name) for name in ("train", "test")} for setting, task in sorted(tasks.items())
        }
        for problem, tasks in problems.items()
    }
    figure, grid = plt.subplots(
        3, len(problems), figsize=(3.1 * len(problems) + 0.4, 6.4), sharex="col", squeeze=False, layout="constrained"
    )
    for column, (problem, settings) in enumerate(curves.items()):
        norms, ratio, accuracy = grid[:, column]
        for setting, of in settings.items():
            shade = style.SETTINGS[setting]
            _line(norms, of[split]["redundant"], shade, "-", f"redundant, setting {setting}")
            _line(norms, of[split]["relevant"], shade, "--", f"relevant, setting {setting}")
            _line(ratio, of[split]["ratio"], shade, "-", f"setting {setting}")
            _line(accuracy, of["train"]["accuracy"], shade, "-", f"train, setting {setting}")
            _line(accuracy, of["test"]["accuracy"], shade, "--", f"test, setting {setting}")
        last = int(of[split]["ratio"].index[-1])
        ticks = [0, *(10**power for power in range(5) if 10**power <= last)]
        for axes in grid[:, column]:
            axes.set_xscale("symlog", linthresh=1, linscale=0.5)
            axes.set_xticks(ticks, map(str, ticks))
            axes.set_xlim(0, last)
            axes.minorticks_off()
            axes.grid(axis="y", color="0.92")
        norms.set_yscale("log")
        norms.set_title(problem)
        ratio.set_ylim(bottom=0)
        accuracy.set(ylim=(-0.02, 1.02), xlabel="step")
    for axes, label in zip(grid[:, 0], ("gradient norm", "ratio redundant / relevant", "accuracy"), strict=True):
        axes.set_ylabel(label)
    for axes in grid[:, -1]:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    figure.align_ylabels(grid[:, 0])
    return figure, _caption(curves, split)
