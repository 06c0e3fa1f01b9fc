"""A split of SCAN: training has "opposite" with all verbs except one."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "verb": {"enum": ["walk", "look", "run", "jump"], "default": "run", "description": "the verb never seen with opposite"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training has the commands without "<verb> opposite", the test set those with it. SCAN is generated: no file is read."""
    members: dict[str, list] = {"train": [], "test": []}
    for command, actions in scan.commands():
        held_out = f"{parameters['verb']} opposite" in command
        members["test" if held_out else "train"].append((command, actions))
    return sentence_pairs.task(members, "train")
