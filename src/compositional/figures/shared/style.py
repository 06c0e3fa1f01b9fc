"""Colors, marks, numbers and texts that the figures share."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from compositional.runs import Run, format_lambda
from compositional.tasks import IN_DISTRIBUTION

# Sizes of text in the modules are relative to font.size.
RC: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.titlesize": "medium",
    "legend.fontsize": "small",
    "legend.title_fontsize": "small",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}

# Okabe and Ito's colors, which readers with any color vision can distinguish.
COLORS = {
    "none": "#000000",
    "entropy": "#0072B2",
    "recombination": "#D55E00",
    "recombination_terms": "#8C510A",
    "additivity": "#009E73",
    "smoothness": "#CC79A7",
    "interaction": "#56B4E9",
    "consistency": "#E69F00",
    "homomorphism": "#882255",
    # Halves of a term, and plain regularizers for comparison.
    "entropy_noise": "#7FB8DD",
    "entropy_norm": "#003D66",
    "recombination_seen": "#F2A26B",
    "smoothness_states": "#7A3E5F",
    # Another target of `homomorphism`, and its controls.
    "homomorphism_mean": "#332288",
    "homomorphism_norm": "#44AA99",
    "homomorphism_shuffled": "#DDAA33",
    "dropout": "#5E3C99",
    "weight_decay": "#B2ABD2",
    "label_smoothing": "#999999",
}
# What has the color of another term, with which no figure shows it.
ALIKE = {
    "consistency_translation": "consistency",
    "smoothness_embeddings": "smoothness",
    "homomorphism_then": "homomorphism",
    "homomorphism_then_mean": "homomorphism_mean",
    "homomorphism_then_shuffled": "homomorphism_shuffled",
    "modifier_homomorphism": "homomorphism",
    "modifier_homomorphism_norm": "homomorphism_norm",
    "modifier_homomorphism_shuffled": "homomorphism_shuffled",
}

SETTINGS = {"A": "#D55E00", "B": "#0072B2"}  # A: the redundant component is informative in training; B: it is not

RUN, INTERVAL, DEVIATION = "a run", "95 % interval of the mean", "standard deviation over seeds"  # in legends

BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}  # the box of a text that covers lines

_GOLDEN = (5**0.5 - 1) / 2  # of a turn: repeated steps of this size stay away from all earlier ones
_TONES = ((0.9, 0.75), (0.55, 0.9), (0.95, 0.45))  # saturation and value
_APART = 0.25  # minimum distance of colors in the unit cube
_QUALITATIVE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
_LINES, _MARKERS = ("-", "--", ":", "-."), "os^DvP*X"


def distinct_colors(names: Iterable[str]) -> dict[str, str]:
    """A color per regularizer. One without a color above gets a hue from its name, turned until it differs from all others."""
    ordered = sorted(set(names), key=lambda name: (name != "none", name))
    known = {name: ALIKE.get(name, name) for name in ordered}
    shared = {own: own if own in known else name for name, own in reversed(known.items())}  # of those with one color
    found = {name: COLORS[own] for name, own in known.items() if own in COLORS and shared[own] == name}
    taken = [colors.to_rgb(shade) for shade in COLORS.values()]
    for name in (one for one in ordered if one not in found):
        first = zlib.crc32(name.encode()) / 2**32
        tried = [colors.hsv_to_rgb(((first + turn * _GOLDEN) % 1, *tone)) for tone in _TONES for turn in range(24)]
        apart = [np.linalg.norm(np.array(taken) - shade, axis=1).min() for shade in tried]
        place = next((place for place, distance in enumerate(apart) if distance >= _APART), int(np.argmax(apart)))
        taken.append(tuple(tried[place]))
        found[name] = colors.to_hex(taken[-1])
    return found


def color(name: str) -> str:
    """The color of a regularizer that is shown alone, or together with those that have a color above."""
    return distinct_colors([name])[name]


def line_of(index: int) -> Any:
    """The line style of the model at this place among those of a panel: all are different."""
    return _LINES[index] if index < len(_LINES) else (0, (1, 1) * (index - len(_LINES) + 1) + (6, 1))


def marker_of(index: int) -> Any:
    """The marker of the model at this place: all are different."""
    return _MARKERS[index] if index < len(_MARKERS) else (index - len(_MARKERS) + 3, 1, 0)


def apart(count: int) -> list[Any]:
    """Colors of things without an order, which can be told from each other; of more than seven those of `shades`."""
    return [*_QUALITATIVE[:count]] if count <= len(_QUALITATIVE) else [*shades(count, 0, 0.8)]


def shades(count: int, first: float = 0.1, last: float = 0.85) -> np.ndarray:
    """Colors of an ordered quantity, such as depth, scale or distance: (count, 4). first, last: positions on the color map."""
    return matplotlib.colormaps["viridis"](np.linspace(first, last, count))


def present(wanted: dict[str, str], found: Iterable[str]) -> dict[str, str]:
    """The entries of {name: label} whose names are in a table: overlays of a configuration can add entries but not remove any."""
    return {name: label for name, label in wanted.items() if name in set(found)}


def interval(values: np.ndarray) -> float:
    """Half width of the 95 % confidence interval of the mean (Student's t); 0 for a single value."""
    return float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def drawn_interval(values: np.ndarray) -> float:
    """`interval` for drawing: NaN, which draws nothing, for two values: their interval is too wide to be useful."""
    return interval(values) if len(values) > 2 else np.nan


def summary(values: pd.Series, sign: str = "", of: str = "seed") -> str:
    """Mean of the known values with the half width of its 95 % interval, for captions; a single value is marked as such.

    sign: "+" for differences. of: the unit that the values belong to.
    """
    known = values.dropna().to_numpy()
    if len(known) < 2:
        return f"{known[0]:{sign}.3f} (1 {of})" if len(known) else f"unknown (no {of})"
    return f"{known.mean():{sign}.3f} ± {interval(known):.3f}"


def gains(rows: pd.DataFrame, plain: pd.DataFrame) -> pd.Series:
    """Values minus those of the plain runs of the same seed, by seed. Each table has one row per seed."""
    return (rows.set_index("seed").value - plain.set_index("seed").value).dropna()


def mean(values: pd.Series) -> str:
    """Mean of the known values, for captions, or that all runs diverged."""
    return f"{values.mean():.3f}" if values.notna().any() else f"all {len(values)} runs diverged"


def seeds(values: pd.Series) -> str:
    """The number of seeds in a mean, for captions, and the number of diverged ones if there are any."""
    known, lost = int(values.count()), int(values.isna().sum())
    return f"{known} seed{'' if known == 1 else 's'}" + (f", {lost} diverged" if lost else "")


def verdict(holds: bool, undecided: str = "", of: Iterable[float] = ()) -> str:
    """The words for whether a claim holds, for captions. undecided: why it is open, empty if it is not; of: numbers that it is
    about, one of which may be unknown (NaN)."""
    undecided = undecided or ("a number is unknown" if np.isnan([*of]).any() else "")
    return f"open, {undecided}" if undecided else "holds" if holds else "DOES NOT HOLD"


def accuracies(table: pd.DataFrame, split: str, metric: str = "accuracy") -> pd.DataFrame:
    """Accuracy (or another metric) of every run on "test" or, for each task, in distribution (its first member of this type)."""
    rows = table[table.metric == metric]
    if split != "in_distribution":
        return rows[rows.split == split]
    own = rows.groupby("task").split.agg(lambda names: next(name for name in IN_DISTRIBUTION if name in set(names)))
    return rows[rows.split == rows.task.map(own)]


def holds_nothing_out(table: pd.DataFrame, task: str) -> bool:
    """Whether a task's accuracy "in distribution" is that on training examples, because no others of their distribution exist."""
    return set(accuracies(table[table.task == task], "in_distribution").split) == {"train"}


def exposure(shown: pd.DataFrame, table: pd.DataFrame) -> str:
    """Sentences for captions that state which inputs of the test set the terms among the rows shown can show to the network."""
    on_images = shown.task.isin(table.task[table.metric == "additivity"])  # a metric of image tasks only
    said = ""
    if shown.regularizer[~on_images].str.startswith("recombination").any():
        said += (
            " For sequences, recombination exchanges words, or terms of logical forms, that are used alike in the training "
            "pairs. This is augmentation in disguise: a swap can produce test inputs, unless its words occur nowhere."
        )
    named = set(shown.regularizer[on_images]) - {"recombination_seen"}
    exchanging = sorted(name for name in named if name.startswith(("recombination", "additivity", "interaction")))
    if exchanging:
        said += (
            f" For pairs of images, terms that exchange halves ({', '.join(exchanging)}) show the network the inputs of test "
            "combinations, without their labels; recombination_seen shows combinations of the training set only."
        )
    return said


def methods(table: pd.DataFrame, wanted: dict[str, str | None]) -> dict[str, pd.DataFrame]:
    """The rows of every method by its label; methods without rows are left out.

    wanted: label -> "<model>/<regularizer>/lambda=<number>", as in a run's path, or None: left out; empty: every method
    in the table.
    """
    if not wanted:
        keys = table[["model", "regularizer", "lambda"]].drop_duplicates().sort_values(["model", "lambda", "regularizer"])
        settings = keys.itertuples(index=False, name=None)
        every = [Run("task", model, regularizer, strength, 0) for model, regularizer, strength in settings]
        wanted = {label(run): run.method for run in every}
    runs = {name: Run.parse(f"task/{path}/seed=0") for name, path in wanted.items() if path is not None}
    found = {
        name: at_lambda(table[(table.model == run.model) & (table.regularizer == run.regularizer)], run.strength)
        for name, run in runs.items()
    }
    return {name: rows for name, rows in found.items() if len(rows)}


def at_lambda(rows: pd.DataFrame, strength: float) -> pd.DataFrame:
    """Rows with this lambda, which may have more digits than those of a table."""
    return rows[np.isclose(rows["lambda"], strength, rtol=1e-9, atol=0)]  # a lambda can be arbitrarily small


def label(run: Run) -> str:
    """The name of a method that has no other name."""
    return run.model if run.regularizer == "none" else f"{run.model} + {run.regularizer} {format_lambda(run.strength)}"


def lambda_axis(axes: Axes, strengths: Iterable[float], *, linscale: float = 0.6, ticks: int | None = None) -> float:
    """Show lambda on the horizontal axis: linear up to the smallest positive one, which is returned, and logarithmic beyond.

    ticks: largest number of positive lambdas that are named; None: all.
    """
    positive = sorted(set(strengths) - {0.0})
    threshold = positive[0] if positive else 1.0
    axes.set_xscale("symlog", linthresh=threshold, linscale=linscale)
    named = positive[:: -(-len(positive) // ticks) or 1] if ticks else positive
    texts = [f"{value:g}" if value in named else "" for value in positive]
    axes.set_xticks([0, *positive], ["0", *texts], rotation=45 if len(named) > 6 else 0)
    axes.xaxis.minorticks_off()
    return threshold


def inside(mean: ArrayLike, half: ArrayLike, largest: float = 1.0) -> np.ndarray:
    """Lengths of error bars below and above means, from their half widths; cut at 0 and `largest`, the limits of the values.

    (2, n) for n means, or for one.
    """
    mean, half = np.atleast_1d(mean), np.atleast_1d(half)
    return np.stack([np.minimum(half, np.maximum(mean, 0)), np.minimum(half, np.maximum(largest - mean, 0))])


def named_diverged(runs: pd.Series | np.ndarray) -> dict[str, Any]:
    """The legend's entry for the crosses of diverged runs, if there are any."""
    return {"label": f"{RUN} that diverged"} if len(runs) else {}


def _mark(name: str, across: bool) -> Any:
    """The legend's handle for a mark that appears in every color: it is gray. across: intervals are horizontal."""
    if name == RUN:
        return Line2D([], [], linestyle="", marker="o", markersize=3.5, markeredgewidth=0, color="0.4", alpha=0.6, label=name)
    caps = tuple(Line2D([], [], marker="|" if across else "_", markersize=4, color="0.4") for _ in range(2))
    bar = LineCollection([[(0, 0), (0, 1)]], colors="0.4", linewidths=0.9)
    return ErrorbarContainer((Line2D([], [], linestyle=""), caps, (bar,)), has_xerr=across, has_yerr=not across, label=name)


def _drawn(handle: Any) -> bool:
    """Whether a handle draws an interval; not if its length is NaN."""
    return isinstance(handle, ErrorbarContainer) and any(len(line) for part in handle[2] for line in part.get_segments())


def legend_entries(panels: Iterable[Axes], *marks: str | Artist) -> tuple[list[Any], list[str]]:
    """Handles and names of a legend for several panels, each name once: what has the same name looks the same in all panels.

    marks: more entries: RUN; INTERVAL or DEVIATION, if a bar is drawn that is not of a published value; or labelled handles.
    """
    panels, found = list(panels), dict[str, Any]()
    labelled: list[tuple[Any, str]] = [pair for axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    for handle, name in labelled:
        empty = isinstance(handle, ErrorbarContainer) and not _drawn(handle)
        found[name] = found.get(name, handle[0]) if empty else handle
    drawn: list[Any] = [bar for axes in panels for bar in axes.containers if _drawn(bar)]
    bars = [bar for bar in drawn if not str(bar.get_label()).startswith("published")]
    across = not any(bar.has_yerr for bar in bars)
    wanted = (_mark(one, across) if isinstance(one, str) else one for one in marks if one not in (INTERVAL, DEVIATION) or bars)
    found |= {str(mark.get_label()): mark for mark in wanted}
    names = sorted(found, key=lambda name: name.startswith((RUN, INTERVAL, DEVIATION)))  # marks that every line has come last
    return [found[name] for name in names], names
