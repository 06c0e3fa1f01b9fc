"""A matrix of low rank is to be recovered from random projections. See compositional.measurements."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import measurements

KIND = "tensor"
DATASET = "low_rank"
PARAMETERS = measurements.MATRIX_PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, test and target of `compositional.measurements.sensing`. Reads no file."""
    return measurements.sensing(measurements.matrix_target(parameters), parameters)
