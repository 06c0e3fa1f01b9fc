"""SCAN jump as episodes of meta-learning for compositionality (MLC; Lake and Baroni, Nature 2023, code brendenlake/MLC-ML).

An input is a query followed by study pairs: "<command> | <command> means <actions> | ...". All are rows of the published training
set, in which jump occurs only alone. In 95 % of the training episodes, meanings are permuted: look, run, jump, walk, left and
right are exchanged in all commands and, independently, the six action symbols in all actions. Training therefore shows "jump" in
every position of a command, with other meanings, and results are not comparable with those of networks trained on the split
alone. Every episode has two queries: a new command and one of its own study pairs (the copy). In the test set meanings are true,
and one of the pairs is "jump means I_JUMP".
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
        "description": "training episodes, drawn once; each has two examples, a new command and a copy",
    },
    "pairs": {"type": "integer", "minimum": 1, "default": 10, "description": "study pairs of an episode"},
}
LONE_JUMPS = 1467  # lines "jump" in the published training set
PERMUTED = 0.95
HELD_OUT = 1024  # fresh episodes of the training distribution
_SEPARATOR, _MEANS = "|", "means"
_WORDS, _SYMBOLS = (*scan.ACTIONS, *scan.TURNS), (*scan.ACTIONS.values(), *scan.TURNS.values())
_JUMP = ("jump", scan.ACTIONS["jump"])


def _permuted(source: np.random.Generator) -> tuple[dict[str, str], dict[str, str]]:
    """The replacements of words and symbols in an episode: none, or two permutations of which at most one is the identity."""
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
    """An example: the query with its study pairs, and its actions, after words and symbols have been replaced."""

    def said(text: str, mapping: dict[str, str]) -> str:
        return " ".join(mapping.get(word, word) for word in text.split())

    shown = (f"{_SEPARATOR} {said(command, words)} {_MEANS} {said(actions, symbols)}" for command, actions in study)
    return " ".join([said(query[0], words), *shown]), said(query[1], symbols)


def _training(rows: list[tuple[str, str]], count: int, pairs: int, source: np.random.Generator) -> tuple[list, list]:
    """New commands and copies of `count` episodes. Every row is a new command once before any row is used again."""
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

    Reads no file. In task.json, "study" describes the study pairs: their number, the separator before each, and the maximum
    number of words of a query and one pair.
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
