"""SCAN jump as episodes of meta-learning for compositionality (MLC; Lake and Baroni, Nature 2023, code brendenlake/MLC-ML).

An input is a query and study pairs: "<command> | <command> means <actions> | ...". All are rows of the published training set, in
which jump stands alone. In 95 % of the training episodes the meanings are permuted: look, run, jump, walk, left and right change
places in all commands, and apart from that the six action symbols in all actions. So training shows "jump" in every place of a
command, under other meanings: it is not comparable with networks that are trained on the split alone. Every episode asks for a
new command and for one of its own study pairs (the copy). In the test set meanings are true, and one of the pairs is
"jump means I_JUMP".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from datasets import DatasetDict

from compositional import randomness
from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "episodes": {
        "type": "integer",
        "minimum": 16,
        "default": 50000,
        "description": "training episodes, drawn once: two examples each, a new command and a copy",
    },
    "pairs": {"type": "integer", "minimum": 1, "default": 10, "description": "study pairs of an episode"},
}
LONE_JUMPS = 1467  # lines "jump" of the published training set
PERMUTED = 0.95
HELD_OUT = 1024  # fresh episodes of the training distribution
_SEPARATOR, _MEANS = "|", "means"
_WORDS, _SYMBOLS = (*scan.ACTIONS, *scan.TURNS), (*scan.ACTIONS.values(), *scan.TURNS.values())
_JUMP = ("jump", scan.ACTIONS["jump"])


def _permuted(source: np.random.Generator) -> tuple[dict[str, str], dict[str, str]]:
    """What words and what symbols become in an episode: themselves, or others by two permutations, not both of which keep all."""
    if source.random() >= PERMUTED:
        return {}, {}
    while True:
        words, symbols = (
            dict(zip(names, (names[place] for place in source.permutation(len(names))), strict=True))
            for names in (_WORDS, _SYMBOLS)
        )
        if any(before != after for mapping in (words, symbols) for before, after in mapping.items()):
            return words, symbols


def _written(
    query: tuple[str, str], study: list[tuple[str, str]], words: dict[str, str], symbols: dict[str, str]
) -> tuple[str, str]:
    """One example: the query with its study pairs, and its actions, after words and symbols have been replaced."""

    def said(text: str, mapping: dict[str, str]) -> str:
        return " ".join(mapping.get(word, word) for word in text.split())

    shown = (f"{_SEPARATOR} {said(command, words)} {_MEANS} {said(actions, symbols)}" for command, actions in study)
    return " ".join([said(query[0], words), *shown]), said(query[1], symbols)


def _training(rows: list[tuple[str, str]], count: int, pairs: int, source: np.random.Generator) -> tuple[list, list]:
    """New commands and copies of `count` episodes. Every row is a new command once before any is one again."""
    new, copies = [], []
    order = np.concatenate([source.permutation(len(rows)) for _ in range(-(-count // len(rows)))])[:count]
    for row in order:
        others = source.choice(len(rows) - 1, pairs, replace=False)
        study = [rows[other + (other >= row)] for other in others]
        meanings = _permuted(source)
        new.append(_written(rows[row], study, *meanings))
        copies.append(_written(study[source.integers(pairs)], study, *meanings))
    return new, copies


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training episodes, fresh ones of the same distribution (in_distribution: new commands; copies), 7,706 test episodes.

    Reads no file. task.json says of study pairs: "study", how many, what stands before each, and the most words of a query and
    one pair.
    """
    source, pairs = randomness.generator(randomness.derive("scan_jump_mlc")), parameters["pairs"]
    rows, held_out = scan.add_primitive("jump", LONE_JUMPS)
    new, copies = _training(rows, parameters["episodes"], pairs, source)
    fresh_new, fresh_copies = _training(rows, HELD_OUT, pairs, source)
    test = []
    for query in held_out:
        study = [rows[row] for row in source.choice(len(rows), pairs, replace=False)]
        study[source.integers(pairs)] = _JUMP
        test.append(_written(query, study, {}, {}))
    members = {"train": new + copies, "in_distribution": fresh_new, "copies": fresh_copies, "test": test}
    parts = ([part.split() for part in text.split(f" {_SEPARATOR} ")] for member in members.values() for text, _ in member)
    longest = max(len(query) + 1 + max(map(len, study)) for query, *study in parts)
    about = {"pairs": pairs, "separator": _SEPARATOR, "longest": longest}
    return sentence_pairs.task(members, "in_distribution", study=about)
