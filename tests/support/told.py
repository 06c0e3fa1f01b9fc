"""The content of a job's recipe file, for tests of stages without the workflow."""

from __future__ import annotations

from typing import Any

from compositional.records import provenance
from compositional.records.places import STAGES
from compositional.runs import Run


def told(stage: str, family: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """The recipe file of a pack's job, with placeholder code and without records of its inputs."""
    return {
        "stage": stage,
        "common": {"stage": stage, "family": family, "code": {"fingerprint": "test"}},
        "runs": {run.path: {"run": run.path, "of": {}} for run in runs},
        "files": [name for name in (*provenance.RUN_RECORDS[STAGES[stage]], STAGES[stage]) if name != "predictions.csv"],
        "job": {"device": "cpu", "jobs_per_gpu": 1, "checkpoint_seconds": 60, "store": None},
    }
