"""Context dependence: the context says which of two features determines the response. See tasks.shared.designs."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import designs

KIND = "combination"
DATASET = "symbols"
PARAMETERS = designs.CONTEXT_DEPENDENCE


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test. Reads no file."""
    return designs.build([designs.context_dependence(parameters)])
