"""Accuracy against the step for every lambda: is lambda too large, or has training not finished yet?"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import style, words

SOURCE = "history.csv"
PARAMETERS: dict = {}
TRAINED = 0.99  # mean accuracy on training examples from which a setting counts as trained
RISING = 0.01  # rise over the last quarter of the steps above which more steps would help a setting
_SPLITS = {"train": "training examples", "test": "recombinations never seen"}


def _curve(rows: pd.DataFrame, strength: float, split: str) -> pd.DataFrame:
    """Accuracy of one lambda on one split: one row per recorded step, one column per seed, empty (NaN) if it diverged."""
    own = rows[(rows["lambda"] == strength) & (rows.split == split)]
    curve = own.pivot(index="step", columns="seed", values="value")
    return curve.mask(curve.isna() | curve.iloc[-1].isna())  # the history of a diverged run ends with NaN


def verdict(curve: pd.Series) -> str:
    """Whether a setting was trained, judged by its mean accuracy on training examples by step."""
    curve = curve.dropna()
    if curve.empty:
        return "diverged"
    end, last = curve.iloc[-1], curve.index[-1]
    rise = end - curve[curve.index <= 0.75 * last].iloc[-1] if (curve.index <= 0.75 * last).any() else end
    if end >= TRAINED:
        return f"trained ({end:.3f})"
    if rise > RISING:
        return f"NOT TRAINED YET ({end:.3f}, {rise:+.3f} over the last quarter of the steps)"
    return f"stuck ({end:.3f}, {rise:+.3f} over the last quarter of the steps): too large a lambda, or too small a network"


def _panel(axes: Axes, rows: pd.DataFrame, split: str) -> None:
    """Draw one line per lambda: the mean over seeds, and every seed as a thin line."""
    strengths = sorted(set(rows["lambda"]))
    shades = dict(zip(strengths, ["black", *style.shades(len(strengths) - 1)], strict=True))
    for strength in strengths:
        own = _curve(rows, strength, split)
        name = "plain, mean" if strength == 0 else f"lambda {strength:g}, mean"
        axes.plot(own.index, own, color=shades[strength], linewidth=0.5, alpha=0.4)
        axes.plot(own.index, own.mean(axis=1), color=shades[strength], linewidth=1.5, label=name)
    if split == "train":
        axes.axhline(TRAINED, color="0.5", linestyle=":", linewidth=0.8, label=f"{TRAINED:g}: trained")
    axes.set(xlabel="step", ylim=(-0.03, 1.03))
    axes.grid(color="0.94")


def _caption(groups: dict[tuple[str, str, str], pd.DataFrame]) -> str:
    lines = [
        "Accuracy during training, measured on at most `curve_examples` examples of each split. Thin lines are seeds, thick ones "
        f"means; dotted: {TRAINED:g}, from which a setting counts as trained. A setting below it that still rose by more than "
        f"{RISING:g} over the last quarter of its steps is not trained yet: its accuracy on recombinations depends on the "
        "budget, not on lambda.",
        "",
    ]
    for (task, model, name), own in groups.items():
        lines += [f"* {task}, {model}, {name}", ""]
        for strength in sorted(set(own["lambda"])):
            curve = _curve(own, strength, "train")
            lost, count = curve.isna().all().sum(), curve.shape[1]
            left = f"; {lost} of {count} runs diverged and are left out" if 0 < lost < count else ""
            lines.append(f"  - lambda {strength:g}: {verdict(curve.mean(axis=1))}{left}")
        lines.append("")
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table."""
    rows = table[(table.metric == "accuracy") & table.split.isin(list(_SPLITS))]
    groups: dict[tuple[str, str, str], pd.DataFrame] = {}
    for (task, model), own in rows.groupby(["task", "model"]):
        names = sorted(set(own.regularizer) - {"none"}) or ["none"]
        groups |= {(task, model, name): own[own.regularizer.isin(["none", name])] for name in names}
    figure, grid = plt.subplots(
        len(groups), 2, figsize=(8.6, 2.3 * len(groups) + 0.3), sharey=True, squeeze=False, layout="constrained"
    )
    for panels, ((task, model, name), own) in zip(grid, groups.items(), strict=True):
        for axes, (split, title) in zip(panels, _SPLITS.items(), strict=True):
            _panel(axes, own, split)
            axes.set_title(
                f"{words.of(task, options)}, {words.of(model, options)}: {words.of(name, options)}" if split == "train" else title
            )
        for axes, whose in zip(panels, ("training examples", "recombinations"), strict=True):
            axes.set_ylabel(f"accuracy, {whose}")
        panels[1].plot([], [], color="0.4", linewidth=0.5, label=style.RUN)
        panels[1].legend(*style.legend_entries(panels), loc="center left", bbox_to_anchor=(1, 0.5))
    return figure, _caption(groups)
