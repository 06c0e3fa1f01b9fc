"""What jobs are told and what they write, for tests without the workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compositional.planning.packs import Pack
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


def write_trained(results: Path, packs: list[Pack]) -> None:
    """Write records of the runs of training packs, with placeholders for their files."""
    for pack in packs:
        for run, record in zip(pack.runs, pack.records, strict=True):
            made = [results / f"runs/{run.path}/{name}" for name in provenance.RUN_RECORDS["run.json"]]
            for path in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(path.name)
            said = {"pack": list(pack.content["runs"]), "device": "cpu", "inputs": {}}
            provenance.write(results / record, said, pack.content["common"] | pack.content["runs"][run.path], made)
