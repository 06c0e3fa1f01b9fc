"""Accuracy against the step in settings A and B: a redundant component speeds up early training and costs accuracy in the end."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import claims, page, style, words

SOURCE = "history.csv"
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
    "problem": {"type": "string", "default": "", "description": "what is learned, for the caption"},
    "early_steps": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "default": [],
        "description": "recorded steps at which the caption compares the settings' training accuracy",
    },
    "expectations": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["setting", "quantity"],
            "properties": {
                "setting": {"enum": ["A", "B"]},
                "quantity": {"enum": ["train", "test", "gap"]},
                "at_least": {"type": "number"},
                "at_most": {"type": "number"},
            },
        },
        "default": [],
        "description": "bounds on final mean accuracies (gap: train minus test) that the caption confirms or contradicts",
    },
    "logarithmic": {"type": "boolean", "default": False, "description": "draw steps on a logarithmic axis (linear up to 25)"},
}
_LINES = {"train": "-", "test": "--"}
_LETTERS = 11.6  # of the figure's title, per inch


def _curves(table: pd.DataFrame, model: str, task: str) -> dict[str, pd.DataFrame]:
    """Accuracy by split: one row per recorded step, one column per seed."""
    rows = table[(table.model == model) & (table.task == task) & (table.metric == "accuracy")]
    return {str(split): own.pivot(index="step", columns="seed", values="value") for split, own in rows.groupby("split")}


def _judge(expectation: dict[str, Any], values: pd.Series) -> str:
    """One line: the mean of values by seed with its interval, its expected range, and whether the expectation holds."""
    name = {"gap": "train - test gap"}.get(expectation["quantity"], f"{expectation['quantity']} accuracy")
    bounds = {key.replace("_", " "): expectation[key] for key in ("at_least", "at_most") if key in expectation}
    expected = " and ".join(f"{key} {bound:g}" for key, bound in bounds.items())
    least, most = expectation.get("at_least", -math.inf), expectation.get("at_most", math.inf)
    verdict = claims.verdict({"": claims.within(values, least, most)})
    value = f"{values.mean():.4f}{claims.stated(claims.of_mean(values), 4)}"
    return f"setting {expectation['setting']}, final {name} {value}, expected {expected}: {verdict}"


def _caption(curves: dict[str, dict[str, dict[str, pd.DataFrame]]], options: dict[str, Any]) -> str:
    lines = [
        f"Accuracy against the training step: {options['problem']}. Setting A: the redundant component is informative in "
        "training; setting B: it is not. Both have the same test set, recombinations never seen in A. Lines are means over "
        "seeds; bands and ± are one standard deviation over seeds. Claim: A trains faster early on, but has a gap between train "
        "and test in the end that B does not have. Verdicts are open if a 95 % interval (Student's t; Welch's for A minus B) "
        "includes the bound.",
        "",
    ]
    for model, of in curves.items():
        seeds = of["A"]["train"].shape[1]
        ends = {setting: of[setting]["train"].iloc[-1] for setting in of}
        lost = "".join(f", {int(end.isna().sum())} of {setting} diverged" for setting, end in ends.items() if end.isna().any())
        lines.append(f"* {model}, {seeds} seeds{lost}")
        for step in options["early_steps"]:
            if not all(step in of[setting]["train"].index for setting in ("A", "B")):
                lines.append(f"  - step {step} was not recorded (steps and record_every of the tasks)")
                continue
            values = {setting: of[setting]["train"].loc[step] for setting in of}
            a, b = (values[setting].mean() for setting in ("A", "B"))
            known = int((values["A"].notna() & values["B"].notna()).sum())
            ahead = int((values["A"] > values["B"]).sum())
            more = claims.of_difference(values["A"], values["B"])
            lines.append(
                f"  - step {step}: train accuracy A {a:.3f}, B {b:.3f}; A is ahead in {ahead} of {known} pairs of independent "
                f"runs, by {a - b:.3f}{claims.stated(more)}: {claims.verdict({'': more})}"
            )
        final = {setting: {split: curve.iloc[-1] for split, curve in splits.items()} for setting, splits in of.items()}
        for setting, splits in final.items():
            shown = ", ".join(
                f"{split} {values.mean():.3f} ± {values.std():.3f} (median {values.median():.3f})"
                if values.count() > 1
                else f"{split} {values.mean():.3f}"
                for split, values in sorted(splits.items())
            )
            lines.append(f"  - setting {setting} at the end: {shown}")
            if "validation" in splits:
                unseen, recombined = splits["train"] - splits["validation"], splits["validation"] - splits["test"]
                lines.append(
                    f"  - setting {setting}: {unseen.mean():.3f} of the gap arises on new images paired as in training, "
                    f"{recombined.mean():.3f} on new combinations"
                )
            splits["gap"] = splits["train"] - splits["test"]
        for expectation in options["expectations"]:
            lines.append(f"  - {_judge(expectation, final[expectation['setting']][expectation['quantity']])}")
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; one panel per model."""
    models = sorted(set(table.model))
    curves = {
        model: {setting: _curves(table, model, task) for setting, task in sorted(options["settings"].items())} for model in models
    }
    figure, grid = plt.subplots(
        1, len(models), figsize=(4.6 * len(models) + 0.6, 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, model in zip(grid[0], models, strict=True):
        for setting, splits in curves[model].items():
            for split, line in _LINES.items():
                mean, spread = splits[split].mean(axis=1), splits[split].std(axis=1, ddof=1).fillna(0)
                shade = style.SETTINGS[setting]
                axes.plot(mean.index, mean, line, color=shade, label=f"{split}, setting {setting}", linewidth=1.5)
                axes.fill_between(
                    mean.index,
                    mean - spread,
                    mean + spread,
                    color=shade,
                    alpha=0.15,
                    linewidth=0,
                    label="standard deviation over seeds",
                )
        if options["logarithmic"]:
            ticks = [step for step in (0, 25, 100, 500, 2000) if step <= mean.index[-1]]
            axes.set_xscale("symlog", linthresh=25, linscale=0.7)
            axes.set_xticks(ticks, map(str, ticks))
            axes.minorticks_off()
        axes.set(title=words.of(model, options), xlabel="step", xlim=(0, mean.index[-1]), ylim=(-0.02, 1.02))
        axes.grid(axis="y", color="0.92")
    grid[0, 0].set_ylabel("accuracy")
    width = options.get("style", {}).get("width", figure.get_figwidth())
    figure.suptitle(textwrap.fill(options["problem"], int(_LETTERS * width)))
    page.legend(figure, grid.flat, options)
    return figure, _caption(curves, options)
