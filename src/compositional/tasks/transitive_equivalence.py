"""Transitive equivalence: whether two items have the same class, inferred through third items. See tasks.shared.designs."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import designs

KIND = "combination"
DATASET = "symbols"
PARAMETERS = designs.TRANSITIVE_EQUIVALENCE


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test. Reads no file."""
    return designs.build([designs.transitive_equivalence(parameters)])
