"""Shared by training and evaluation: a family's problem on its device, and measurements of trained runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional.records import integrity, provenance, undeclared
from compositional.records.places import STAGES
from compositional.stages.shared import devices
from compositional.stages.shared.job import recipes_of
from compositional.training.problem import Problem, width_of
from compositional.training.reading import imported, read_problem

_ITS_SPLIT = "a kind of task may read its task's folder only, because results would not be made again if another file changed"


def load_problem(content: dict[str, Any], results: Path, log: TextIO) -> Problem:
    """Everything that the runs of a pack's recipe file share, on the device that the file names."""
    told, family = content["job"], content["common"]["family"]
    split = results / "splits" / family["task"]
    integrity.verify(split)
    imported(split, family)  # before its code can change while the job waits
    # A CPU build of PyTorch cannot use a device, even if the scheduler assigns one.
    wish = "cpu" if told["device"] == "auto" and not torch.backends.cuda.is_built() else told["device"]
    if wish != "cpu" and (seen := devices.visible()):
        print(f"waiting until one of these devices is free: {', '.join(seen)}", file=log)
    device = devices.resolve(wish, told["jobs_per_gpu"])
    print(devices.describe(device), file=log)
    with undeclared.refused([split], _ITS_SPLIT):
        return read_problem(split, family, device)


def data_of(problem: Problem) -> dict[str, str]:
    """The digest of a split's examples, by the split's path below the results folder, for the records of its users."""
    return {f"splits/{problem.task}": problem.about["content_sha256"]}


def device_name(device: str) -> str:
    """The hardware behind "cpu" or "cuda" and everything else that can change the last bits of a number: for a CPU the widest
    vector instructions that PyTorch uses, for a GPU the version of CUDA, the precision, and the order of sums."""
    if device == "cuda":
        short = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
        order = "deterministic" if torch.are_deterministic_algorithms_enabled() else "in any order"
        precision = "TensorFloat32" if short else "full float32"
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, {precision}, {order}"
    return f"{provenance.processor()}, {torch.backends.cpu.get_cpu_capability()}"


def measured(
    content: dict[str, Any],
    problem: Problem,
    results: Path,
    measure: Callable[[dict[str, Tensor], list[Path]], None],
    log: TextIO,
    *,
    reads: tuple[str, ...] = (),
    made_of: tuple[str, ...] = ("weights.safetensors",),
) -> None:
    """Measure the runs of a pack's recipe file that were not measured before, and write each one's record.

    reads: parts of the task's description, such as its references, that the measurement depends on. made_of: files
    of a trained run that it reads.

    Runs that compute together are measured together: measure(weights (R, ...) by name, folders) writes the files of each run.
    Rows of the weights beyond the number of folders are padding. A killed job loses only those that it was measuring.

    Raises:
        DamagedFileError: a file of a run was altered after training, or a run was replaced while it was measured.
    """
    name = STAGES[content["stage"]]
    folders = {run: results / "runs" / run for run in content["runs"]}
    recipes = dict(zip(folders, recipes_of(content), strict=True))

    def read_now(run: str) -> dict[str, str]:
        return provenance.digests(results, [folders[run] / file for file in made_of]) | data_of(problem)

    for folder, file in product(folders.values(), made_of):
        integrity.verify(folder / file)
    inputs = {run: read_now(run) for run in folders}
    identity = {key: content["common"][key] for key in ("family", "code")} | {"device": problem.device}
    identity |= {"described": {part: problem.about.get(part) for part in reads}}

    def write(run: str, facts: dict[str, Any]) -> None:
        folder = folders[run]
        trained = provenance.read(folder / "run.json")
        record = facts | {key: trained[key] for key in ("run", "lambda", "seed", "status", "data", "raw_sha256")}
        record |= identity | {"inputs": inputs[run], "pack": list(folders)}
        made = [path for file in content["files"] if (path := folder / file).name != name]
        provenance.write(folder / name, record, recipes[run], made)

    missing = []
    for run, folder in folders.items():
        if (record := intact(folder / name, identity | {"inputs": inputs[run]})) is None:
            missing.append(run)
        else:
            write(run, record)
    print(f"{len(folders) - len(missing)} runs were measured before", file=log)
    width = width_of(problem) or len(folders)
    for start in range(0, len(missing), width):
        group, began = missing[start : start + width], time.monotonic()
        loaded = [load_file(folders[run] / "weights.safetensors", device=problem.device) for run in group]
        loaded += [loaded[0]] * (width - len(loaded))
        measure({key: torch.stack([one[key] for one in loaded]) for key in loaded[0]}, [folders[run] for run in group])
        seconds, device = (time.monotonic() - began) / len(group), device_name(problem.device)
        for run in group:
            if read_now(run) != inputs[run]:
                raise integrity.DamagedFileError(
                    f"{folders[run]} was changed while it was measured, perhaps by a job of a build that was killed. End such "
                    "jobs, and call the same command again"
                )
            write(run, provenance.circumstances(seconds) | {"device_name": device})


def intact(path: Path, expected: dict[str, Any]) -> dict[str, Any] | None:
    """The record at `path`, if it has the expected values and its files match it."""
    record = provenance.vouched(path)
    if record is None or any(record.get(key) != value for key, value in expected.items()):
        return None
    return None if integrity.damaged(path, record, everything=True) else record
