"""A word that training shows in one sentence: how many others with it are right, and how good are ordinary translations?"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compositional.figures.shared import intervals, named_runs, page, style, words

SOURCE = "metrics.csv"
PARAMETERS = named_runs.PARAMETERS | {
    "published": {
        "type": "object",
        "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        "default": {},
        "description": "the share of the sentences that published networks get right, by name; each is drawn as a line",
    },
}
_CONTEXT = "accuracy of context/"


def _counts(own: pd.DataFrame) -> tuple[int, int]:
    """How many answers are right, and of how many: every seed answers each sentence once. Diverged runs give no answers."""
    answers = own[own.metric.str.startswith(_CONTEXT) & (own.split == "test")].value.dropna()
    return round(answers.sum()), len(answers)


def _shares(own: pd.DataFrame) -> pd.Series:
    """The share of the sentences that each seed gets right."""
    return own[(own.split == "test") & (own.metric == "accuracy")].value


def _ordinary(own: pd.DataFrame, metric: str) -> pd.Series:
    return own[(own.split == "in_distribution") & (own.metric == metric)].value


def _caption(methods: dict[str, pd.DataFrame], published: dict[str, float]) -> str:
    """Numbers, all from the table."""
    everything = pd.concat(methods.values())
    lines = [
        "Translation with one new word, which training shows in one sentence only. Left: share of the other sentences with it "
        "that are right, by exact match with one translation each. Dots are seeds, bars means with 95 % intervals over seeds "
        "(Student's t, three seeds or more), for these very sentences. Right: BLEU on ordinary sentences (percent, "
        "sacrebleu, all translations of a sentence in the set as references), which shows whether the network translates at all. "
        "No checkpoint is chosen." + style.exposure(everything, everything),
        "",
    ]
    for label, own in methods.items():
        right, asked = _counts(own)
        if not asked:
            lines.append(f"* {label}: all runs diverged")
            continue
        contexts = own[own.metric.str.startswith(_CONTEXT)].groupby("metric", sort=False).value.mean()
        each = ", ".join(f"{name.removeprefix(_CONTEXT).replace('_', ' ')} {value:.2f}" for name, value in contexts.items())
        shares = _shares(own)
        bleu, exact = (style.summary(_ordinary(own, metric)) for metric in ("bleu", "accuracy"))
        lines.append(
            f"* {label} ({style.seeds(shares)}): {right} of {asked} right, {style.summary(shares)}; ordinary sentences: BLEU "
            f"{bleu}, exact match {exact}"
        )
        lines.append(f"  - by the words before it: {each}")
    return "\n".join(lines + [f"* published, {name}: {words.published(share)}" for name, share in published.items()])


def draw(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Figure, str]:
    """The figure and its caption from the tidy table; options: see PARAMETERS."""
    methods = style.methods(table, options["methods"])
    size = (7.2, 0.34 * len(methods) + 1.5)
    figure, (left, right) = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    shades = style.distinct_colors(own.regularizer.iloc[0] for own in methods.values())
    for place, own in enumerate(methods.values()):
        shade = shades[own.regularizer.iloc[0]]
        intervals.seeds_and_mean(left, _shares(own).to_numpy(), place, shade)
        intervals.seeds_and_mean(right, _ordinary(own, "bleu").to_numpy(), place, shade, largest=100)
    for index, (name, share) in enumerate(options["published"].items()):
        left.axvline(share, color="0.45", linestyle=style.line_of(index + 1), linewidth=1, label=f"published: {name}")
    left.set_yticks(range(len(methods)), [words.of_label(label, own, options) for label, own in methods.items()])
    left.set(xlabel="new-word sentences, share correct", xlim=(-0.03, 1.03), ylim=(len(methods) - 0.5, -0.5))
    right.set(xlabel="BLEU, ordinary sentences", xlim=(0, None))
    for axes in (left, right):
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
    page.legend(figure, (left, right), options, style.RUN, style.INTERVAL)
    return figure, _caption(methods, options["published"])
