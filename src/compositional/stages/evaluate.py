"""Stage evaluate: compute the metrics of many runs of one family in one process."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import Tensor

from compositional import files
from compositional.evaluation import conjunctions, decoding, error_types, metrics, readings, semantic_match, smoothness
from compositional.kinds.sequence import SequenceSplit
from compositional.layers.tap import silent_tap
from compositional.records import undeclared
from compositional.runs import Run
from compositional.stages.shared.trained_runs import load_problem, measured
from compositional.training.problem import Problem, initial_weights, width_of

METRICS_HEADER = ("split", "metric", "value")
PREDICTIONS_HEADER = ("input", "target", "prediction", "correct", "mistake")
PREDICTIONS = 200  # decoded test examples kept per run
# Metrics with a module of their own: (problem, weights (R, ...)) -> {(split, metric): value} for each run, empty for other tasks.
MORE = (decoding.scores, semantic_match.scores)
_NO_FILES = (
    "a metric may read no file, because runs would not be evaluated again if it changed: write what it says into the metric's "
    "module, or let a task write it to task.json"
)


def perform(content: dict[str, Any], log: TextIO, results: Path = Path("results")) -> None:
    """Evaluate the trained runs of a recipe file together. Writes metrics.csv and, for sequence tasks, predictions.csv in their
    folders.

    A diverged run has no accuracy and no predictions, because its last finite weights are not a result: its values are "nan", its
    row "diverged" is 1, and its predictions.csv has only a header.
    """
    problem = load_problem(content, results, log)

    def write(weights: dict[str, Tensor], folders: list[Path]) -> None:
        _write(problem, weights, folders, log)

    made_of = ("weights.safetensors", "history.csv")
    measured(content, problem, results, write, log, reads=("references", "decoding"), made_of=made_of)


def _analyze(problem: Problem, weights: dict[str, Tensor], folders: list[Path]) -> list[dict[tuple[str, str], float]]:
    """Metrics beyond loss and accuracy, per run: those that the model defines itself, or those of known components."""
    if problem.model.measure is None:
        found = _of_representations(problem, weights)
        for result, start in zip(found, _untrained(problem, weights, folders), strict=False):
            result |= {("initialization", metric): value for (_, metric), value in start.items()}
        return found
    own = undeclared.watched(problem.model.measure, _NO_FILES, everywhere=True)
    width = next(iter(weights.values())).shape[0]
    weights = metrics.calibrated(problem, weights)
    outputs: dict[str, Tensor] = {}
    for name, split in problem.splits.items():
        with torch.no_grad():
            parts = [
                problem.model.forward(problem.model_parameters, weights, batch, silent_tap)
                for _, batch in split.evaluation_batches(width, metrics.BATCH)
            ]
        outputs[name] = torch.cat(parts, 1)
    return [
        own(problem.model_parameters, problem.about, problem.splits, {name: values[run] for name, values in outputs.items()})
        for run in range(len(folders))
    ]


def _of_representations(problem: Problem, weights: dict[str, Tensor], outputs: bool = True) -> list[dict[tuple[str, str], float]]:
    """Measures of every run's representations and, with `outputs`, of how the outputs depend on known components."""
    found = conjunctions.measure(problem, weights, outputs), smoothness.measure(problem, weights)
    return [one | other for one, other in zip(*found, strict=True)]


def _untrained(problem: Problem, weights: dict[str, Tensor], folders: list[Path]) -> list[dict[tuple[str, str], float]]:
    """`_of_representations` of every run before training. Runs that differ only in lambda share one result."""
    seeds = [Run.of_folder(folder).seed for folder in folders]
    places = {seed: seeds.index(seed) for seed in seeds}
    rows = [*places.values()]
    rows += rows[:1] * ((width_of(problem) or 0) - len(rows))
    drawn = [initial_weights(problem, seeds[row]) for row in rows]
    before = {name: values[rows] for name, values in weights.items()}
    before |= {name: torch.stack([one[name] for one in drawn]).to(problem.device) for name in drawn[0]}
    measured = dict(zip(places, _of_representations(problem, before, outputs=False), strict=False))
    return [measured[seed] for seed in seeds]


def _by_error_type(decoded: list[tuple[str, str, str]]) -> list[tuple[str, str, str, int, str]]:
    """Rows of predictions.csv, sorted by their type of error; correct ones come last."""
    types = [error_types.error_type(target, prediction) for _, target, prediction in decoded]
    rows = [(*row, int(found == "right"), found) for row, found in zip(decoded, types, strict=True)]
    return sorted(rows, key=lambda row: (row[3], error_types.ERROR_TYPES.index(row[4])))


def _write(problem: Problem, weights: dict[str, Tensor], folders: list[Path], log: TextIO) -> None:
    """Measure runs that compute together. Rows of `weights` beyond the number of folders are padding."""
    lost = [json.loads((folder / "run.json").read_text(encoding="utf-8"))["status"] == "diverged" for folder in folders]
    # Imported by name, outside the fingerprint: it changes no number, so editing it must not evaluate everything again.
    import_module("compositional.training.guards").check_evaluation(problem, weights, lost[0])
    with undeclared.refused([], _NO_FILES, everywhere=True):
        results = metrics.measure(problem, weights)
        for result, more in zip(results, _analyze(problem, weights, folders), strict=False):
            result |= more
        for scores in MORE:
            with undeclared.no_random_numbers(f"{scores.__module__}.{scores.__name__}"):
                found = scores(problem, weights)
            for result, more in zip(results, found, strict=True):
                result |= more
        describe = undeclared.watched(problem.model.describe, _NO_FILES, everywhere=True)
        described = [describe(problem.model_parameters, problem.about, Run.of_folder(folder).seed) for folder in folders]
    is_text = isinstance(problem.splits["train"], SequenceSplit)
    decoded = decoding.predictions(problem, weights, "test", PREDICTIONS) if is_text else None
    for index, folder in enumerate(folders):
        diverged = lost[index]
        rows: list[tuple[str, str, Any]] = [("train", "diverged", int(diverged))]
        rows += [(name, metric, "nan" if diverged else value) for (name, metric), value in results[index].items()]
        if problem.about.get("decoding", {}).get("brackets"):
            whole, recorded = len(problem.splits["test"]), problem.settings["curve_examples"]
            name, value = readings.best_recorded(folder / "history.csv", whole, recorded)
            rows.append(("test", name, "nan" if diverged else value))
        # Values to compare the accuracies with: references that need no network, and the model's description of itself.
        rows += [("reference", name, value) for name, value in problem.about.get("references", {}).items()]
        rows += described[index]
        if decoded is not None:
            files.write_csv(folder / "predictions.csv", PREDICTIONS_HEADER, [] if diverged else _by_error_type(decoded[index]))
        files.write_csv(folder / "metrics.csv", METRICS_HEADER, rows)
        print(folder, *(f"{name} {metric} {value}," for name, metric, value in rows), file=log)
