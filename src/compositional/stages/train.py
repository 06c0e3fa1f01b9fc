"""Stage train: train many runs of one family in one process, using the store."""

from __future__ import annotations

import csv
import hashlib
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional import files
from compositional.evaluation import learning_curves
from compositional.records import provenance, undeclared
from compositional.records.entries import name_of, stored, stores
from compositional.records.store import FACTS, Store
from compositional.runs import Run
from compositional.stages.shared import devices, memory
from compositional.stages.shared.job import recipes_of
from compositional.stages.shared.progress import Progress
from compositional.stages.shared.trained_runs import data_of, device_name, intact, load_problem
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, weight_layout
from compositional.training.state import State, begun, has_ended
from compositional.training.weights import WeightLayout

HISTORY_HEADER = ("step", "split", "metric", "value")


def _buffers_digest(problem: Problem, seed: int) -> dict[str, str]:
    """A digest that identifies a run's buffers, if it has any."""
    tensors = buffers(problem, seed)
    digest = hashlib.sha256(b"".join(name.encode() + tensors[name].numpy().tobytes() for name in sorted(tensors)))
    return {"buffers": digest.hexdigest()} if tensors else {}


def _tensors(problem: Problem, layout: WeightLayout, state: State) -> dict[str, Tensor]:
    """A run's weights and buffers by name."""
    weights = layout.views(state.tensors["weights"].unsqueeze(0))
    return {name: tensor.squeeze(0).contiguous() for name, tensor in weights.items()} | buffers(problem, state.seed)


def _weights(layout: WeightLayout, tensors: dict[str, Tensor]) -> Tensor | None:
    """A run's weights in a flat buffer, (P,), by its tensors; None if they are another problem's."""
    shapes = {name: tensor.shape for name, tensor in tensors.items() if tensor.dtype == torch.float32}
    return layout.flatten(tensors) if layout.shapes.items() <= shapes.items() else None


def _write_record(folder: Path, problem: Problem, state: State, record: dict[str, Any], recipe: dict[str, Any]) -> None:
    """Write a trained run's curves and then its record; its weights were written before."""
    files.write_csv(folder / "history.csv", HISTORY_HEADER, state.history)
    described = {
        "status": "done" if state.diverged_at is None else "diverged",
        "diverged_at_step": state.diverged_at,
        "steps": state.step,
        "raw_sha256": problem.about["raw_sha256"],
    }
    made = [folder / name for name in provenance.RUN_RECORDS["run.json"]]
    provenance.write(folder / "run.json", described | record, recipe, made)


def _read(folder: Path, layout: WeightLayout, identity: dict[str, Any]) -> tuple[State, dict[str, Any]] | None:
    """The run in its folder and the facts about it, if it has this identity and is intact."""
    if (record := intact(folder / "run.json", identity)) is None:
        return None
    with (folder / "history.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    if tuple(header) != HISTORY_HEADER:
        return None
    history = [(int(step), split, metric, _number(value)) for step, split, metric, value in rows]
    weights = _weights(layout, load_file(folder / "weights.safetensors"))
    if weights is None:
        return None
    state = State(identity["seed"], identity["lambda"], record["steps"], record["diverged_at_step"])
    state.tensors, state.history = {"weights": weights}, history
    return state, {name: record[name] for name in FACTS}


def _number(text: str) -> int | float:
    """The number that was written as this text."""
    try:
        return int(text)
    except ValueError:
        return float(text)


class _Job:
    """A job's runs: what identifies each of them, the store that keeps them, and the folders of their files."""

    def __init__(
        self,
        content: dict[str, Any],
        planned: dict[Run, dict[str, Any]],
        problem: Problem,
        store: Store,
        results: Path,
        log: TextIO,
    ) -> None:
        """planned: what identifies each run before there is any data."""
        self.content, self.problem, self.store, self.results, self.log = content, problem, store, results, log
        self.layout = weight_layout(problem)
        self.recipes = dict(zip(planned, recipes_of(content), strict=True))
        found = {"data": problem.about["content_sha256"], "device": problem.device}
        self.identities = {run: of_run | found | _buffers_digest(problem, run.seed) for run, of_run in planned.items()}

    def name(self, run: Run) -> str:
        """The name of a run in the store."""
        return name_of(self.identities[run])

    def take(self, run: Run, devices: list[str]) -> bool:
        """Whether a run was finished before, on one of these devices; if so, its files are now in its folder."""
        for device in devices:
            identity = self.identities[run] | {"device": device}
            if (entry := self.store.load(name_of(identity))) and (weights := _weights(self.layout, entry[1])) is not None:
                self.identities[run] = identity
                self._write(run, State.restored(entry[0]["state"], {"weights": weights}), entry[0]["facts"])
                return True
            if found := _read(self._folder(run), self.layout, identity):
                self.identities[run] = identity
                self.keep(run, *found)
                return True
        return False

    def discard(self, missing: list[Run]) -> None:
        """Delete the damaged entries of runs of a GPU, which the next call then plans to train where there is one.

        Raises:
            RuntimeError: there were any.
        """
        names = [name_of(self.identities[run] | {"device": "cuda"}) for run in missing]
        if damaged := [path for name in names for path in self.store.discard(name)]:
            left = [str(path) for path in damaged if os.path.exists(path)]
            then = f", after the owner of {', '.join(left)} deleted it" if left else ""
            raise RuntimeError(
                f"{', '.join(map(str, damaged))}: damaged, and no GPU is visible here to train these runs again. What is damaged "
                f"was deleted. Call the same command again{then}: it trains them as if they were new"
            )

    def keep(self, run: Run, state: State, facts: dict[str, Any]) -> None:
        """Put a finished run into the store and its folder, without the optimizer's moments."""
        about = {"state": state.described(), "facts": facts, "identity": self.identities[run]}
        if refused := self.store.add(self.name(run), about, _tensors(self.problem, self.layout, state)):
            print(f"{run.path} is in {self.store.folders[-1]}, not in the shared store: {refused}", file=self.log)
        self._write(run, state, facts)

    def _folder(self, run: Run) -> Path:
        return self.results / "runs" / run.path

    def _write(self, run: Run, state: State, facts: dict[str, Any]) -> None:
        """Write a run's files to its folder."""
        about = {"run": run.path, "pack": [*self.content["runs"]], "inputs": data_of(self.problem)}
        tensors = _tensors(self.problem, self.layout, state)
        self.store.write_tensors(self.name(run), tensors, self._folder(run) / "weights.safetensors")
        _write_record(self._folder(run), self.problem, state, self.identities[run] | about | facts, self.recipes[run])


def perform(content: dict[str, Any], log: TextIO, results: Path = Path("results"), restore: bool = True) -> None:
    """Train the runs of a pack's recipe file together and write each one's files to its own folder.

    A run that is in the store or in its folder is not trained again, but today's code always writes its files. A killed job loses
    at most `checkpoint_seconds` of training, plus the steps since the last record.

    restore: if the store seems to have all runs, claim no GPU. If a run turns out to be missing or damaged, a second try trains
        it, where there is a GPU if it was trained on one.
    """
    told, shared = content["job"], {key: content["common"][key] for key in ("family", "code")}
    folders = stores(told["store"], results)
    planned = {run: shared | {"lambda": run.strength, "seed": run.seed} for run in map(Run.parse, content["runs"])}
    restore = restore and stored(folders, planned.values(), told["device"])
    problem = load_problem(content | {"job": told | {"device": "cpu"}} if restore else content, results, log)
    # With `auto`, finished runs of either device are accepted if all are of the same one: no table may mix devices.
    wish = told["device"] if restore else problem.device
    job = _Job(content, planned, problem, Store(*folders), results, log)
    missing = [run for run in job.recipes if not job.take(run, ["cpu", "cuda"] if wish == "auto" else [wish])]
    if missing and restore:
        if wish != "cpu" and not devices.visible():  # as on a host that submits jobs to others
            job.discard(missing)
        return perform(content, log, results, restore=False)
    _train(job, missing)


def _train(job: _Job, missing: list[Run]) -> None:
    """Train the runs of a pack that do not exist, from their last checkpoints."""
    problem, store, log = job.problem, job.store, job.log
    states = {run: begun(problem, run, store.load_checkpoint(job.name(run))) for run in missing}
    runs = {id(state): run for run, state in states.items()}
    ended = partial(has_ended, settings=problem.settings)
    name, steps, restored = Path(log.name).stem, problem.settings["steps"], len(job.recipes) - len(missing)
    progress = Progress(log, job.results / "progress", f"train_{name}", steps, [*states.values()], restored, ended)
    unsaved: set[State] = set()
    saved = time.monotonic()

    def on_record(members: list[State]) -> None:
        nonlocal saved
        progress.report({runs[id(state)].path: state for state in members})
        unsaved.update(members)
        for state in members:
            if ended(state):
                facts = provenance.circumstances(state.seconds) | {"device_name": device_name(problem.device)}
                job.keep(runs[id(state)], state, facts)
                unsaved.remove(state)
        if time.monotonic() - saved >= job.content["job"]["checkpoint_seconds"]:
            # Save all unsaved runs, not only the members: in a pack wider than the device computes, groups take turns.
            for state in unsaved:
                store.save_checkpoint(job.name(runs[id(state)]), state.described(), state.tensors)
            unsaved.clear()
            saved = time.monotonic()

    # The other functions of a model are checked before the first step (training.guards).
    fit, observe = problem.model.fit, undeclared.watched(problem.model.observe, undeclared.NO_FILES_OF_MODELS)
    fit = fit and undeclared.watched(fit, undeclared.NO_FILES_OF_MODELS)
    problem.model = replace(problem.model, fit=fit, observe=observe)
    with memory.explained(problem, next(iter(job.recipes)).seed):
        train_runs(problem, [*states.values()], learning_curves.measure, on_record)
