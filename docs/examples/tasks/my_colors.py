"""Which code does a description have? The test set joins a color and a shape that training never shows together."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import my_colors
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "my_colors"
PARAMETERS = {
    "held_out": {"type": "string", "default": "blue star", "description": "words that occur together only in the test set"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Every pair is in one of the two members. The workflow checks that no test input occurs in training."""
    members: dict[str, list] = {"train": [], "test": []}
    for pair in my_colors.load(raw):
        members["test" if parameters["held_out"] in pair[0] else "train"].append(pair)
    return sentence_pairs.task(members, "train")
