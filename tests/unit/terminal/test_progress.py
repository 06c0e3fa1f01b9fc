"""The progress of a build and the time left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compositional.planning.costs import OTHERWISE, START
from compositional.planning.packs import Pack
from compositional.records.entries import name_of
from compositional.terminal.progress import Build, Task, tasks_of

BELIEVED = {("train", "slow"): 0.5, ("train", "fast"): 0.1, ("evaluate", "slow"): 2.0, ("split", "digits"): 30.0}


class Known:
    """Known costs for the tests."""

    def seconds(self, stage: str, name: str) -> float | None:
        return BELIEVED.get((stage, name))


def build(*tasks: Task, workers: int = 1) -> Build:
    return Build(list(tasks), Known(), workers)


def training(tmp_path, name: str = "slow", units: int = 200, **values) -> Task:
    board = tmp_path / f"{name}.json"
    if values:
        board.write_text(json.dumps(values))
    return Task("train", name, units, board, began=0.0 if values else None)


def test_the_first_estimate_comes_from_the_table(tmp_path):
    tasks = [training(tmp_path), Task("evaluate", "slow", 2), Task("split", "digits")]
    share, left = build(*tasks).estimate(0.0)
    assert share == 0
    assert left == pytest.approx(3 * START + 200 * 0.5 + 2 * 2.0 + 30.0)


def test_measured_speeds_scale_the_estimates_of_other_jobs(tmp_path):
    """The machine is half as fast as expected: the running job is scaled by its own steps, the others by the same factor."""
    slow = training(tmp_path, done=100, trained=100, seconds=100.0)
    share, left = build(slow, Task("evaluate", "slow", 2), training(tmp_path, "fast", 50)).estimate(100.0)
    wholes = (START + 200 * 1.0, START + 2 * 4.0, START + 50 * 0.2)
    assert left == pytest.approx(wholes[0] / 2 + wholes[1] + wholes[2])
    assert share == pytest.approx(wholes[0] / 2 / sum(wholes))


def test_runs_from_the_store_count_as_done_but_not_as_measured_speeds(tmp_path):
    slow = training(tmp_path, done=150, trained=50, seconds=50.0)
    assert build(slow).estimate(50.0)[1] == pytest.approx((START + 200 * 1.0) / 4)


def test_finished_jobs_determine_the_estimates_of_their_family():
    over = Task("evaluate", "slow", 2, began=0.0, ended=START + 20.0)
    assert build(over, Task("evaluate", "slow", 4)).estimate(99.0)[1] == pytest.approx(START + 40.0)


def test_workers_share_the_remaining_jobs_and_a_figure_waits_for_all(tmp_path):
    tasks = [training(tmp_path, units=units) for units in (400, 200, 200)]
    assert build(*tasks, workers=2).estimate(0.0)[1] == pytest.approx(2 * START + 200.0)
    last = [Task("aggregate", ""), Task("plot", "")]
    assert build(*tasks, *last, workers=2).estimate(0.0)[1] == pytest.approx(2 * START + 200.0 + 2 * (START + 5.0))


def test_a_job_that_takes_longer_than_expected_counts_as_almost_done():
    share, left = build(Task("split", "digits", began=0.0)).estimate(1000.0)
    assert share == pytest.approx(0.95)
    assert left == pytest.approx(0.05 * (START + 30.0))


def test_a_training_moves_between_its_reports(tmp_path):
    """On a busy machine, a minute can pass before the next one. It gets no further than almost to the next one."""
    slow, whole = training(tmp_path, done=0, trained=0, seconds=0.1), START + 200 * 0.5
    slow.every = 20
    shown = build(slow)
    assert [shown.estimate(now)[0] for now in (3.0, 8.0, 60.0)] == pytest.approx([0.0, 5.0 / whole, 0.95 * 0.1])
    slow.board.write_text(json.dumps({"done": 20, "trained": 20, "seconds": 60.0}))
    assert shown.estimate(63.0)[0] == pytest.approx(0.1)
    assert shown.estimate(63.0 + START + 200 * 3.0)[0] == pytest.approx(0.1 + 0.95 * 0.1)
    slow.board.write_text(json.dumps({"done": 200, "trained": 200, "seconds": 600.0}))
    assert [shown.estimate(now)[0] for now in (603.0, 700.0)] == [1.0, 1.0]


def test_a_training_that_has_not_reported_may_wait_in_a_queue(tmp_path):
    slow = Task("train", "slow", 200, tmp_path / "none.json", began=0.0, every=20)
    assert build(slow).estimate(100.0)[0] == 0


def test_no_time_is_left_when_all_jobs_are_done():
    assert build(Task("split", "digits", began=0.0, ended=3.0)).estimate(9.0) == (1.0, 0.0)
    assert build().estimate(0.0) == (1.0, 0.0)


def packs_in(store: Path) -> list[Pack]:
    """A training and an evaluation of two runs."""
    common = {"family": {"settings": {"steps": 10, "batch_size": 4, "record_every": 5}}, "code": {}}
    runs = {f"digits/cnn/none/lambda=0/seed={seed}": {} for seed in (0, 1)}
    told = {"runs": runs, "common": common, "files": [], "job": {"store": str(store), "device": "cpu"}}
    return [Pack(told | {"stage": stage}) for stage in ("train", "evaluate")]


def test_runs_from_the_store_take_no_time_of_training(tmp_path):
    """Only if the store has all runs of a job."""
    for seed, expected in ((0, "train"), (1, "restore")):
        identity = packs_in(tmp_path)[0].content["common"] | {"lambda": 0.0, "seed": seed, "device": "cpu"}
        path = tmp_path / "entries" / f"{name_of(identity)}.json"
        path.parent.mkdir(parents=True)
        path.touch()
        pack, _ = packs_in(tmp_path)
        ((task,),) = tasks_of({pack.name: 1}, [pack], tmp_path).values()
        assert task.stage == expected
    assert build(task).estimate(0.0)[1] == START + OTHERWISE


def test_the_number_of_jobs_equals_snakemakes_count(tmp_path):
    packs = packs_in(tmp_path)
    found = tasks_of({packs[0].name: 1, "split": 1, "plot": 1, "total": 3}, packs, tmp_path)
    board = tmp_path / "progress" / f"{packs[0].name}.json"
    assert found[packs[0].name] == [Task("train", "digits/cnn/none", 20, board, every=10)]
    assert found["split"] == [Task("split", "digits")]
    assert found["plot"] == [Task("plot", "")]
    assert len(found) == 3
