"""SCAN, simple split: training and test commands are drawn at random, so nothing has to be recombined. A control for all others.

The published files contain a random draw of 16,728 and 4,182 commands (Lake and Baroni, ICML 2018) that cannot be generated
again. Here the sizes are the published ones and the draw is ours.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import randomness
from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS = {
    "train_commands": {
        "type": "integer",
        "minimum": 16,
        "maximum": 20909,
        "default": 16728,
        "description": "commands drawn for training; the rest are the test set",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "which random draw"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Random training and test pairs without overlap. Reads no file."""
    pairs = scan.commands()
    order = randomness.generator(randomness.derive("scan_simple", parameters["draw"])).permutation(len(pairs))
    cut = parameters["train_commands"]
    members = {"train": [pairs[index] for index in order[:cut]], "test": [pairs[index] for index in order[cut:]]}
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS)
