"""Stage train: many runs of one family in one process, through the store."""

from __future__ import annotations

import hashlib
import tempfile
import time
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from safetensors.torch import save_file

from compositional import files
from compositional.evaluation import learning_curves
from compositional.records import provenance
from compositional.records.store import Store, key_of
from compositional.runs import Run
from compositional.stages.shared import devices
from compositional.stages.shared.progress import Progress
from compositional.stages.shared.trained_runs import load_problem
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, weight_layout
from compositional.training.state import State, fresh_state, has_ended

HISTORY_HEADER = ("step", "split", "metric", "value")


def _buffers_digest(problem: Problem, seed: int) -> dict[str, str]:
    """What identifies a run's buffers, if it has any."""
    tensors = buffers(problem, seed)
    digest = hashlib.sha256(b"".join(name.encode() + tensors[name].numpy().tobytes() for name in sorted(tensors)))
    return {"buffers": digest.hexdigest()} if tensors else {}


def _write_run(folder: Path, problem: Problem, state: State, described: dict[str, Any]) -> None:
    """A trained run's three files in `folder`."""
    weights = weight_layout(problem).views(state.tensors["weights"].unsqueeze(0))
    named = {name: tensor.squeeze(0).contiguous() for name, tensor in weights.items()}
    named |= buffers(problem, state.seed)
    save_file(named, folder / "weights.safetensors")
    files.write_csv(folder / "history.csv", HISTORY_HEADER, state.history)
    files.write_json(folder / "run.json", described | {"files": provenance.digests(folder, sorted(folder.iterdir()))})


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
        checkpoint_seconds: how much training a killed job may lose, beside what came since the last record.
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
    own = {run: {"lambda": run.strength, "seed": run.seed} | _buffers_digest(problem, run.seed) for run in runs}
    keys = {run: key_of(identity | own[run]) for run in runs}
    missing = [run for run in runs if not kept.has(keys[run])]

    def begun(run: Run) -> State:
        checkpoint = kept.load_checkpoint(keys[run])
        return State.restored(*checkpoint) if checkpoint else fresh_state(problem, run.seed, run.strength)

    states = {run: begun(run) for run in missing}
    names = {id(state): run for run, state in states.items()}
    ended = partial(has_ended, settings=problem.settings)
    progress = Progress(log, results / "progress", name, steps, list(states.values()), len(runs) - len(missing), ended)
    unsaved: set[State] = set()
    saved = time.monotonic()

    def finish(state: State) -> None:
        run = names[id(state)]
        described = (
            identity
            | own[run]
            | {
                "run": run.path,
                "status": "done" if state.diverged_at is None else "diverged",
                "diverged_at_step": state.diverged_at,
                "steps": state.step,
                "device_name": provenance.device_name(device),
                "raw_sha256": problem.about["raw_sha256"],
            }
            | provenance.circumstances(state.seconds)
        )
        with tempfile.TemporaryDirectory(dir=kept.folder) as temporary:
            _write_run(Path(temporary), problem, state, described)
            kept.add(keys[run], Path(temporary))

    def on_record(members: list[State]) -> None:
        nonlocal saved
        progress.report({names[id(state)].path: state for state in members})
        unsaved.update(members)
        for state in members:
            if ended(state):
                finish(state)
                unsaved.remove(state)
        if time.monotonic() - saved >= checkpoint_seconds:
            # Not the members alone: in a pack wider than the device computes, groups take turns.
            for state in unsaved:
                kept.save_checkpoint(keys[names[id(state)]], state.described(), state.tensors)
            unsaved.clear()
            saved = time.monotonic()

    kept.folder.mkdir(parents=True, exist_ok=True)
    train_runs(problem, list(states.values()), learning_curves.measure, on_record)
    for run, folder in runs.items():
        kept.restore(keys[run], folder)
