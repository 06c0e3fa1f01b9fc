"""SCAN, length split: training shows commands with few actions, the test set those with more (Lake and Baroni, ICML 2018)."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "longest": {
        "type": "integer",
        "minimum": 1,
        "maximum": 47,
        "default": 22,
        "description": "maximum number of actions of a training command; 22 is the published split, some papers use 26",
    },
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split at 22 actions: 16,990 training and 3,920 test pairs. Reads no file."""
    pairs = scan.commands()
    short = [len(actions.split()) <= parameters["longest"] for _, actions in pairs]
    members = {
        "train": [pair for pair, fits in zip(pairs, short, strict=True) if fits],
        "test": [pair for pair, fits in zip(pairs, short, strict=True) if not fits],
    }
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS)
