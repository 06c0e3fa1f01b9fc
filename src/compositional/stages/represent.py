"""Stage represent: measure the representations of one family's trained runs from their saved weights. Nothing is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from safetensors.numpy import save
from threadpoolctl import threadpool_limits
from torch import Tensor

from compositional import files
from compositional.evaluation import representations
from compositional.records import undeclared
from compositional.stages.shared.trained_runs import load_problem, measured

REPRESENTATIONS_HEADER = ("split", "metric", "value")
VECTORS_HEADER = ("representation", "item", "dimension", "value")
_ITS_SPLIT = "a measure of representations may read its task's folder only, so that they are measured again if a file changes"


def perform(content: dict[str, Any], log: TextIO, results: Path = Path("results")) -> None:
    """Measure the runs of a recipe file together. Writes to each run's folder:

    representations.csv    measures (compositional.evaluation.representations), each with its value for shuffled items
    activations.safetensors   every representation of the probe's items, (items, D), for comparing runs
    vectors.csv            the vectors that figures show: words, and the probe's items

    A diverged run has "nan" everywhere, because its last finite weights are not a result.
    """
    problem = load_problem(content, results, log)
    split = results / "splits" / problem.task

    def measure(weights: dict[str, Tensor], folders: list[Path]) -> None:
        with undeclared.refused([split], _ITS_SPLIT, everywhere=True):
            found = representations.measure(problem, weights, split)
        for folder, findings in zip(folders, found, strict=False):
            _write(folder, findings)
            print(folder, f"{len(findings.measures)} measures", file=log)

    # Always one thread: sums in another order would have different last bits.
    torch.set_num_threads(1)
    with threadpool_limits(1):
        measured(content, problem, results, measure, log)


def _write(folder: Path, findings: representations.Findings) -> None:
    diverged = json.loads((folder / "run.json").read_text(encoding="utf-8"))["status"] == "diverged"
    rows = [(name, metric, "nan" if diverged else float(value)) for (name, metric), value in findings.measures.items()]
    files.write_csv(folder / "representations.csv", REPRESENTATIONS_HEADER, rows)
    vectors = [
        (name, item, dimension, "nan" if diverged else float(value))
        for name, (items, values) in findings.vectors.items()
        for item, vector in zip(items, values, strict=True)
        for dimension, value in enumerate(vector)
    ]
    files.write_csv(folder / "vectors.csv", VECTORS_HEADER, vectors)
    lost = np.nan if diverged else 1.0
    kept = {name: np.ascontiguousarray(values * lost) for name, values in findings.activations.items()}
    with files.replacing(folder / "activations.safetensors") as temporary:
        temporary.write_bytes(save(kept))
