"""The mechanism: how much the target output depends on the redundant component during training, and the accuracies."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import claims, style

SOURCE = "history.csv"
PARAMETERS = {
    "problems": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["A", "B"],
            "properties": {"A": {"type": "string", "names": "tasks"}, "B": {"type": "string", "names": "tasks"}},
        },
        "default": {},
        "description": "columns: the title of each, and its tasks in both settings",
    },
}
_SPLIT = "test"  # the split whose examples are used for drawing norms, the same for both settings


def _curves(table: pd.DataFrame, task: str, split: str) -> dict[str, pd.DataFrame]:
    """Accuracy, both norms and their ratio: one row per recorded step, one column per seed."""
    rows = table[(table.task == task) & (table.split == split)]
    names = {"accuracy": "accuracy", "relevant": "influence_relevant", "redundant": "influence_redundant"}
    curves = {
        name: rows[rows.metric == metric].pivot(index="step", columns="seed", values="value") for name, metric in names.items()
    }
    # The output of a dead network depends on nothing: its ratio is undefined and left out of the means.
    return curves | {"ratio": curves["redundant"] / curves["relevant"].where(curves["relevant"] > 0)}


def _line(axes: Axes, values: pd.DataFrame, shade: str, line: str, label: str, band: bool = True) -> None:
    middle, low, high = (values.quantile(share, axis=1) for share in (0.5, 0.25, 0.75))
    axes.plot(middle.index, middle, line, color=shade, label=label, linewidth=1.4)
    if band:
        axes.fill_between(middle.index, low, high, color=shade, alpha=0.15, linewidth=0, label="middle half of the seeds")


def _highest(values: pd.Series, digits: int) -> str:
    """The largest value of a curve and its step, for the caption."""
    return f"{values.max():.{digits}f} (step {values.idxmax()})" if values.notna().any() else "unknown"


def _caption(curves: dict[str, dict[str, dict[str, dict[str, pd.DataFrame]]]]) -> str:
    lines = [
        "The norm of the gradient of the target output with respect to the redundant component (solid) and to the relevant one "
        f"(dashed), averaged over {_SPLIT} examples, their ratio, and the accuracies, during training. Lines are medians over "
        "seeds, bands (except for accuracies) contain the middle half. Images: score of the label; the left half is relevant, "
        "the right half redundant. SCAN: mean logit of the target's turns and end symbol, which the primitive (walk, look, run, "
        "jump) does not determine; embeddings of primitives are redundant, those of other words relevant. Toy problem: score of "
        "the label; X_1 is relevant, X_2 redundant. Setting A: the redundant component is informative in training; B: it is not. "
        "Claim: in A the influence of the redundant component rises early and stays well above B's. It holds at the end if the "
        "95 % interval (Welch) of A's mean ratio minus B's is above 0, and is open if that includes 0.",
        "",
    ]
    for problem, of in curves.items():
        lines.append(f"* {problem}")
        for name in ("train", "test"):
            ratio, norm = ({setting: of[setting][name][kind].median(axis=1) for setting in of} for kind in ("ratio", "redundant"))
            first, last = ratio["A"].index[[0, -1]]
            shown = "; ".join(
                f"{setting} {own.loc[first]:.3f}, {_highest(own, 3)}, {own.loc[last]:.3f}" for setting, own in ratio.items()
            )
            seeds = of["A"][name]["ratio"].loc[last].dropna()
            ends = [of[setting][name]["ratio"].loc[last] for setting in ("A", "B")]
            more = claims.of_difference(*ends)
            lines.append(
                f"  - {name} examples, ratio redundant / relevant at step {first}, at its maximum, at step {last}: {shown}. "
                f"{int((seeds > ratio['B'].loc[last]).sum())} of {len(seeds)} seeds of A end above B's median; mean of A minus "
                f"B's {ends[0].mean() - ends[1].mean():.3f}{claims.stated(more)}: {claims.verdict({'': more})}"
            )
            times = norm["A"] / norm["B"]
            lines.append(
                f"  - {name} examples, norm of the redundant component's gradient: A {norm['A'].loc[first]:.3g} at step {first}, "
                f"{norm['A'].loc[last]:.3g} at step {last}; times B's: {times.loc[first]:.2f} at step {first}, at most "
                f"{_highest(times, 2)}, {times.loc[last]:.2f} at step {last}"
            )
        last_of = {setting: of[setting]["train"]["accuracy"].iloc[-1] for setting in of}
        lines += [f"  - setting {setting}: {style.seeds(end)}" for setting, end in last_of.items() if end.isna().any()]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    problems = options["problems"]
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
            _line(norms, of[_SPLIT]["redundant"], shade, "-", f"redundant, setting {setting}")
            _line(norms, of[_SPLIT]["relevant"], shade, "--", f"relevant, setting {setting}")
            _line(ratio, of[_SPLIT]["ratio"], shade, "-", f"setting {setting}")
            _line(accuracy, of["train"]["accuracy"], shade, "-", f"train, setting {setting}", band=False)
            _line(accuracy, of["test"]["accuracy"], shade, "--", f"test, setting {setting}", band=False)
        last = int(of[_SPLIT]["ratio"].index[-1])
        ticks = [0, *(10**power for power in range(5) if 10**power <= last)]
        for axes in grid[:, column]:
            axes.set_xscale("symlog", linthresh=1, linscale=0.5)
            axes.set_xticks(ticks, map(str, ticks))
            axes.set_xlim(0, last)
            axes.minorticks_off()
            axes.tick_params(labelbottom=True)
            axes.grid(axis="y", color="0.92")
            axes.set_xlabel("step")
        norms.set_yscale("log")
        norms.set_title(problem)
        ratio.set_ylim(bottom=0)
        accuracy.set_ylim(-0.02, 1.02)
    for axes, label in zip(grid[:, 0], ("gradient norm", "ratio redundant / relevant", "accuracy"), strict=True):
        axes.set_ylabel(label)
    for axes in grid[:, -1]:
        axes.legend(*style.legend_entries([axes]), loc="center left", bbox_to_anchor=(1, 0.5))
    figure.align_ylabels(grid[:, 0])
    return figure, _caption(curves)
