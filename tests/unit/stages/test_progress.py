"""A training job reports its progress in its log and in files that the build reads."""

from __future__ import annotations

import io
import json

from compositional.stages.shared.progress import Progress
from compositional.training.state import State


def never(state) -> bool:
    return False


def test_a_job_reports_its_progress_from_the_start(tmp_path):
    state = State(0, 0.0, 40)
    progress = Progress(io.StringIO(), tmp_path, "pack", 80, [state], 2, never)
    told = json.loads((tmp_path / "pack.json").read_text())
    assert (told["done"], told["trained"]) == (200, 0)
    state.step = 60
    progress.report({"a/lambda=0": state})
    told = json.loads((tmp_path / "pack.json").read_text())
    assert (told["done"], told["trained"]) == (220, 20)
    assert told["seconds"] >= 0


def test_a_run_that_ended_early_has_nothing_left_to_do(tmp_path):
    state = State(0, 0.0, 40)
    progress = Progress(io.StringIO(), tmp_path, "first", 80, [state], 0, lambda state: state.step == 60)
    state.step = 60
    progress.report({"a/lambda=0": state})
    assert json.loads((tmp_path / "first.json").read_text())["done"] == 80


def test_jobs_of_two_calls_do_not_overwrite_each_others_reports(tmp_path):
    for name, step in (("one", 10), ("other", 20)):
        Progress(io.StringIO(), tmp_path, name, 80, [State(0, 0.0, step)], 0, never)
    assert [json.loads((tmp_path / f"{name}.json").read_text())["done"] for name in ("one", "other")] == [10, 20]


def test_logs_name_run_step_loss_and_accuracy(tmp_path):
    log = io.StringIO()
    state = State(
        0, 0.1, 40, history=[(20, "test", "accuracy", 0.1), (40, "batches", "loss", 0.25), (40, "test", "accuracy", 0.5)]
    )
    Progress(log, tmp_path, "pack", 80, [state], 0, never).report({"task/model/entropy/lambda=0.1/seed=0": state})
    assert "task/model/entropy/lambda=0.1/seed=0 step 40/80 batches loss 0.25, test accuracy 0.5\n" in log.getvalue()
    assert json.loads((tmp_path / "pack.json").read_text())["done"] == 40
