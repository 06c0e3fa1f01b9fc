"""SCAN, split "add primitive, jump": training shows "jump" only alone, the test set in every other command.

To choose settings without the test set, a second verb can be held out in the same way (`validation_verb`).

In setting B of Li et al., "Gradient Descent Resists Compositionality" (ICLR 2021 submission), the primitive carries no
information about the command in which it occurs. The paper's main text and appendix describe this differently (`reading`).
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
        "description": "words, and as many symbols, that occur nowhere; `recombination` with `exchange: virtual` needs 6",
    },
    "setting": {
        "enum": ["A", "B"],
        "default": "A",
        "description": "A: the published training set; B: in training the primitive says nothing about its command",
    },
    "reading": {
        "enum": ["main_text", "appendix"],
        "default": "main_text",
        "description": "for setting B. main_text: every action word is drawn from all four; appendix: each jump is replaced by "
        "one of the other three",
    },
    "validation_verb": {
        "enum": [None, "walk", "look", "run"],
        "default": None,
        "description": "another verb shown only alone; the commands that contain it and not jump are the member `compositional`",
    },
    "held_out": {
        "type": "number",
        "minimum": 0,
        "maximum": 0.5,
        "default": 0.0,
        "description": "share of the other commands that is held out of training: the member `in_distribution`",
    },
}

# Share of training of each verb shown only alone: 1,467 of the 14,670 lines of tasks_train_addprim_jump.txt.
LONE_SHARE = 0.1
_BY_DESIGN = "setting B draws the action words of training commands at random, so that they may be test commands"
_ACTIONS_OF = dict(scan.commands())
# What may replace a word, and how many copies of a command contain all its draws equally often: a command has at most two action
# words.
_DRAWS: dict[str, tuple[dict[str, tuple[str, ...]], int]] = {
    "main_text": (dict.fromkeys(scan.ACTIONS, tuple(scan.ACTIONS)), 16),
    "appendix": ({"jump": ("walk", "look", "run")}, 3),
}


def _drawn(command: str, reading: str) -> list[tuple[str, str]]:
    """Equally likely variants of a training command in setting B, with their actions; the number is the same for all commands."""
    choices, copies = _DRAWS[reading]
    variants = [" ".join(words) for words in product(*(choices.get(word, (word,)) for word in command.split()))]
    return [(variant, _ACTIONS_OF[variant]) for variant in variants] * (copies // len(variants))


def _members(parameters: dict) -> dict[str, list[tuple[str, str]]]:
    """Pairs by member. Each verb that training shows only alone makes up LONE_SHARE of training."""
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
    """The published split (14,670 training and 7,706 test pairs) or its setting B, with columns input and output. Reads no file.

    Setting B contains every draw of every training command equally often: sampling it uniformly is the same as sampling a command
    of the published file and then its action words.

    Raises:
        ValueError: `validation_verb` or `held_out` is set in setting B, whose training commands may contain any verb.
    """
    members = _members(parameters)
    disjoint: dict[str, Any] = {"columns": ["input"], "members": [name for name in members if name != "train"]}
    categorize = scan.category
    if parameters["setting"] == "B":
        if chosen := [name for name in ("validation_verb", "held_out") if parameters[name]]:
            raise ValueError(f"scan_jump: {chosen[0]} is for setting A: in setting B training commands may have any verb")
        members["train"] = [pair for command, _ in members["train"] for pair in _drawn(command, parameters["reading"])]
        if parameters["reading"] == "main_text":
            disjoint["by_design"] = _BY_DESIGN
    if verb := parameters["validation_verb"]:

        def categorize(command: str, actions: str) -> str:
            """SCAN's categories, and whether the command also contains the validation verb."""
            return f"{scan.category(command, actions)}; {verb}/{'with' if verb in command.split() else 'without'}"

    about = {"primitives": scan.ACTIONS, "virtual_words": lexicon.virtual_words(parameters["virtual_words"])}
    in_distribution = next(name for name in IN_DISTRIBUTION if name in members)
    return sentence_pairs.task(members, in_distribution, categorize, disjoint=[disjoint], **about)
