"""The published attempt on arithmetic expressions: accuracy and the penalized change against lambda, with published values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compositional.figures.shared import bars, claims, page, paired, style, words

SOURCE = "metrics.csv"
REGULARIZED = True
PARAMETERS = {
    "leak": {"type": "string", "names": "tasks", "default": "arithmetic", "description": "task that leaks its test set"},
    "held_out": {
        "type": "string",
        "names": "tasks",
        "default": "arithmetic_pairs",
        "description": "task whose test set is held out of training",
    },
    "terms": {
        "type": "object",
        "minProperties": 1,
        "names": "regularizers",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["title", "representation"],
            "properties": {"title": {"type": "string"}, "representation": {"type": "string", "names": "representations"}},
        },
        "default": {},
        "description": "regularizer -> {title of its column, representation whose change the regularizer penalizes}",
    },
    "published": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["lambda", "accuracy", "change"],
            "properties": {"lambda": {"type": "number"}, "accuracy": {"type": "number"}, "change": {"type": "number"}},
        },
        "default": [],
        "description": "published values of the first term: {lambda, accuracy, change at the end}",
    },
}
CLOSE = 0.05  # accuracies that differ by at most this count as about the same
LARGEST = 1.0  # lambda in the paper


def _change(table: pd.DataFrame, representation: str, split: str = "train") -> pd.DataFrame:
    return table[(table.metric == f"change of {representation}") & (table.split == split)]


def _own(rows: pd.DataFrame, term: str) -> pd.DataFrame:
    """The runs of a term and the plain ones."""
    return rows[rows.regularizer.isin(["none", term])]


def _panel(axes: Axes, groups: dict[str, pd.DataFrame], published: dict[float, float], largest: float) -> None:
    """Draw bars side by side at every lambda. groups: rows by the name of their bars."""
    strengths = sorted({float(strength) for rows in groups.values() for strength in rows["lambda"]} | set(published))
    width = 0.8 / (len(groups) + 1)
    for place, strength in enumerate(strengths):
        values = {bars.PUBLISHED: pd.Series([published[strength]] if strength in published else [], dtype=float)}
        values |= {name: style.at_lambda(rows, strength).value for name, rows in groups.items()}
        for number, (name, own) in enumerate(values.items()):
            bars.bar(axes, place + (number - len(groups) / 2) * width, own, name, width=width, upright=True, largest=largest)
    axes.set_xticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
    axes.grid(axis="y", color="0.93")
    axes.set_axisbelow(True)


def _published_claims(leak: pd.DataFrame, shares: pd.Series, options: dict[str, Any]) -> list[str]:
    """What the paper states about its test set and accuracy, compared with our measurements. shares: by metric."""
    given = {row["lambda"]: row["accuracy"] for row in options["published"]}
    plain = leak[leak.regularizer == "none"].value
    known = shares["examples in training"]
    lines = [
        f"* reported: test expressions are not seen during training. Measured: training has {known:.1%} of the test examples and "
        f"{shares['distinct inputs in training']:.1%} of the distinct ones: {style.verdict(known == 0)}. (The distinct ones in "
        "training, divided by the number of all test examples, are "
        f"{shares['distinct inputs in training per example']:.1%}: the paper's code review reports such an overlap, about 57 %)"
    ]
    if 0 in given:
        lines.append(
            f"* reported: plain accuracy {given[0]:.2f}. Measured in the same way: {style.summary(plain)} "
            f"({style.seeds(plain)}), within {CLOSE:g}: "
            f"{claims.verdict({'': claims.within(plain, given[0] - CLOSE, given[0] + CLOSE)})}"
        )
    return lines


def _named(strengths: Iterable[float]) -> str:
    return ", ".join(f"{strength:g}" for strength in strengths) or "no lambda"


def _claims_of(term: str, tables: dict[str, pd.DataFrame], representation: str) -> list[str]:
    """What the paper states about a term, and the effect of the term on expressions held out of training."""
    leak, held_out = (paired.gains(tables[name], "test") for name in ("leak", "held_out"))
    lines = []
    up_to = leak[(leak.regularizer == term) & (leak["lambda"] <= LARGEST)].dropna(subset="gain").groupby("lambda").gain
    small = up_to.mean().abs()
    if len(small):
        largest = style.summary(up_to.get_group(small.idxmax()), "+")
        near = {f"{strength:g}": claims.within(gain, -CLOSE, CLOSE) for strength, gain in up_to}
        lines.append(
            f"  - reported: no lambda up to {LARGEST:g} changes accuracy by more than {CLOSE:g}. Measured in the same way: at "
            f"most {small.max():.3f}, at lambda {small.idxmax():g} ({largest}): {claims.verdict(near)}"
        )
    changes = _own(_change(tables["leak"], representation), term).dropna(subset="value").groupby("lambda").value
    means = changes.mean()
    by_seed = _own(_change(tables["leak"], representation), term).pivot(index="seed", columns="lambda", values="value")
    falls = {f"{low:g} to {high:g}": claims.of_mean(by_seed[low] - by_seed[high]) for low, high in pairwise(means.index)}
    start = _change(tables["leak"], representation, "initialization").value.mean()
    lines.append(
        f"  - reported: R falls with lambda. Measured: {start:.2f} before training, after it "
        + ", ".join(f"{value:.2f} at {strength:g}" for strength, value in means.items())
        + f": {claims.verdict(falls) if falls else style.verdict(False, 'fewer than two lambdas are known')}"
    )
    gains = dict(list(held_out[held_out.regularizer == term].groupby("lambda").gain))
    found = {strength: gain.mean() for strength, gain in gains.items() if paired.differs(gain)}
    lines.append(
        "  - held out, accuracy minus that of the seed's plain run: "
        + "; ".join(f"{style.summary(gain, '+')} at {strength:g}" for strength, gain in gains.items())
        + f". The interval is above 0 at {_named(strength for strength, mean in found.items() if mean > 0)}, below 0 at "
        f"{_named(strength for strength, mean in found.items() if mean < 0)}"
    )
    return lines


def _caption(tables: dict[str, pd.DataFrame], options: dict[str, Any]) -> str:
    accuracy = {name: style.accuracies(table, "test") for name, table in tables.items()}
    shares = tables["leak"][tables["leak"].split == "reference"].groupby("metric").value.first()
    plain = {name: rows[rows.regularizer == "none"].value for name, rows in accuracy.items()}
    lines = [
        "The published attempt at a compositional regularizer on arithmetic expressions, repeated. Top: share of test "
        "expressions whose value is predicted within 0.5, against the strength lambda of the term. Bottom: R, the mean squared "
        "change of the penalized representation from symbol to symbol, at the end of training. Gray: published values, read off "
        "the paper's figures. Orange: the paper's protocol, whose test expressions occur in training. Blue: the same, tested on "
        "a fifth of all expressions, which are held out of training. Bars are means with 95 % intervals (Student's t, three "
        "seeds or more), dots are seeds. Gains are paired by seed, and so are changes from lambda to lambda; their intervals are "
        "not corrected for the number of lambdas. All seeds share one draw of examples, so intervals and verdicts leave out how "
        "much draws differ. A claim is open if an interval includes its bound. The budget is fixed and nothing is chosen on the "
        "test set.",
        "",
        *_published_claims(accuracy["leak"], shares, options),
        f"* held out of training: plain accuracy {style.summary(plain['held_out'])} ({style.seeds(plain['held_out'])}), in the "
        f"published way {style.summary(plain['leak'])}",
    ]
    for term, about in options["terms"].items():
        lines += [f"* {about['title']}", "", *_claims_of(term, tables, about["representation"]), ""]
    lost = sum(int(rows.value.isna().sum()) for rows in accuracy.values())
    return "\n".join(lines + ([f"{words.runs(lost)} diverged: left out."] if lost else []))


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    tables = {name: table[table.task == options[name]] for name in ("leak", "held_out")}
    terms = options["terms"]
    counts = [_own(table, term)["lambda"].nunique() for term in terms]
    figure, grid = plt.subplots(
        2, len(terms), figsize=(1.5 + 0.8 * sum(counts), 5.6), width_ratios=counts, squeeze=False, layout="constrained"
    )
    names = {"leak": bars.LEAK, "held_out": bars.HELD_OUT}
    for column, (term, about) in enumerate(terms.items()):
        published = options["published"] if column == 0 else []
        for axes, key, largest in zip(grid[:, column], ("accuracy", "change"), (1.0, np.inf), strict=True):
            rows = {
                name: style.accuracies(own, "test") if key == "accuracy" else _change(own, about["representation"])
                for name, own in tables.items()
            }
            groups = {names[name]: _own(own, term) for name, own in rows.items()}
            _panel(axes, groups, {row["lambda"]: row[key] for row in published}, largest)
        grid[0, column].set(title=about["title"], ylim=(0, 1.03))
        for axes, label in zip(grid[:, column], ("accuracy", "R at the end of training"), strict=True):
            axes.set(xlabel="lambda", ylabel=label)
    page.legend(figure, grid.flat, options, style.INTERVAL)
    return figure, _caption(tables, options)
