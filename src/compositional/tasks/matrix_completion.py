"""Recovery of a matrix of low rank from some of its entries. See tasks.shared.low_rank_recovery."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import low_rank_recovery

KIND = "tensor"
DATASET = "low_rank"
PARAMETERS = low_rank_recovery.MATRIX_PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, test and target of `tasks.shared.low_rank_recovery.completion`. Reads no file."""
    return low_rank_recovery.completion(low_rank_recovery.matrix_target(parameters), parameters)
