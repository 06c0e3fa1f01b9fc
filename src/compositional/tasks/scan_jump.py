"""SCAN, split "add primitive, jump": training shows "jump" only alone, the test set in every other command."""

from __future__ import annotations

from pathlib import Path

from datasets import Dataset, DatasetDict

from compositional.datasets import scan

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "deduplicate": {
        "type": "boolean",
        "default": False,
        "description": 'train on the command "jump" once instead of the published file\'s 1,467 times',
    },
}

JUMP_REPETITIONS = 1467  # in the published tasks_train_addprim_jump.txt


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split (14,670 training and 7,706 test pairs), as columns input and output. Reads no file."""
    pairs = scan.commands()
    train = [pair for pair in pairs if "jump" not in pair[0].split()]
    test = [pair for pair in pairs if "jump" in pair[0].split() and pair[0] != "jump"]
    train += [("jump", "I_JUMP")] * (1 if parameters["deduplicate"] else JUMP_REPETITIONS)
    members = {
        name: Dataset.from_dict({"input": [command for command, _ in rows], "output": [actions for _, actions in rows]})
        for name, rows in {"train": train, "test": test}.items()
    }
    return DatasetDict(members), {"in_distribution": "train", "disjoint": [{"columns": ["input"], "members": ["test"]}]}
