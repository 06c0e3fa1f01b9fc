"""SCAN jump as episodes for a meta-learner: each example states the meanings of the four primitives, and then a command.

The task follows Lake, "Compositional generalization through meta sequence-to-sequence learning" (NeurIPS 2019), and Lake and
Baroni (Nature 2023). An input has the form "jump means I_RUN , walk means I_JUMP , ... do <command>", with the study pairs in
random order. In training, one of the 23 permutations other than the true one assigns primitives to actions. The test set has the
true assignment, with the test commands of `scan_jump`. Any sequence model trained on this task is a meta-learner. Training
contains the full grammar, with every verb in every command; the model must generalize to the new assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

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
        "default": 100000,
        "description": "training episodes, each with one permutation of the primitives and one command",
    },
    "copies": {
        "type": "boolean",
        "default": False,
        "description": "half of the training episodes ask for a primitive, whose meaning the input shows; the members "
        "in_distribution and copies are fresh episodes of either half",
    },
}
FRESH = 1024


def _episode(assigned: dict[str, str], order: list[str], command: str, actions: str) -> tuple[str, str]:
    """The input and output of an example; `actions` are those of the true assignment."""
    replaced = {scan.ACTIONS[verb]: action for verb, action in assigned.items()}
    support = " , ".join(f"{verb} means {assigned[verb]}" for verb in order)
    return f"{support} do {command}", " ".join(replaced.get(action, action) for action in actions.split())


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The drawn training episodes and 7,706 test episodes; with `copies` fresh episodes, too. Reads no file."""
    source = randomness.generator(randomness.derive("scan_jump_episodes"))
    verbs, pairs = list(scan.ACTIONS), scan.commands()
    true, *others = (dict(zip(verbs, actions, strict=True)) for actions in permutations(scan.ACTIONS.values()))

    def order() -> list[str]:
        return [verbs[index] for index in source.permutation(len(verbs))]

    def drawn(count: int, asked: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        assignments, places = source.integers(len(others), size=count), source.integers(len(asked), size=count)
        return [_episode(others[one], order(), *asked[place]) for one, place in zip(assignments, places, strict=True)]

    copied, lone = parameters["episodes"] // 2 if parameters["copies"] else 0, [pair for pair in pairs if pair[0] in verbs]
    members = {"train": drawn(parameters["episodes"] - copied, pairs)}
    if copied:
        members["train"] += drawn(copied, lone)
        members |= {"in_distribution": drawn(FRESH, pairs), "copies": drawn(FRESH, lone)}
    _, held_out = scan.add_primitive("jump", 1)
    members["test"] = [_episode(true, order(), *pair) for pair in held_out]
    return sentence_pairs.task(members, "in_distribution" if copied else "train")
