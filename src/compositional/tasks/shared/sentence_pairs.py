"""What sequence tasks are built from: pairs of sentences whose words (or subwords, or symbols) are separated by spaces.

A sequence task is a module with a loader (a dataset's `load`, or its grammar) and a split (which pairs are for training and which
for the test). Its vocabulary consists of all words that occur in its sentences.
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
    """The return values of a sequence task's `build`.

    Args:
        members: rows (input, output) or (input, output, category) by member; "train" and "test", the recombinations, are
            required. Final metrics include the accuracy of every category. A row of category "a/b" also counts for category "a",
            and "a/b; c/d" counts for "a/b", "a", "c/d" and "c".
        in_distribution: the member whose accuracy shows how well training went.
        categorize: returns the category of a pair of the test set, if rows have none.
        about: further entries of task.json. "virtual_words" are added to the vocabularies of both sides. By default no input of
            the test set may occur in training; `disjoint` overrides this.

    Raises:
        ValueError: a member has no rows, or rows that are not as described.
    """
    if categorize is not None:
        members = {**members, "test": [(*row, categorize(*row[:2])) for row in members["test"]]}
    for name, rows in members.items():
        if wrong := [row for row in rows if len(row) not in (2, 3) or not all(isinstance(part, str) for part in row)]:
            raise ValueError(
                f"{name} has the row {wrong[0]!r}; it must be (input, output) or (input, output, category), all text"
            )
        if wrong := [row for row in rows if len(row) != len(rows[0])]:
            raise ValueError(f"{name} has the rows {rows[0]!r} and {wrong[0]!r}; either all rows have a category or none")
    if empty := [name for name, rows in members.items() if not rows]:
        raise ValueError(f"no pairs are left for {', '.join(empty)}: change the task's options")
    found = {name: Dataset.from_dict(dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))) for name, rows in members.items()}
    said = about.get("virtual_words", [])
    # Anything else is refused when the task is checked.
    virtual = [word for word in said if isinstance(word, str)] if isinstance(said, list) else []
    for side, column in (("source_words", "input"), ("target_words", "output")):
        sentences = [sentence for member in found.values() for sentence in member[column][:]]
        about[side] = list(Vocabulary.of(sentences + virtual).words)
    return DatasetDict(found), {
        "in_distribution": in_distribution,
        "disjoint": [{"columns": ["input"], "members": ["test"]}],
    } | about
