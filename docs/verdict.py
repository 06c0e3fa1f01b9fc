"""Draw the verdict from existing tables: python docs/verdict.py (`make verdict`).

Does a compositional term help on combinations never seen? The picture has one row per task and one column per term. It shows the
gain over the plain model, paired by seed, with its 95 % interval (Student's t). Nothing is trained: tables are read from
results/tables or, if missing there, from reference/, which the picture marks. If a task has members for choosing lambda, lambda
is chosen on them.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.stats import ttest_1samp

from compositional.figures.shared import paired, protocols, style
from compositional.figures.shared.protocols import PLAIN
from compositional.tables.shared.reading import read_table

ROOT = Path(__file__).parents[1]
# Folders of tables; today's come before the reference. True: it is the reference.
FOLDERS = {ROOT / "results" / "tables": False, ROOT / "reference": True}
PICTURE, PAGE = Path(__file__).with_suffix(".png"), Path(__file__).with_suffix(".md")

WORDS, FORMS, EXPRESSIONS, CHAINS = "sentences", "logical forms", "expressions", "expressions that cannot be reversed"
PAIRS, IMAGES = "pairs of images, one of them redundant", "other images"
CLASSES = (WORDS, FORMS, PAIRS, IMAGES)  # examples whose outputs are classes or symbols, not numbers
EVERYTHING = (*CLASSES, EXPRESSIONS, CHAINS)
# Name -> the column's heading, with the number of forward passes per step, and the kinds of examples it is meant for.
TERMS = {
    "entropy": ("entropy\n1 pass", EVERYTHING),
    "recombination": ("recombination †\n2 passes", (WORDS, FORMS, PAIRS, EXPRESSIONS)),
    "recombination_seen": ("recombination,\nseen pairs\n2 passes", (PAIRS,)),
    "recombination_virtual": ("recombination,\nspare words\n2 passes", (WORDS,)),
    "recombination_terms": ("recombination\nof terms †\n2 passes", (FORMS,)),
    "homomorphism": ("homomorphism\n3 or 4 passes", (WORDS,)),
    "additivity": ("additivity †\n2 passes", (PAIRS, EXPRESSIONS, CHAINS)),
    "interaction": ("interaction †\nabout 6 passes", (PAIRS, IMAGES)),
    "smoothness": ("smoothness\n1 pass", (WORDS, FORMS, EXPRESSIONS, CHAINS)),
    "consistency": ("consistency\n2 passes", (WORDS, FORMS)),
    "dropout": ("dropout\nplain, 1 pass", CLASSES),
    "weight_decay": ("weight decay\nplain, 1 pass", CLASSES),
    "label_smoothing": ("label smoothing\nplain, 1 pass", CLASSES),
}
MARKS = {"oracle": "*", "configured": "°"}  # behind a lambda that was not chosen without the test set
EXPOSE = ("recombination", "recombination_terms", "additivity", "interaction")  # their exchanges can make inputs of the test set
PLAIN_TERMS = ("dropout", "weight_decay", "label_smoothing")  # for comparison: they are not compositional
# Entries of the configuration that are shown under another name; of several, the best on the test set is shown, as an oracle.
VARIANTS = {"smoothness_embeddings": "smoothness"} | {
    f"recombination_of_{what}": "recombination_terms" for what in ("both", "kinds", "places")
}
SIGNIFICANT = 0.05  # p below it, after correction
NOTES = (
    "**Gain:** accuracy minus that of the plain run of the same seed, with the 95 % interval of its mean (Student's t, not "
    "corrected for the number of cells). p: of the t-test, corrected for it by Holm's method. The picture's strong colors have "
    "p < 0.05. All seeds of a task share its examples, which on digits, MNIST and expressions are one random draw: the interval "
    "does not include how much another draw would change the gain.",
    "**Lambda:** *chosen* by compositional validation, without the test set, if the task has such a set "
    "([selection](selection.md)). *oracle*: the best of several on the test set; it flatters the term, so it cannot show that "
    "the term helps. *configured*: the only one in its table, from a paper, its repository or an earlier ablation. An ablation "
    "on the same test set flatters the term, too (0.1 on SCAN jump).",
    "**Task:** cells of a row can be of different tasks. The table names them, with the plain model's accuracy. Compare terms "
    "only on the same task with the same plain accuracy.",
    "**Term:** after a colon, the entry of the configuration; if several entries were run, the one that is best on the test set.",
    "**Exposure:** `recombination` and `recombination_terms` can show the network inputs of the test set: sentences with their "
    "outputs, as augmented data would, and images and expressions without them. `additivity` and `interaction` can do the same "
    "with images, `additivity` also with expressions. The gains of these four alone are no evidence for combinations never "
    "seen. Two controls show no test input: `recombination_virtual` exchanges words that occur nowhere else, and "
    "`recombination_seen` makes only pairs of the training set "
    "([exposure](language_results.md#equivariance-or-exposure)).",
    "**Compute:** the plain run has as many steps, not as much time: a step of `recombination`, `consistency` or `additivity` "
    "takes two forward passes, of `homomorphism` three or four, of `interaction` about six.",
    "**Harms:** the verdict is about this lambda, often the only one that was run.",
    "Results without a table, such as those of COGS after 40,000 steps, are only in the text of their pages "
    "([results](results.md)). Tables in `reference/` have their commits and versions. Two streams: the model "
    "`primitive_attention`.",
)


@dataclass(frozen=True)
class Row:
    """One row: the runs of a model on the first task that has them, from the first table that has them.

    of: what the task's examples are. chosen_on: the task whose compositional validation chooses lambda. metric: the metric that
    is compared on the test set. missing: why there is no run at all.
    """

    label: str
    of: str = WORDS
    tables: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    model: str = ""
    chosen_on: str | None = None
    metric: str = "accuracy"
    missing: str = ""


# Tasks that differ only in how much of a template training shows have no rows.
_TEMPLATES = {
    "opposite right": "scan_opposite_right",
    "right": "scan_right",
    "jump around right": "scan_around_right_verbs3",
}
_HOMOMORPHISM = ("homomorphism_measure", "homomorphism_ablation")
_ARITHMETIC = ("arithmetic_ablation", "arithmetic_terms")
_PARTS = {"pairs": "held-out pairs", "unordered": "in both orders", "recombination": "held-out rows", "length": "longer chains"}
_GEOQUERY = ("comparison_geoquery", "comparison_geoquery_terms", "comparison_geoquery_question")
ROWS = (
    Row(
        "SCAN jump, two streams",
        WORDS,
        ("selection", "ablation", "comparison"),
        ("scan_jump", "scan_jump_select_look"),
        "primitive_attention",
        "scan_jump_select_look",
    ),
    Row("SCAN jump, LSTM", WORDS, ("comparison", "homomorphism_ablation"), ("scan_jump",), "lstm_attention_annealed"),
    Row("SCAN jump with spare words, LSTM", WORDS, ("comparison_exposure",), ("scan_jump_virtual",), "lstm_attention_annealed"),
    Row(
        "SCAN jump with spare words, two streams", WORDS, ("comparison_exposure",), ("scan_jump_virtual",), "primitive_attention"
    ),
    Row("SCAN jump, CGPS", WORDS, ("comparison_cgps",), ("scan_jump",), "cgps"),
    Row(
        "SCAN around right, LSTM",
        WORDS,
        ("comparison_templates", *_HOMOMORPHISM),  # the first has five seeds, the others have three
        ("scan_around_right",),
        "lstm_attention_annealed",
    ),
    Row("SCAN around right, two streams", WORDS, ("comparison",), ("scan_around_right",), "primitive_attention"),
    *(
        Row(f"SCAN {template}, {network}", WORDS, ("comparison_templates",), (task,), model)
        for template, task in _TEMPLATES.items()
        for network, model in (("LSTM", "lstm_attention_annealed"), ("two streams", "primitive_attention"))
    ),
    Row("SCAN length, LSTM", WORDS, _HOMOMORPHISM, ("scan_length",), "lstm_attention_annealed"),
    Row("SCAN length, two streams", WORDS, ("comparison",), ("scan_length",), "primitive_attention"),
    Row(
        "pairs of digits, CNN",
        PAIRS,
        ("selection", "ablation", "interaction_ablation"),
        ("digits_concat_refit", "digits_concat", "digits_concat_select_pairs"),
        "cnn",
        "digits_concat_select_pairs",
    ),
    *(
        Row(
            f"COGS, {part}, transformer, 12,000 steps",
            FORMS,
            ("reach_of_terms", "per_category_cogs"),  # the first has three seeds, the second has two
            ("cogs",),
            "transformer_small_long",
            metric=f"accuracy of {part}",
        )
        for part in ("lexical", "structural")
    ),
    Row("SLOG, 17 structures, transformer", FORMS, ("per_category_slog", "reach_of_terms"), ("slog",), "transformer_small_long"),
    *(
        Row(f"GeoQuery, {part} split, LSTM", FORMS, _GEOQUERY, (f"geoquery_{part}",), "lstm_input_feeding_small")
        for part in ("query", "question")
    ),
    Row("GeoQuery in FunQL, query split, LSTM", FORMS, ("readings_funql",), ("geoquery_funql",), "lstm_input_feeding_small"),
    Row(
        "GeoQuery in FunQL, plain functions, LSTM",
        FORMS,
        ("readings_funql_swaps",),
        ("geoquery_funql_plain",),
        "pointer_generator_small",
    ),
    Row(
        "GeoQuery in FunQL, question split, LSTM",
        FORMS,
        ("readings_funql_variants",),
        ("geoquery_funql_question",),
        "lstm_input_feeding_small",
    ),
    *(
        Row(
            f"arithmetic, {part}, LSTM",
            CHAINS if task == "length" else EXPRESSIONS,
            _ARITHMETIC,
            (f"arithmetic_{task}",),
            "lstm_regressor",
        )
        for task, part in _PARTS.items()
    ),
    Row(
        "pairs of MNIST images, CNN",
        PAIRS,
        ("selection_mnist",),
        ("mnist_concat_select_pairs",),
        "cnn",
        "mnist_concat_select_pairs",
    ),
    Row("IsSameClass, distance 32, ResNet", IMAGES, ("same_class_distance",), ("same_digit_32",), "resnet_reduced"),
    Row("Pathfinder, 5 dashes, ResNet", IMAGES, ("pathfinder_length",), ("pathfinder_5",), "resnet_pathfinder"),
    Row("translation, one new word, LSTM", WORDS, ("new_word",), ("daxy",), "lstm_attention_translation"),
    Row("translation, one new word, two streams", WORDS, ("new_word",), ("daxy",), "primitive_attention_translation"),
    Row("translation of captions", WORDS, missing="one seed, in BLEU: docs/language_results.md"),
)


@dataclass(frozen=True)
class Cell:
    """The result of a term on a task.

    entry: the regularizer's name in the configuration. how: lambda, and the entry, if several are of this term, are "chosen"
    without the test set, the "oracle" of several, or "configured", the only one in the table. task: the task, with the plain
    model's mean accuracy on its test set. lost: the number of seeds of which a run, plain or with the term, diverged.
    """

    gain: pd.Series
    strength: float
    entry: str
    how: str
    reference: bool
    task: str
    plain: float
    lost: int = 0

    @property
    def helps(self) -> str:
        """The verdict according to the interval, if there are enough seeds and none diverged. The gain of an oracle is flattered,
        so it is none."""
        if self.lost or paired.few(self.gain) or not paired.differs(self.gain):
            return "open"
        if self.gain.mean() < 0:
            return "harms"
        return "open" if self.how == "oracle" else "helps"


def read(name: str, folders: dict[Path, bool]) -> tuple[pd.DataFrame, bool] | None:
    """A figure's table from the first folder that has it, and whether that is the reference; None if no folder has it."""
    for folder, reference in folders.items():
        if (path := folder / f"{name}.csv").is_file():
            table = read_table(path)
            return table.assign(variant=table.regularizer).replace({"regularizer": VARIANTS}), reference
    return None


def chosen(tables: dict[str, tuple[pd.DataFrame, bool]], row: Row, term: str) -> float | None:
    """The lambda that compositional validation chooses for a term, 0 for plain; None if the row has no such runs."""
    for table, _ in tables.values():
        own = table[(table.task == row.chosen_on) & (table.model == row.model)]
        if term in set(own.regularizer):
            found = protocols.choices(protocols.runs_of(own), [term])["compositional"]
            return next(iter(found.settings.values()))[1]
    return None


def cell(tables: dict[str, tuple[pd.DataFrame, bool]], row: Row, term: str) -> Cell | None:
    """The result of a term in the row's tables; None if they have none."""
    wanted = chosen(tables, row, term)
    for task in row.tasks:
        for table, reference in tables.values():
            own = table[
                (table.task == task) & (table.model == row.model) & (table.split == "test") & (table.metric == row.metric)
            ]
            plain, runs = own[own.regularizer == PLAIN[0]], own[own.regularizer == term]
            shown = reference, task, plain.value.mean()
            if wanted == 0 and len(plain):  # no lambda is better than the plain model, so no term is used
                return Cell(pd.Series(0.0, index=plain.seed), 0.0, term, "chosen", *shown)
            runs = runs[runs["lambda"] == wanted] if wanted else runs
            settings = dict(list(runs.groupby(["lambda", "variant"])))
            gains = {setting: style.gains(rows, plain) for setting, rows in settings.items()}
            gains = {setting: gain for setting, gain in gains.items() if len(gain)}
            if gains:
                best = max(gains, key=lambda setting: gains[setting].mean())
                how = "chosen" if wanted else ("oracle" if len(settings) > 1 else "configured")
                lost = len(set(settings[best].seed) & set(plain.seed)) - len(gains[best])
                return Cell(gains[best], *best, how, *shown, lost)
    return None


def cells(folders: dict[Path, bool] = FOLDERS) -> dict[tuple[str, str], Cell]:
    """All results, by the label of a row and the name of a term."""
    found = {}
    for row in ROWS:
        tables = {name: known for name in row.tables if (known := read(name, folders)) is not None}
        for term in TERMS:
            if (known := cell(tables, row, term)) is not None:
                found[row.label, term] = known
    return found


def corrected(found: dict[tuple[str, str], Cell]) -> dict[tuple[str, str], float]:
    """p values of the t-test on the gains, by cell, corrected for the number of cells (Holm, Scand. J. Statist. 6, 1979)."""
    tested = {place: known.gain for place, known in found.items() if known.strength and len(known.gain) > 1}
    tested = {place: float(ttest_1samp(gain, 0).pvalue) if gain.any() else 1.0 for place, gain in tested.items()}
    ordered = sorted(tested, key=tested.__getitem__)
    factors = range(len(ordered), 0, -1)
    largest = itertools.accumulate((factor * tested[place] for factor, place in zip(factors, ordered, strict=True)), max)
    return dict(zip(ordered, (min(1.0, p) for p in largest), strict=True))


def text(known: Cell) -> str:
    """The text of a cell: the gain, which the page gives with more digits, lambda, and the number of seeds."""
    if not known.strength:
        return "plain chosen"
    mean = f"{known.gain.mean():+.2f}".replace("-0.00", "+0.00")
    mark = "" if known.how == "chosen" else MARKS[known.how]
    return f"{mean} ± {style.interval(known.gain.to_numpy()):.2f}\nλ = {known.strength:g}{mark}, n = {len(known.gain)}"


def draw(found: dict[tuple[str, str], Cell]) -> Figure:
    """The picture: colors by mean gain, bold if the verdict remains after correction, dashed frames if some tables are from
    reference/."""
    shades, holm = plt.get_cmap("RdBu"), corrected(found)
    mixed = len({known.reference for known in found.values()}) > 1
    figure, axes = plt.subplots(figsize=(0.98 * len(TERMS) + 2.3, 0.36 * len(ROWS) + 1.2), layout="constrained")
    for down, row in enumerate(ROWS):
        if row.missing:
            axes.text(0.1, down + 0.5, row.missing, va="center", fontsize=8, color="0.45", style="italic")
            continue
        for across, (term, (_, kinds)) in enumerate(TERMS.items()):
            known = found.get((row.label, term))
            bold = known is not None and known.helps != "open" and holm[row.label, term] < SIGNIFICANT
            mean = round(known.gain.mean(), 2) if known else 0.0  # as it is printed
            # Use square roots, so that small gains are visible next to large ones. Without bold text, colors are pale.
            face = shades(0.5 + (0.42 if bold else 0.12) * math.copysign(abs(mean) ** 0.5, mean)) if known else "0.97"
            frame = {"edgecolor": "0.3", "linestyle": "--"} if mixed and known and known.reference else {"edgecolor": "white"}
            axes.add_patch(Rectangle((across + 0.03, down + 0.05), 0.94, 0.9, facecolor=face, linewidth=0.8, **frame))
            shown = text(known) if known else "no table" if row.of in kinds else "–"
            axes.text(
                across + 0.5,
                down + 0.5,
                shown,
                ha="center",
                va="center",
                fontsize=(6.6 if bold else 7.1) if known else 6.5,
                fontweight="bold" if bold else "normal",
                color="white" if bold and abs(mean) > 0.4 else "black" if known else "0.6",
            )
    axes.set(xlim=(0, len(TERMS)), ylim=(len(ROWS), 0))
    axes.set_xticks([place + 0.5 for place in range(len(TERMS))], [label for label, _ in TERMS.values()], fontsize=7)
    axes.set_yticks([place + 0.5 for place in range(len(ROWS))], [row.label for row in ROWS], fontsize=9)
    axes.set_xlabel(
        "Gain in accuracy over the plain run of the same seed, with the 95 % interval of its mean. Blue: gain, red: loss. Bold, "
        "in strong colors: it differs from 0 after\ncorrection for the number of cells (Holm, p < 0.05), with 3 seeds or more, "
        "and a gain is not the oracle's. Lambda (λ) was chosen without the test set, unless\nmarked: * the oracle, the best on "
        "the test set; ° configured, the only one in its table. † can show the network inputs of the test set, so its gain alone "
        "is no evidence\nfor combinations never seen. Passes: forward passes per step; the plain run has equal steps. n: seeds. "
        "–: the term is not for examples of this kind.\nNo table: neither built here nor in reference/."
        + (" Dashed: from reference/." if mixed else ""),
        fontsize=9,
    )
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    return figure


def page(found: dict[tuple[str, str], Cell]) -> str:
    """The same results as a page: question, answer, counts, and every cell with its seeds and its table."""
    counts = {
        word: sum(known.helps == word and known.strength > 0 for known in found.values()) for word in ("helps", "harms", "open")
    }
    plain = sum(not known.strength for known in found.values())
    few = sum((paired.few(known.gain) or known.lost > 0) and paired.differs(known.gain) for known in found.values())
    lost = " or diverged runs" if any(known.lost for known in found.values()) else ""
    oracles = sum(known.helps == "open" and paired.differs(known.gain) for known in found.values()) - few
    holm = corrected(found)
    kept = {word: [place for place, p in holm.items() if found[place].helps == word and p < SIGNIFICANT] for word in counts}
    helping = [place for place, known in found.items() if known.helps == "helps" and known.strength]
    unexposed = [sum(place[1] not in (*EXPOSE, *PLAIN_TERMS) for place in places) for places in (helping, kept["helps"])]
    possible = sum(row.of in kinds for row in ROWS if not row.missing for _, kinds in TERMS.values())
    lines = [
        "# The verdict",
        "",
        "<!-- Written by `make verdict`: edit docs/verdict.py instead. -->",
        "",
        "Does a compositional term help on combinations never seen?",
        "",
        *textwrap.wrap(
            f"A cell is one term on one row. In {len(kept['helps'])} of {len(found)} cells, the gain is above 0 after correction "
            f"for their number. In {unexposed[1]} of these, the term is compositional and cannot show the network inputs of the "
            "test set.",
            136,
        ),
        "",
        "[![Gains by task and term](verdict.png)](verdict.png)",
        "",
        *textwrap.wrap(
            f"Of {possible} cells whose term is meant for the row's examples, {len(found)} have a table. The interval is above "
            f"0 in {counts['helps']} (helps), below 0 in {counts['harms']} (harms), and includes 0 in "
            f"{counts['open'] - few - oracles} (open). {oracles + few} more exclude 0 but are open: in {oracles}, the lambda is "
            f"an oracle's; {few} have fewer than {paired.FEWEST} seeds{lost}. In {plain}, the plain model was chosen. "
            f"After correction for the {len(holm)} cells with an interval, {len(kept['helps'])} of the "
            f"{counts['helps']} and {len(kept['harms'])} of the {counts['harms']} remain (p < {SIGNIFICANT}). Without plain "
            f"regularizers and terms that can show inputs of the test set, {unexposed[0]} gains are left, {unexposed[1]} of them "
            "after correction.",
            136,
        ),
        "",
        "## How to read it",
        "",
        *(line for note in NOTES for line in textwrap.wrap(note, 136, initial_indent="* ", subsequent_indent="  ")),
        "",
        "## Every cell",
        "",
        "| row | term | gain | lambda | verdict | p | seeds | task (plain) | table |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (label, term), known in found.items():
        verdict = known.helps if known.strength else "plain chosen"
        strength = f"{known.strength:g}, {known.how}"
        p = f"{holm[label, term]:.2g}" if (label, term) in holm else ""
        named = term if known.entry == term else f"{term}: `{known.entry}`"
        seeds = f"{len(known.gain)}" + (f", {known.lost} diverged" if known.lost else "")
        cells = (label, named, style.summary(known.gain, "+"), strength, verdict, p, seeds)
        cells += (f"`{known.task}` ({known.plain:.3f})",)
        lines.append(f"| {' | '.join(cells)} | {'reference' if known.reference else 'results'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    everything = cells()
    with plt.rc_context(style.RC):
        draw(everything).savefig(PICTURE, metadata={"Software": None})
    PAGE.write_text(page(everything), encoding="utf-8")
