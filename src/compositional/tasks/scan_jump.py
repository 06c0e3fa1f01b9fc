"""SCAN, split "add primitive, jump": training shows "jump" only alone, the test set in every other command.

To choose settings without the test set, a second verb can be held out as "jump" is (`validation_verb`).

Setting B of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), takes from the primitive all that
it says about the command it stands in. Main text and appendix word this differently (`reading`).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from compositional import randomness
from compositional.datasets import scan
from compositional.language import lexicon
from compositional.tasks import IN_DISTRIBUTION
from compositional.tasks.shared import sentence_pairs

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
    "validation_verb": {
        "enum": [None, "walk", "look", "run"],
        "default": None,
        "description": "another verb shown only alone: the commands that hold it and not jump are the member `compositional`",
    },
    "held_out": {
        "type": "number",
        "minimum": 0,
        "maximum": 0.5,
        "default": 0.0,
        "description": "share of the other commands that training lacks: the member `in_distribution`",
    },
}

LONE_SHARE = 0.1  # of training, for each verb shown only alone: 1,467 of the 14,670 lines of tasks_train_addprim_jump.txt
_BY_DESIGN = "setting B draws the action words of training commands at random, so that they may be test commands"
_ACTIONS_OF = dict(scan.commands())
# What may stand in a word's place, and how many copies of a command hold all its draws equally often: a command has at
# most two action words.
_DRAWS: dict[str, tuple[dict[str, tuple[str, ...]], int]] = {
    "main_text": (dict.fromkeys(scan.ACTIONS, tuple(scan.ACTIONS)), 16),
    "appendix": ({"jump": ("walk", "look", "run")}, 3),
}


def _drawn(command: str, reading: str) -> list[tuple[str, str]]:
    """Equally likely variants of one training command in setting B with their actions, the same number for every command."""
    choices, copies = _DRAWS[reading]
    variants = [" ".join(words) for words in product(*(choices.get(word, (word,)) for word in command.split()))]
    return [(variant, _ACTIONS_OF[variant]) for variant in variants] * (copies // len(variants))


def _members(parameters: dict) -> dict[str, list[tuple[str, str]]]:
    """Pairs by member. Every verb that training shows only alone has LONE_SHARE of it."""
    verb = parameters["validation_verb"]
    lone = [name for name in ("jump", verb) if name]
    composed = {name: [pair for pair in scan.commands() if name in pair[0].split() and pair[0] != name] for name in lone}
    train = [pair for pair in scan.commands() if not set(lone) & set(pair[0].split())]
    found = {"test": composed["jump"]}
    if verb:
        found["compositional"] = [pair for pair in composed[verb] if "jump" not in pair[0].split()]
    if parameters["held_out"]:
        order = randomness.generator(randomness.derive("held out", "scan")).permutation(len(train))
        held = set(order[: round(parameters["held_out"] * len(train))].tolist())
        found["in_distribution"] = [pair for place, pair in enumerate(train) if place in held]
        train = [pair for place, pair in enumerate(train) if place not in held]
    repetitions = 1 if parameters["deduplicate"] else round(len(train) * LONE_SHARE / (1 - LONE_SHARE * len(lone)))
    return {"train": train + [pair for pair in scan.commands() if pair[0] in lone] * repetitions} | found


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split (14,670 training and 7,706 test pairs) or setting B of it, as columns input and output. Reads no file.

    Setting B holds every draw of every training command, each equally often: sampling it uniformly is sampling a command of
    the published file and then its action words.

    Raises:
        ValueError: members for choosing settings are asked for in setting B, whose training commands have any verb.
    """
    members = _members(parameters)
    disjoint: dict[str, Any] = {"columns": ["input"], "members": [name for name in members if name != "train"]}
    categorize = scan.category
    if parameters["setting"] == "B":
        if chosen := [name for name in ("validation_verb", "held_out") if parameters[name]]:
            raise ValueError(f"scan_jump: {chosen[0]} is for setting A: in setting B any verb stands in any training command")
        members["train"] = [pair for command, _ in members["train"] for pair in _drawn(command, parameters["reading"])]
        if parameters["reading"] == "main_text":
            disjoint["by_design"] = _BY_DESIGN
    if verb := parameters["validation_verb"]:

        def categorize(command: str, actions: str) -> str:
            """SCAN's categories, and whether the validation verb is new in the command, too."""
            return f"{scan.category(command, actions)}; {verb}/{'with' if verb in command.split() else 'without'}"

    about = {"primitives": scan.ACTIONS, "virtual_words": lexicon.virtual_words(parameters["virtual_words"])}
    in_distribution = next(name for name in IN_DISTRIBUTION if name in members)
    return sentence_pairs.task(members, in_distribution, categorize, disjoint=[disjoint], **about)
