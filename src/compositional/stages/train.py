"""Stage train: train many runs of one family in one process, using the store."""

from __future__ import annotations

import csv
import hashlib
import time
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional import files
from compositional.evaluation import learning_curves
from compositional.records import provenance
from compositional.records.entries import name_of, stored, stores
from compositional.records.store import Store
from compositional.runs import Run
from compositional.stages.shared import memory
from compositional.stages.shared.job import recipes_of
from compositional.stages.shared.progress import Progress
from compositional.stages.shared.trained_runs import data_of, device_name, intact, load_problem
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, weight_layout
from compositional.training.state import State, begun, has_ended
from compositional.training.weights import WeightLayout

HISTORY_HEADER = ("step", "split", "metric", "value")
# The part of a run's record about how it was made. With the state it is all that is needed to write the record.
FACTS = ("device_name", "versions", "source", "wall_seconds", "finished")


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


def _write(folder: Path, problem: Problem, state: State, record: dict[str, Any], recipe: dict[str, Any]) -> None:
    """Write the files of a trained run except its weights, the record last."""
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


def perform(content: dict[str, Any], log: TextIO, results: Path = Path("results"), restore: bool = True) -> None:
    """Train the runs of a pack's recipe file together and write each one's files to its own folder.

    A run that is in the store or in its folder is not trained again, but today's code always writes its files. A killed job loses
    at most `checkpoint_seconds` of training, plus the steps since the last record.

    restore: if the store seems to have all runs, claim no GPU. If a run turns out to be missing or damaged, a second try trains
        it.
    """
    told, shared = content["job"], {key: content["common"][key] for key in ("family", "code")}
    folders = stores(told["store"], results)
    recipes = {Run.parse(recipe["run"]): recipe for recipe in recipes_of(content)}
    planned = {run: shared | {"lambda": run.strength, "seed": run.seed} for run in recipes}
    restore = restore and stored(folders, planned.values(), told["device"])
    problem = load_problem(content | {"job": told | {"device": "cpu"}} if restore else content, results, log)
    # With `auto`, finished runs of either device are accepted if all are of the same one: no table may mix devices.
    wish = told["device"] if restore else problem.device
    devices = ["cpu", "cuda"] if wish == "auto" else [wish]
    identities = {
        run: of_run | {"data": problem.about["content_sha256"], "device": problem.device} | _buffers_digest(problem, run.seed)
        for run, of_run in planned.items()
    }
    kept, layout = Store(*folders), weight_layout(problem)
    places = {run: results / "runs" / run.path for run in recipes}

    def write(run: Run, state: State, facts: dict[str, Any]) -> None:
        about = {"run": run.path, "pack": [*content["runs"]], "inputs": data_of(problem)}
        tensors = _tensors(problem, layout, state)
        kept.write_tensors(name_of(identities[run]), tensors, places[run] / "weights.safetensors")
        _write(places[run], problem, state, identities[run] | about | facts, recipes[run])

    def keep(run: Run, state: State, facts: dict[str, Any]) -> None:
        """Put a run into the store and its folder, without the optimizer's moments."""
        about = {"state": state.described(), "facts": facts, "identity": identities[run]}
        if refused := kept.add(name_of(identities[run]), about, _tensors(problem, layout, state)):
            print(f"{run.path} is in {kept.folders[-1]}, not in the shared store: {refused}", file=log)
        write(run, state, facts)

    def take(run: Run) -> bool:
        """Whether the run existed; if so, its files are now in its folder."""
        for device in devices:
            identity = identities[run] | {"device": device}
            if (entry := kept.load(name_of(identity))) and (weights := _weights(layout, entry[1])) is not None:
                identities[run] = identity
                write(run, State.restored(entry[0]["state"], {"weights": weights}), entry[0]["facts"])
                return True
            if found := _read(places[run], layout, identity):
                identities[run] = identity
                keep(run, *found)
                return True
        return False

    missing = [run for run in recipes if not take(run)]
    if missing and restore:
        return perform(content, log, results, restore=False)

    states = {run: begun(problem, run, kept.load_checkpoint(name_of(identities[run]))) for run in missing}
    names = {id(state): run for run, state in states.items()}
    ended = partial(has_ended, settings=problem.settings)
    restored = len(recipes) - len(missing)
    name, steps = Path(log.name).stem, problem.settings["steps"]
    progress = Progress(log, results / "progress", f"train_{name}", steps, list(states.values()), restored, ended)
    unsaved: set[State] = set()
    saved = time.monotonic()

    def on_record(members: list[State]) -> None:
        nonlocal saved
        progress.report({names[id(state)].path: state for state in members})
        unsaved.update(members)
        for state in members:
            if ended(state):
                run = names[id(state)]
                facts = provenance.circumstances(state.seconds) | {"device_name": device_name(problem.device)}
                keep(run, state, facts)
                unsaved.remove(state)
        if time.monotonic() - saved >= content["job"]["checkpoint_seconds"]:
            # Save all unsaved runs, not only the members: in a pack wider than the device computes, groups take turns.
            for state in unsaved:
                kept.save_checkpoint(name_of(identities[names[id(state)]]), state.described(), state.tensors)
            unsaved.clear()
            saved = time.monotonic()

    with memory.explained(problem, next(iter(recipes)).seed):
        train_runs(problem, list(states.values()), learning_curves.measure, on_record)
