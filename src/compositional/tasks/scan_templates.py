"""SCAN, template splits: training never shows a verb with a template such as "around right", the test set always does.

Loula, Baroni and Lake, "Rearranging the Familiar" (BlackboxNLP 2018). Commands with "turn" in the template, such as "turn around
right", are in neither set. Training shows every other use of the verbs, of "left" and of "right". `scan_fillers` has the
published split "jump around right", in which only one verb is new.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "template": {
        "enum": ["right", "opposite right", "around right"],
        "default": "around right",
        "description": "words after a verb that training does not show",
    },
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published splits: 15,225 training and 4,476 test pairs. Reads no file."""
    template = parameters["template"]
    pairs = [pair for pair in scan.commands() if f"turn {template}" not in pair[0]]
    members: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    for pair in pairs:
        members["test" if any(f"{verb} {template}" in pair[0] for verb in scan.ACTIONS) else "train"].append(pair)
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS)
