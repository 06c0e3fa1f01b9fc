"""Metrics depend on nothing whose changes would go unnoticed, and those of a killed job are kept."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import small, trained

from compositional.files import write_json
from compositional.stages import evaluate


def reads(*arguments):
    Path("words.txt").read_text()
    return [{}]


def draws(*arguments):
    np.random.random()
    return [{}]


@pytest.mark.parametrize("place", ["a metric", "measure", "describe"])
@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        (reads, PermissionError, r"a metric may read no file, .*: not .*/words\.txt"),
        (draws, ValueError, r"test_evaluate\.draws draws random numbers from a global generator"),
    ],
)
def test_a_metric_that_reads_or_draws_is_refused(tmp_path, monkeypatch, place, scores, error, message):
    case = small.problem("cnn")
    folder = tmp_path / f"results/runs/{case.task}/cnn/none/lambda=0/seed=0"
    write_json(folder / "run.json", {"status": "done"})
    (tmp_path / "words.txt").write_text("red blue")
    monkeypatch.chdir(tmp_path)
    weights = trained.untrained(case)
    evaluate._write(case, weights, [folder], io.StringIO())
    assert (folder / "metrics.csv").exists()
    if place == "a metric":
        monkeypatch.setattr(evaluate, "MORE", (*evaluate.MORE, scores))
    else:  # functions of the model
        case = replace(case, model=replace(case.model, **{place: scores}))
    with pytest.raises(error, match=message):
        evaluate._write(case, weights, [folder], io.StringIO())
