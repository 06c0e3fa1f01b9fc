"""How similarly runs represent the same inputs, from their activations.safetensors: linear CKA of pairs of runs.

cka_between_seeds: the mean over the other seeds of the same task, model, regularizer and lambda. cka_with_plain: CKA with the
plain run (lambda = 0) of the same seed, which starts from the same weights and sees the same batches, so it shows what the
regularizer did to the representation. Only runs of the figure's grids are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from compositional.measures.compositionality import Measure, linear_cka
from compositional.runs import Run

SOURCE = "activations.safetensors"


def _rows(name: str, metric: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    found = [linear_cka(*pair) for pair in pairs if all(np.isfinite(rows).all() for rows in pair)]
    if not found:
        return {f"{metric} in {name}": float("nan")}
    return Measure.mean(found).rows(f"{metric} in {name}")


def collect(sources: dict[Run, Path]) -> Iterator[tuple[Run, str, str, float]]:
    """Rows (run, split, metric, value). NaN for a diverged run and for the only seed; diverged partners are left out."""
    shown = {run: load_file(path) for run, path in sources.items()}
    for run, own in shown.items():
        seeds = [other for other in shown if other != run and replace(other, seed=run.seed) == run]
        plain = replace(run, regularizer="none", strength=0.0)
        partners = {"cka_between_seeds": seeds, "cka_with_plain": [plain] if plain != run and plain in shown else []}
        for metric, others in partners.items():
            for name, values in own.items() if others or metric == "cka_between_seeds" else ():
                for key, value in _rows(name, metric, [(values, shown[other][name]) for other in others]).items():
                    yield run, "probe", key, value
