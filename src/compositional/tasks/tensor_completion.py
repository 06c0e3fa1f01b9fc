"""A tensor of low rank is to be recovered from some of its entries. See compositional.measurements."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import measurements

KIND = "tensor"
DATASET = "low_rank"
PARAMETERS = measurements.TENSOR_PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, test and target of `compositional.measurements.completion`. Reads no file."""
    return measurements.completion(measurements.tensor_target(parameters), parameters)
