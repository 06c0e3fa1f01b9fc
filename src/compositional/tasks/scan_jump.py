"""SCAN, split "add primitive, jump": training shows "jump" only alone, the test set in every other command.

Setting B of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), takes from the primitive all that
it says about the command it stands in. Main text and appendix word this differently (`reading`).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.language import lexicon
from compositional.tasks.shared import sentence_pairs as sentences

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "deduplicate": {
        "type": "boolean",
        "default": False,
        "description": 'train on the command "jump" once instead of the published file\'s 1,467 times',
    },
    "virtual_words": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "words, and as many symbols, that occur nowhere, for `recombination` with `exchange: virtual` (needs 6)",
    },
    "setting": {
        "enum": ["A", "B"],
        "default": "A",
        "description": "A: the published training set; B: in training the primitive says nothing about its command",
    },
    "reading": {
        "enum": ["main_text", "appendix"],
        "default": "main_text",
        "description": "of setting B: every action word drawn from all four; or each jump replaced by one of the other three",
    },
}

JUMP_REPETITIONS = 1467  # in the published tasks_train_addprim_jump.txt
_BY_DESIGN = "setting B draws the action words of training commands at random, so that they may be test commands"
_ACTIONS_OF = dict(scan.commands())
# What may stand in a word's place, and how many copies of a command hold all its draws equally often: a command has at
# most two action words.
_DRAWS = {
    "main_text": (dict.fromkeys(scan.ACTIONS, tuple(scan.ACTIONS)), 16),
    "appendix": ({"jump": ("walk", "look", "run")}, 3),
}


def _drawn(command: str, reading: str) -> list[tuple[str, str]]:
    """Equally likely variants of one training command in setting B with their actions, the same number for every command."""
    choices, copies = _DRAWS[reading]
    variants = [" ".join(words) for words in product(*(choices.get(word, (word,)) for word in command.split()))]
    return [(variant, _ACTIONS_OF[variant]) for variant in variants] * (copies // len(variants))


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split (14,670 training and 7,706 test pairs) or setting B of it, as columns input and output. Reads no file.

    Setting B holds every draw of every training command, each equally often: sampling it uniformly is sampling a command of
    the published file and then its action words.
    """
    train, test = scan.add_primitive("jump", 1 if parameters["deduplicate"] else JUMP_REPETITIONS)
    disjoint = {"columns": ["input"], "members": ["test"]}
    if parameters["setting"] == "B":
        train = [pair for command, _ in train for pair in _drawn(command, parameters["reading"])]
        if parameters["reading"] == "main_text":
            disjoint["by_design"] = _BY_DESIGN
    about = {"primitives": scan.ACTIONS, "virtual_words": lexicon.virtual_words(parameters["virtual_words"])}
    return sentences.task({"train": train, "test": test}, "train", scan.category, disjoint=[disjoint], **about)
