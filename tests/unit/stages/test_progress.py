"""The estimate of the time left, over all jobs of a build."""

from __future__ import annotations

import io
import json

import pytest

from compositional.stages.shared.progress import Overall, Progress, announce, overall
from compositional.training.state import State

WORK = {
    "slow_a": {"family": "slow", "runs": 2, "steps": 200},
    "slow_b": {"family": "slow", "runs": 2, "steps": 200},
    "fast": {"family": "fast", "runs": 1, "steps": 100},
}


def never(state) -> bool:
    return False


def report(board, name, **values):
    (board / f"{name}.json").write_text(json.dumps({"expected": 1600.0} | values))


def test_families_cost_what_was_measured(tmp_path):
    announce(tmp_path, WORK)
    report(tmp_path, "slow_a", done=100, trained=100, seconds=50)  # 0.5 s a step
    report(tmp_path, "fast", done=100, trained=50, seconds=5)  # 0.1 s a step, finished
    # Done: half of slow_a's two runs, and fast. Left: 100 x 0.5 + 200 x 0.5 = 150 s, one job running.
    assert overall(tmp_path, 1010.0) == Overall(5, pytest.approx(2 / 5), pytest.approx(150), 0)
    report(tmp_path, "slow_b", done=0, trained=0, seconds=1)
    assert overall(tmp_path, 1010.0).seconds == pytest.approx(75)
    # Jobs that fell silent are not running.
    assert overall(tmp_path, 9999.0).seconds == pytest.approx(150)


def test_runs_of_families_that_have_not_begun_have_no_known_cost(tmp_path):
    announce(tmp_path, WORK | {"long": {"family": "long", "runs": 3, "steps": 30_000}})
    assert overall(tmp_path, 1010.0) == Overall(8, 0, None, 8)
    report(tmp_path, "slow_a", done=100, trained=100, seconds=60)
    found = overall(tmp_path, 1010.0)
    assert found == Overall(8, pytest.approx(1 / 8), pytest.approx(180), 4)
    assert str(found) == "training 8 runs: 12 % done, about 3.0 min left and then 4 runs of families that have not started"


def test_a_job_counts_as_running_from_its_start_and_however_rarely_it_reports(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("compositional.stages.shared.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("compositional.stages.shared.progress.time.time", lambda: 1000 + clock[0])
    announce(tmp_path, {name: {"family": "rare", "runs": 1, "steps": 80} for name in ("first", "second")})
    states = {name: State(0, 0.0, 0) for name in ("first", "second")}
    jobs = {name: Progress(io.StringIO(), tmp_path, name, 80, [state], 0, never) for name, state in states.items()}
    # A record of 20 steps takes 900 s. After the first of them 60 + 80 steps are left, of 45 s, to two jobs.
    clock[0] = 900.0
    states["first"].step = 20
    jobs["first"].report({"a/lambda=0": states["first"]})
    jobs["second"].report({"b/lambda=0": states["second"]})
    assert overall(tmp_path, 1900.0).seconds == pytest.approx(140 * 45 / 2)
    # No word for 1,700 s is no surprise of these.
    assert overall(tmp_path, 1000 + 900 + 1700).seconds == pytest.approx(140 * 45 / 2)
    # After twice their longest silence they count as stopped, the time left as of one.
    assert overall(tmp_path, 1000 + 900 + 1801).seconds == pytest.approx(140 * 45)


def test_without_anything_measured_no_time_is_named(tmp_path):
    announce(tmp_path, WORK)
    assert Progress(io.StringIO(), tmp_path, "of an older build", 80, [State(0, 0.1, 40)], 0, never)._line("a/lambda=0", 40) == (
        "training 5 runs: 0 % done (a 50 %)"
    )


def test_a_build_that_makes_existing_runs_again_speaks_of_the_pack_alone(tmp_path):
    announce(tmp_path, {})
    changed = Progress(io.StringIO(), tmp_path, "changed", 80, [State(0, 0.1, 40)], 0, never)
    assert changed._line("a/lambda=0", 40) == "training: a 50 %"


def test_a_new_build_forgets_the_old_one(tmp_path):
    announce(tmp_path, WORK)
    report(tmp_path, "fast", done=100, trained=100, seconds=10)
    announce(tmp_path, WORK)
    assert [path.name for path in tmp_path.iterdir()] == ["work.json"]


def test_a_run_that_ended_early_has_nothing_left_to_do(tmp_path):
    announce(tmp_path, {name: {"family": "stops", "runs": 1, "steps": 80} for name in ("first", "second")})
    state = State(0, 0.0, 40)
    progress = Progress(io.StringIO(), tmp_path, "first", 80, [state], 0, lambda state: state.step == 60)
    progress.report({"a/lambda=0": state})
    assert json.loads((tmp_path / "first.json").read_text())["done"] == 40
    state.step = 60
    progress.report({"a/lambda=0": state})
    assert json.loads((tmp_path / "first.json").read_text())["done"] == 80
    assert overall(tmp_path, 0.0).share == pytest.approx(1 / 2)


def test_logs_name_run_step_loss_and_accuracy(tmp_path):
    log = io.StringIO()
    state = State(
        0, 0.1, 40, history=[(20, "test", "accuracy", 0.1), (40, "batches", "loss", 0.25), (40, "test", "accuracy", 0.5)]
    )
    Progress(log, tmp_path, "pack", 80, [state], 0, never).report({"task/model/entropy/lambda=0.1/seed=0": state})
    assert "task/model/entropy/lambda=0.1/seed=0 step 40/80 batches loss 0.25, test accuracy 0.5\n" in log.getvalue()
    assert json.loads((tmp_path / "pack.json").read_text())["done"] == 40
