"""Stage train: many runs of one family in one process, through the store."""

from __future__ import annotations

import platform
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors.torch import save_file

from compositional import curves, devices, files, training
from compositional.grid import Run
from compositional.progress import Progress
from compositional.stages.problem import load_problem
from compositional.store import Store, key_of

HISTORY_HEADER = ("step", "split", "metric", "value")


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in ("torch", "numpy", "datasets", "safetensors")
    }


def _commit() -> dict[str, Any]:
    """The commit of the working tree, and whether it was altered; empty outside a repository."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        status = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"commit": commit, "dirty": bool(status)}


def _write_run(folder: Path, problem: training.Problem, state: training.State, described: dict[str, Any]) -> None:
    """A trained run's three files in `folder`."""
    weights = training.weight_layout(problem).views(state.tensors["weights"].unsqueeze(0))
    named = {name: tensor.squeeze(0).contiguous() for name, tensor in weights.items()}
    save_file(named, folder / "weights.safetensors")
    files.write_csv(folder / "history.csv", HISTORY_HEADER, state.history)
    files.write_json(folder / "run.json", described)


def train_pack(
    split: Path,
    folders: list[Path],
    *,
    family: dict[str, Any],
    numerics: str,
    results: Path,
    name: str,
    device: str,
    jobs_per_gpu: int,
    checkpoint_seconds: float,
    log: TextIO,
) -> None:
    """Train runs of one family together and write each one's files to its own folder.

    Args:
        split: the task's folder.
        folders: the runs' folders, .../<Run.path>, all of one family.
        family: the runs' common parameters (Configuration.family_parameters).
        numerics: fingerprint of the code that determines their numbers.
        results: the results folder, with the store and the board of progress in it.
        name: of this pack.
        device: "auto", "cpu" or "cuda".
        jobs_per_gpu: how many jobs of this machine may share a GPU.
        checkpoint_seconds: how much training a killed job may lose.
        log: where to report step, loss and accuracy of every run.
    """
    device = devices.resolve(device, jobs_per_gpu)
    print(devices.describe(device), file=log)
    problem = load_problem(split, family, device)
    steps = problem.settings["steps"]
    kept = Store(results / "store")
    identity = {
        "family": family,
        "code": numerics,
        "data": problem.about["content_sha256"],
        "device": device,
        "torch": metadata.version("torch").split("+")[0],
    }
    runs = {Run.of_folder(folder): folder for folder in folders}
    keys = {run: key_of(identity | {"lambda": run.strength, "seed": run.seed}) for run in runs}
    missing = [run for run in runs if not kept.has(keys[run])]
    states = {run: kept.load_checkpoint(keys[run]) or training.start(problem, run.seed, run.strength) for run in missing}
    names = {id(state): run for run, state in states.items()}
    progress = Progress(log, results / "progress", name, steps, list(states.values()), len(runs) - len(missing))
    saved = time.monotonic()

    def finish(state: training.State) -> None:
        run = names[id(state)]
        described = identity | {
            "run": run.path,
            "lambda": run.strength,
            "seed": run.seed,
            "status": "done" if state.diverged_at is None else "diverged",
            "diverged_at_step": state.diverged_at,
            "steps": state.step,
            "wall_seconds": round(state.seconds, 3),
            "versions": _versions(),
            "device_name": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
            "raw_sha256": problem.about["raw_sha256"],
            "source": _commit(),
        }
        with tempfile.TemporaryDirectory(dir=kept.folder) as temporary:
            _write_run(Path(temporary), problem, state, described)
            kept.add(keys[run], Path(temporary))

    def on_record(members: list[training.State]) -> None:
        nonlocal saved
        progress.report({names[id(state)].path: state for state in members})
        ended = [state for state in members if state.step >= steps or state.diverged_at is not None]
        for state in ended:
            finish(state)
        if time.monotonic() - saved >= checkpoint_seconds:
            for state in members:
                if state not in ended:
                    kept.save_checkpoint(keys[names[id(state)]], state)
            saved = time.monotonic()

    kept.folder.mkdir(parents=True, exist_ok=True)
    training.train(problem, list(states.values()), curves.measure, on_record)
    for run, folder in runs.items():
        kept.restore(keys[run], folder)
