"""The networks from which a generation is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from compositional.tasks import raven_evolved


def write_metrics(folder: Path, seed: int, accuracy: float | str, loss: float | str, diverged: int = 0) -> Path:
    path = folder / f"t/m/none/lambda=0/seed={seed}/metrics.csv"
    path.parent.mkdir(parents=True)
    rows = (
        f"train,diverged,{diverged}\ntrain,accuracy,{accuracy}\ntrain,loss,{loss}\nvalidation,accuracy,1\nprogram,is identity,1\n"
    )
    path.write_text("split,metric,value\n" + rows)
    return path


def test_networks_are_ranked_by_training_accuracy_then_loss_and_diverged_ones_are_last(tmp_path):
    values = [(0.5, 0.1), (0.9, 0.3), (0.9, 0.2), ("nan", "nan"), (0.7, 0.9)]
    paths = [write_metrics(tmp_path, seed, *value, diverged=int(seed == 3)) for seed, value in enumerate(values)]
    assert raven_evolved.rank(paths) == [2, 1, 4, 0, 3]
    paths[0].write_text("split,metric,value\n")
    with pytest.raises(ValueError, match="has no accuracy"):
        raven_evolved.rank(paths)
