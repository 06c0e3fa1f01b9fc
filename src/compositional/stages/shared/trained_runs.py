"""What training and evaluation share: a family's problem, read from disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional.records import integrity, provenance
from compositional.training.problem import Problem, read_problem, width_of


def load_problem(split: Path, family: dict[str, Any], device: str) -> Problem:
    """All that the runs of a family share; `family` as from Configuration.family_parameters."""
    integrity.verify(split)
    return read_problem(split, family, device)


def trained(problem: Problem, folders: list[Path], *, record: str, code: str) -> Iterator[tuple[list[Path], dict[str, Tensor]]]:
    """Runs that compute together, with their weights (R, ...) by name; where there are more than runs, the rest is filling.

    Once the caller has written what it makes of them, each run's `record` (of provenance.RUN_RECORDS) is written; `code` is
    the fingerprint of what makes it.

    Raises:
        DamagedFileError: weights are not what was trained.
    """
    width = width_of(problem) or len(folders)
    for start in range(0, len(folders), width):
        group = folders[start : start + width]
        began = time.monotonic()
        for folder in group:
            integrity.verify(folder / "weights.safetensors")
        loaded = [load_file(folder / "weights.safetensors", device=problem.device) for folder in group]
        loaded += [loaded[0]] * (width - len(loaded))
        yield group, {name: torch.stack([one[name] for one in loaded]) for name in loaded[0]}
        seconds, name = (time.monotonic() - began) / len(group), provenance.device_name(problem.device)
        for folder in group:
            provenance.record_run(folder, record, seconds, code=code, device=problem.device, device_name=name)
