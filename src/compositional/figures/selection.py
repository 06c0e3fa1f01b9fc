"""Choosing lambda without the test set: test accuracy of each protocol's choice, and why protocols differ."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import claims, page, paired, protocols, ranks, style, words
from compositional.figures.shared.protocols import COMPOSITIONAL, PLAIN, Choice

SOURCE = "metrics.csv"
ONE_MODEL = True
REGULARIZED = True
PARAMETERS = {
    "titles": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "task -> what it holds out for choosing lambda",
    },
    "refitted": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string", "names": "tasks"},
        "default": {},
        "description": "task -> the task on whose complete training set the chosen setting is trained again",
    },
    "longer": {
        "type": "object",
        "names": "tasks",
        "additionalProperties": {"type": "string", "names": "tasks"},
        "default": {},
        "description": "task -> the same task with more steps: its plain runs have equal compute",
    },
}
_LEARNED = 0.9  # accuracy in distribution from which a run counts as having learned its task
_NEAR = 0.02  # largest allowed loss of a choice compared with the oracle
# Protocol -> marker, and whether it is filled.
_MARKERS = {
    "in-distribution": ("s", True),
    "within one point": ("^", True),
    "compositional": ("o", True),
    "compositional, refitted": ("o", False),
    "leave one seed out": ("D", True),
    "oracle": ("|", True),
}
_ANY = "any"  # a single choice among all regularizers


def _named(settings: Iterable[protocols.Setting], name: str, called: Callable[[str], str] = str) -> str:
    """Settings without duplicates; for one regularizer only its lambdas. called: gives the words for a regularizer."""
    ordered = sorted(set(settings), key=lambda setting: (setting[1], setting[0]))
    return ", ".join(
        f"{called(regularizer)} {strength:g}" if name == _ANY else f"{strength:g}" for regularizer, strength in ordered
    )


class _Task:
    """The runs of one task, the choices of the protocols among them, and the accuracy of these choices.

    Attributes:
        runs: as returned by `protocols.runs_of`; refits: those of its refitted task, or None.
        choices: regularizer (or `any`) -> protocol -> choice.
    """

    def __init__(self, table: pd.DataFrame, task: str, options: dict[str, Any]) -> None:
        self.task, self.options = task, options
        self.runs = protocols.runs_of(table[table.task == task])
        other = table[table.task == options["refitted"].get(task)]
        self.refits = None if other.empty else protocols.runs_of(other)
        names = sorted(set(self.runs.index.get_level_values("regularizer")) - {"none"})
        groups = {name: [name] for name in names} | ({_ANY: names} if len(names) > 1 else {})
        self.choices = {group: self._with_refit(protocols.choices(self.runs, own)) for group, own in groups.items()}
        self.shades = style.distinct_colors({*names, "none"}) | {_ANY: "0.35"}
        longer = style.accuracies(table[table.task == options["longer"].get(task)], "test")
        self.longer = longer[longer.regularizer == "none"].set_index("seed").value

    def _with_refit(self, found: dict[str, Choice]) -> dict[str, Choice]:
        chosen = found["compositional"]
        setting = next(iter(chosen.settings.values()))
        if self.refits is not None and setting in set(self.refits.index.droplevel("seed")):
            seeds = sorted(set(self.refits.loc[setting].index))
            found["compositional, refitted"] = Choice(dict.fromkeys(seeds, setting), chosen.tied, chosen.score)
        return {protocol: found[protocol] for protocol in _MARKERS if protocol in found}

    def runs_for(self, protocol: str) -> pd.DataFrame:
        """The runs that a protocol reports on."""
        return self.refits if protocol == "compositional, refitted" else self.runs

    def test(self, protocol: str, choice: Choice) -> pd.Series:
        """Test accuracy of a choice, by seed."""
        return protocols.reached(self.runs_for(protocol), choice.settings)

    def gain(self, protocol: str, choice: Choice) -> pd.Series:
        """Gain of a choice over the plain run of the same seed, by seed."""
        return protocols.gains(self.runs_for(protocol), choice.settings)

    @property
    def plain(self) -> pd.Series:
        """Accuracy of the plain runs on the test set, by seed."""
        return self.runs.test.loc[PLAIN]

    def rank_correlation(self, column: str, learned: bool) -> tuple[float, int]:
        """Spearman's correlation of a validation accuracy with test accuracy (nan if one is constant), and the number of runs."""
        return protocols.rank_correlation(self.runs, column, _LEARNED if learned else 0.0)


def _scatter(axes: Axes, task: _Task, column: str, label: str) -> None:
    """Draw every run's test accuracy against a validation accuracy."""
    for name, own in task.runs.groupby(level="regularizer"):
        axes.scatter(own[column], own.test, s=13, color=task.shades[name], alpha=0.65, linewidths=0, zorder=3)
    axes.plot([0, 1], [0, 1], color="0.85", linewidth=0.8, zorder=0)
    (everything, count), (learned, few) = (task.rank_correlation(column, learned) for learned in (False, True))
    axes.set_title(f"Spearman {everything:+.2f} ({count} runs)\n{learned:+.2f} ({few} from {_LEARNED:g} in distr.)")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=label, ylabel="accuracy, test set")
    axes.set_box_aspect(1)
    axes.set_anchor("N")
    axes.grid(color="0.94")


def _outcomes(axes: Axes, task: _Task) -> None:
    """Draw what every protocol's choice achieves: one line per protocol, one block per regularizer."""
    place, ticks = 0.0, []
    for name, found in task.choices.items():
        begin = place
        for protocol, choice in found.items():
            values, shade = task.test(protocol, choice), task.shades[name]
            marker, filled = _MARKERS[protocol]
            known = values.dropna()
            axes.scatter(known, np.full(len(known), place), s=9, color=shade, alpha=0.35, linewidths=0)
            error = style.inside(known.mean(), style.drawn_interval(known.to_numpy()))
            axes.errorbar(
                [known.mean()],
                [place],
                xerr=error,
                color=shade,
                marker=marker,
                markersize=8 if marker == "|" else 4.5,
                markeredgewidth=2 if marker == "|" else 1,
                markerfacecolor=shade if filled else "white",
                elinewidth=0.8,
            )
            chosen = set(choice.settings.values())
            text = (
                f"{len(chosen)} settings"
                if name == _ANY and len(chosen) > 1
                else _named(chosen, name, lambda one: words.of(one, task.options))
            )
            # Not in the color of the line: some are too pale for small letters.
            axes.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), fontsize="x-small", va="center", color="0.25")
            place += 1
        label = "one choice over all" if name == _ANY else words.of(name, task.options)
        ticks.append(((begin + place - 1) / 2, textwrap.fill(label, 14)))
        place += 0.8
    axes.axvline(task.plain.mean(), color="0.2", linestyle=":", linewidth=1, label="plain, mean")
    if task.refits is not None:
        axes.axvline(task.refits.test.loc[PLAIN].mean(), color="0.4", linestyle="-.", linewidth=1, label="plain, refitted")
    if len(task.longer):
        axes.axvline(task.longer.mean(), color="0.6", linestyle="--", linewidth=1, label="plain, equal compute")
    axes.set_yticks(*zip(*ticks, strict=True))
    axes.set(xlim=(-0.03, 1.03), ylim=(place - 0.3, -1), xlabel="accuracy of the choice, test set")
    axes.grid(axis="x", color="0.94")


_HEADER = ("regularizer", "protocol", "lambda", "tied", "chosen by", "test (seeds)", "gain over plain", "below oracle")


def _rows(task: _Task) -> list[str]:
    """The task's table of choices, as reStructuredText."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, found in task.choices.items():
        oracle = task.test("oracle", found["oracle"]).mean()
        for protocol, choice in found.items():
            values = task.test(protocol, choice)
            tied = _named(choice.tied, name) if len(choice.tied) > 1 else ""
            score = "" if np.isnan(choice.score) else f"{choice.score:.3f}"
            regret = "" if "refitted" in protocol else f"{oracle - values.mean():.3f}"
            test, gain = f"{values.mean():.3f} ({values.count()})", style.summary(task.gain(protocol, choice), "+")
            writer.writerow((name, protocol, _named(choice.settings.values(), name), tied, score, test, gain, regret))
    return [".. csv-table::", f"   :header: {', '.join(_HEADER)}", "", *(f"   {line}" for line in text.getvalue().splitlines())]


def _verdicts(task: _Task) -> list[str]:
    """Claims about one task, compared with its numbers."""

    def lost(name: str, protocol: str) -> pd.Series:
        found = task.choices[name]
        return task.test("oracle", found["oracle"]) - task.test(protocol, found[protocol])

    gains = {name: task.gain("oracle", found["oracle"]) for name, found in task.choices.items() if name != _ANY}
    helpful = [name for name, gain in gains.items() if paired.helps(gain)]
    near = {name: claims.within(lost(name, COMPOSITIONAL), high=_NEAR) for name in helpful}
    far = [name for name in helpful if not near[name][0] > 0]  # also those for which it is open
    (own, _), (compositional, count) = (task.rank_correlation(column, True) for column in ("in_distribution", COMPOSITIONAL))
    better = protocols.better_ranking(task.runs, _LEARNED)
    lines = [
        f"  - chosen on compositional validation, every regularizer with a gain (oracle's interval above 0: "
        f"{', '.join(helpful) or 'none'}) is within {_NEAR:g} of its oracle: "
        + (claims.verdict(near) if helpful else style.verdict(False, "no regularizer has such a gain"))
        + (f" ({', '.join(f'{name} loses {style.summary(lost(name, COMPOSITIONAL))}' for name in far)})" if far else ""),
        f"  - over the {count} runs that learned the task, compositional validation orders test accuracy better than validation "
        f"in distribution (Spearman {ranks.stated(compositional)}, {ranks.stated(own)}; within a seed, more by "
        f"{style.summary(better)}): {claims.verdict({'': claims.of_mean(better)})}",
    ]
    if _ANY in task.choices:
        lines.append(
            f"  - one choice over all: {lost(_ANY, COMPOSITIONAL).mean():.3f} below the oracle on compositional validation, "
            f"{lost(_ANY, 'in-distribution').mean():.3f} in distribution"
        )
    if len(task.longer):
        gain = style.summary(task.longer - task.plain.reindex(task.longer.index), "+")
        lines.append(f"  - plain, equal compute ({task.options['longer'][task.task]}): {style.mean(task.longer)}, gain {gain}")
    return lines


def _caption(tasks: list[_Task], exposure: str) -> str:
    longer = " Dashed: plain with the compute of a second pass." if any(len(task.longer) for task in tasks) else ""
    refits = any(task.refits is not None for task in tasks)
    refit = " Dash-dotted: plain trained on both sets, with which open circles are compared." * refits
    refitted = "open circle, *compositional, refitted*: the same lambda trained on the training set and the validation set; "
    refitted *= refits
    lines = [
        "Choosing lambda without the test set. Left: accuracy on combinations of the test set against accuracy in "
        "distribution and against compositional validation (combinations also never seen, none of them in the test set), one "
        "point per run. Titles give Spearman's rank correlation, over all runs and over those that learned the task. Right: what "
        "each protocol's choice achieves on the test set, with seeds as dots, means with 95 % intervals (Student's t, three "
        f"seeds or more), and the chosen lambda. Dotted: plain.{refit}{longer}",
        "",
        "Protocols: square, *in-distribution*: best mean accuracy over seeds on examples like those of training; triangle, "
        f"*within one point*: the largest lambda whose mean accuracy in distribution is at most {protocols.POINT:g} below "
        "plain's; circle, *compositional*: best mean accuracy on the compositional validation set; "
        f"{refitted}diamond, *leave one seed out*: chosen for each seed on the others' compositional validation; bar, "
        "*oracle*: best mean accuracy on the test set itself, which is often what a paper calls its best lambda. Plain (lambda "
        "= 0) is always among the choices. Ties go to the smallest mean loss on the same member, then to the smallest lambda. A "
        "setting with a diverged run is never chosen. Gains are over the plain run of the same seed, with 95 % intervals "
        "(Student's t) that are not corrected for the number of settings. A claim is open if the 95 % interval of a loss, or of "
        "the difference of the rank correlations within each seed, includes its bound." + exposure,
        "",
    ]
    for task in tasks:
        settings = len(set(task.runs.index.droplevel("seed")))
        lost = int(task.runs.test.isna().sum())
        lines += [
            f"* {task.task} ({task.options['titles'].get(task.task, 'no title')}): {settings} settings compared, "
            f"{len(task.runs)} runs{f', {lost} diverged' if lost else ''}; plain {style.mean(task.plain)}",
            *_verdicts(task),
            "",
            *_rows(task),
            "",
        ]
    return "\n".join(lines)


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS.

    Raises:
        ValueError: no task has a member for choosing lambda.
    """
    chosen_on = (table.split == COMPOSITIONAL) & ~table.task.isin(list(options["longer"].values()))
    names = list(dict.fromkeys(table.task[chosen_on]))
    if not names:
        raise ValueError(
            f"selection: no task has a member {COMPOSITIONAL!r}: set its option validation_verb, validation_pairs or "
            "validation_offset"
        )
    tasks = [_Task(table, name, options) for name in names]
    heights = [max(2.3, 0.055 * sum(len(found) + 0.8 for found in task.choices.values()) + 0.4) for task in tasks]
    figure = plt.figure(figsize=(7.8, 2 * sum(heights) + 1.2), layout="constrained")
    grid = figure.add_gridspec(2 * len(tasks), 2, height_ratios=np.repeat(heights, 2), width_ratios=[1, 1.3])
    for row, task in enumerate(tasks):
        above, below = (figure.add_subplot(grid[2 * row + place, 0]) for place in range(2))
        _scatter(above, task, "in_distribution", "accuracy in distribution")
        _scatter(below, task, COMPOSITIONAL, "accuracy, compositional validation")
        right = figure.add_subplot(grid[2 * row : 2 * row + 2, 1])
        _outcomes(right, task)
        held_out = options["titles"].get(task.task)
        right.set_title(words.of(task.task, options) + (f"\nvalidation: {held_out}" if held_out else ""))
        for name, shade in task.shades.items():
            if name != _ANY:
                above.scatter([], [], s=13, color=shade, alpha=0.65, linewidths=0, label=words.of(name, options))
    used = {protocol for task in tasks for found in task.choices.values() for protocol in found}
    for protocol, (marker, filled) in _MARKERS.items():
        if protocol not in used:
            continue
        face = "0.3" if filled else "white"
        above.plot([], [], marker, color="0.3", markerfacecolor=face, markersize=5, label=f"choice: {protocol}")
    page.legend(figure, figure.axes, options, style.RUN, style.INTERVAL)
    return figure, _caption(tasks, style.exposure(table, table))
