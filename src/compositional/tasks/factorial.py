"""All combinations of some components, without a test set, for the theory of representations."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import designs

KIND = "combination"
DATASET = "symbols"
PARAMETERS = {
    "components": {"type": "integer", "minimum": 1, "maximum": 6, "default": 3, "description": "components of an input"},
    "items": {"type": "integer", "minimum": 2, "default": 2, "description": "items of each component"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Member train. Reads no file."""
    return designs.build([designs.factorial(parameters["components"], parameters["items"])])
