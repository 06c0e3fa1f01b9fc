"""SCAN, split "add primitive, turn left": training shows "turn left" only alone, the test set in every other command.

Lake and Baroni, ICML 2018. Training shows all other uses of "left", so plain models solve the task: a control for `scan_jump`.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import scan
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "scan"
PARAMETERS: dict = {}

REPETITIONS = 2189  # lines with "turn left" alone in the published tasks_train_addprim_turn_left.txt


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """The published split: 21,890 training and 1,208 test pairs. Reads no file."""
    train, test = scan.add_primitive("turn left", REPETITIONS)
    return sentence_pairs.task({"train": train, "test": test}, "train", scan.category, primitives=scan.ACTIONS)
