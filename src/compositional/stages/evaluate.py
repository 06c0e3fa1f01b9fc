"""Stage evaluate: metrics of many runs of one family in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional import decoding, devices, evaluation, files, training
from compositional.stages.problem import load_problem

METRICS_HEADER = ("split", "metric", "value")
PREDICTIONS_HEADER = ("input", "target", "prediction", "correct")
PREDICTIONS = 200  # decoded test examples kept a run


def evaluate_pack(
    split: Path, folders: list[Path], *, family: dict[str, Any], device: str, jobs_per_gpu: int, log: TextIO
) -> None:
    """Evaluate trained runs of one family together: metrics.csv and, for sequence tasks, predictions.csv in their folders.

    A diverged run has no accuracy, since its last finite weights are no result: its values are "nan", its row "diverged" is 1.
    """
    device = devices.resolve(device, jobs_per_gpu)
    print(devices.describe(device), file=log)
    problem = load_problem(split, family, device)
    width = training.WIDTH[problem.device] or len(folders)
    for start in range(0, len(folders), width):
        group = folders[start : start + width]
        loaded = [load_file(folder / "weights.safetensors", device=problem.device) for folder in group]
        loaded += [loaded[0]] * (width - len(loaded))
        weights: dict[str, Tensor] = {name: torch.stack([one[name] for one in loaded]) for name in loaded[0]}
        _write(problem, weights, group, log)


def _write(problem: training.Problem, weights: dict[str, Tensor], folders: list[Path], log: TextIO) -> None:
    """Measure runs that compute together; what `weights` holds beyond the folders is filling."""
    measured = evaluation.measure(problem, weights)
    decoded = None
    if problem.about["kind"] == "sequence":
        decoded = decoding.predictions(problem, weights, "test", PREDICTIONS)
    for index, folder in enumerate(folders):
        diverged = json.loads((folder / "run.json").read_text())["status"] == "diverged"
        rows: list[tuple[str, str, Any]] = [("train", "diverged", int(diverged))]
        rows += [(name, metric, "nan" if diverged else value) for (name, metric), value in measured[index].items()]
        if decoded is not None:
            kept = [(source, target, guess, int(target == guess)) for source, target, guess in decoded[index]]
            files.write_csv(folder / "predictions.csv", PREDICTIONS_HEADER, kept)
        files.write_csv(folder / "metrics.csv", METRICS_HEADER, rows)
        print(folder, *(f"{name} {metric} {value}," for name, metric, value in rows), file=log)
