"""What sequence tasks are built from: pairs of sentences whose words (or subwords, or symbols) stand between spaces.

A sequence task is one module: a loader (a dataset's `load`, or its grammar), a split (which pairs train, which test) and, in how
it writes its sentences, its vocabulary rule: what stands between spaces is a word, and a task's words are all that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datasets import Dataset, DatasetDict

from compositional.language.vocabulary import Vocabulary

COLUMNS = ("input", "output", "category")


def task(
    members: Mapping[str, Sequence[tuple[str, ...]]],
    in_distribution: str,
    categorize: Callable[[str, str], str] | None = None,
    **about: Any,
) -> tuple[DatasetDict, dict]:
    """What a sequence task's `build` returns.

    Args:
        members: rows (input, output) or (input, output, category) by member; "train" and "test", the recombinations, must be
            there. Final metrics give the accuracy of every category; "a/b" counts for the category "a" too, and "a/b; c/d"
            for all of both.
        in_distribution: the member whose accuracy stands for what was learned.
        categorize: gives the category of a pair of the test set, where rows have none.
        about: more entries of task.json; "virtual_words" join the vocabularies of both sides. By default no input of the test
            set may occur in training; `disjoint` overrides it.
    """
    if categorize is not None:
        members = {**members, "test": [(*row, categorize(*row)) for row in members["test"]]}
    found = {name: Dataset.from_dict(dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))) for name, rows in members.items()}
    for side, column in (("source_words", "input"), ("target_words", "output")):
        sentences = [sentence for member in found.values() for sentence in member[column][:]]
        about[side] = list(Vocabulary.of(sentences + about.get("virtual_words", [])).words)
    return DatasetDict(found), {
        "in_distribution": in_distribution,
        "disjoint": [{"columns": ["input"], "members": ["test"]}],
    } | about
