"""Train a run in this process. It has the same numbers as in the workflow. Only raw files and splits are written to disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compositional import files
from compositional.configuration.configuration import Configuration, configuration
from compositional.evaluation import decoding, learning_curves
from compositional.evaluation.metrics import measure
from compositional.kinds.sequence import SequenceSplit
from compositional.notebook import imported
from compositional.notebook.trained import TrainedRun
from compositional.planning.recipes import Recipes
from compositional.records import provenance
from compositional.records.places import record_of
from compositional.runs import Run
from compositional.stages.download import fetch
from compositional.stages.evaluate import METRICS_HEADER, PREDICTIONS
from compositional.stages.split import make_split
from compositional.stages.train import HISTORY_HEADER
from compositional.training.loop import train_runs
from compositional.training.problem import buffers, weight_layout
from compositional.training.reading import read_problem
from compositional.training.state import fresh_state


def split(known: Configuration, task: str, results: Path) -> Path:
    """The folder of a task's split: the workflow's if it is up to date, else one that is made below results/notebook.

    Raises:
        ValueError: the task is built from runs, which the workflow must train.
    """
    record = record_of("splits", task)
    recipes = Recipes(known, results)
    made, vouched = results / "splits" / task, (results / record).exists() and recipes.outdated(record) is None
    if vouched and made.exists():
        return made
    if known.built_from(task)[0]:
        raise ValueError(f"task {task!r} is built from runs: call `snakemake {results}/splits/{task}` first")
    folder = results / "notebook" / recipes.digest(record)[:16] / task
    digests = folder.with_name(f"{task}.json")  # of its files, which may be damaged later
    if not digests.exists() or digests.read_bytes() != files.json_bytes(provenance.digests(folder.parent, [folder])):
        asked, dataset, raw = known.split_parameters(task), known.dataset(task), known.raw_files(task)
        for name in raw:
            if not (path := results / "raw" / dataset / name).exists():
                fetch(dataset, name, path, known.config["sources"], known.config["mirror"])
        make_split(task, asked["module"], asked["parameters"], results / "raw" / dataset, folder, raw_files=raw)
        files.write_json(digests, provenance.digests(folder.parent, [folder]))
    return folder


def train(
    task: str,
    model: str,
    regularizer: str = "none",
    strength: float = 0.0,
    seed: int = 0,
    *,
    overlays: Sequence[str | Path | dict[str, Any]] = (),
    results: str | Path = "results",
    **settings: Any,
) -> TrainedRun:
    """Train one run in this process on the CPU, for example in a notebook's cell or under a debugger.

    Its weights and history equal those of the workflow's run with the same key and configuration to the bit. `metrics` holds the
    values that every run of its kind has (loss, accuracy), without the further analyses of the workflow.

    Args:
        strength: lambda.
        overlays: files or dictionaries that are merged into the configuration, as --configfile does.
        results: the folder of splits and raw files.
        settings: training settings, such as steps=200. Options of a task, model or regularizer are given in `overlays`:
            overlays=[{"models": {"cnn": {"dense_width": 32}}}].

    Raises:
        ConfigurationError: there can be no such run; the message says why.
        RuntimeError: a module changed after this process imported it.
    """
    imported.check()
    if isinstance(strength, bool) or not isinstance(strength, int | float):
        raise TypeError(
            f"strength must be a number of Python, such as 0.1: it is {strength!r}, of type {type(strength).__name__}"
        )
    if not isinstance(overlays, list | tuple):
        raise TypeError(f"overlays must be a list of files and dictionaries, such as ['mine.yaml']: it is {overlays!r}")
    asked = [*overlays, {"models": {model: {"training": settings}}}] if settings else overlays
    known, run = configuration(*asked), Run.parse(Run(task, model, regularizer, strength, seed).path)
    known.check_run(run)
    problem = read_problem(split(known, task, Path(results)), known.family_parameters(run.family), "cpu")
    state = fresh_state(problem, run.seed, run.strength)
    train_runs(problem, [state], learning_curves.measure)
    imported.check()
    fixed = {name: values.unsqueeze(0) for name, values in buffers(problem, run.seed).items()}
    weights = weight_layout(problem).views(state.tensors["weights"].unsqueeze(0)) | fixed
    lost = state.diverged_at is not None
    metrics = [] if lost else [(*key, value) for key, value in measure(problem, weights)[0].items()]
    predictions = None
    if isinstance(problem.splits.get("test"), SequenceSplit):
        written = [] if lost else decoding.predictions(problem, weights, "test", PREDICTIONS)[0]
        predictions = pd.DataFrame(written, columns=["input", "target", "prediction"])
    return TrainedRun(
        run,
        "diverged" if lost else "done",
        state.step,
        problem,
        weights,
        history=pd.DataFrame(state.history, columns=list(HISTORY_HEADER)),
        metrics=pd.DataFrame(metrics, columns=list(METRICS_HEADER)),
        predictions=predictions,
    )
