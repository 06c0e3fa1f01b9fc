"""SCAN, template split "around right": training never combines "around" and "right", the test set always does.

Loula, Baroni, Lake, "Rearranging the Familiar", BlackboxNLP 2018: the test set contains every action around right; commands with
"turn around right" are in neither set. Training shows "around left" and every other use of "right".
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS: dict = {}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split: 15,225 training and 4,476 test pairs. Reads no file."""
    pairs = [pair for pair in scan.commands() if "turn around right" not in pair[0]]
    members = {
        "train": [pair for pair in pairs if "around right" not in pair[0]],
        "test": [pair for pair in pairs if "around right" in pair[0]],
    }
    return sentence_pairs.task(members, "train", scan.category, primitives=scan.ACTIONS)
