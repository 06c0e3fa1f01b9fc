"""Invariance: the sign of the first of two items; training shows only one second item."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import designs

KIND = "combination"
DATASET = "symbols"
PARAMETERS: dict = {}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test. Reads no file."""
    return designs.build([designs.invariance()])
