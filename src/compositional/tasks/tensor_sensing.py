"""Recovery of a tensor of low rank from random projections. See tasks.shared.low_rank_recovery."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import low_rank_recovery

KIND = "tensor"
DATASET = "low_rank"
PARAMETERS = low_rank_recovery.TENSOR_PARAMETERS


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, test and target of `tasks.shared.low_rank_recovery.sensing`. Reads no file."""
    return low_rank_recovery.sensing(low_rank_recovery.tensor_target(parameters), parameters)
