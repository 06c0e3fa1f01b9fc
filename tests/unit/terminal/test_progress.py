"""How far a build is, and how long it will take."""

from __future__ import annotations

import json

import pytest

from compositional.terminal.costs import START
from compositional.terminal.progress import Build, Task, tasks_of

BELIEVED = {("train", "slow"): 0.5, ("train", "fast"): 0.1, ("evaluate", "slow"): 2.0, ("split", "digits"): 30.0}


class Known:
    """Costs of which a test knows all."""

    def seconds(self, stage: str, name: str) -> float | None:
        return BELIEVED.get((stage, name))


def build(*tasks: Task, workers: int = 1) -> Build:
    return Build(list(tasks), Known(), workers)


def training(tmp_path, name: str = "slow", units: int = 200, **values) -> Task:
    board = tmp_path / f"{name}.json"
    if values:
        board.write_text(json.dumps(values))
    return Task("train", name, units, board, began=0.0 if values else None)


def test_before_a_build_tells_anything_the_table_counts(tmp_path):
    tasks = [training(tmp_path), Task("evaluate", "slow", 2), Task("split", "digits")]
    share, left = build(*tasks).estimate(0.0)
    assert share == 0
    assert left == pytest.approx(3 * START + 200 * 0.5 + 2 * 2.0 + 30.0)


def test_what_was_measured_scales_what_was_not(tmp_path):
    """A machine that is half as fast as was believed: the running job by its own steps, the others by the same factor."""
    slow = training(tmp_path, done=100, trained=100, seconds=100.0)
    share, left = build(slow, Task("evaluate", "slow", 2), training(tmp_path, "fast", 50)).estimate(100.0)
    wholes = (START + 200 * 1.0, START + 2 * 4.0, START + 50 * 0.2)
    assert left == pytest.approx(wholes[0] / 2 + wholes[1] + wholes[2])
    assert share == pytest.approx(wholes[0] / 2 / sum(wholes))


def test_runs_that_were_there_count_as_done_and_not_as_fast(tmp_path):
    slow = training(tmp_path, done=150, trained=50, seconds=50.0)
    assert build(slow).estimate(50.0)[1] == pytest.approx((START + 200 * 1.0) / 4)


def test_jobs_that_are_over_say_what_others_of_their_family_take():
    over = Task("evaluate", "slow", 2, began=0.0, ended=START + 20.0)
    assert build(over, Task("evaluate", "slow", 4)).estimate(99.0)[1] == pytest.approx(START + 40.0)


def test_workers_share_what_is_left_and_a_figure_waits_for_all(tmp_path):
    tasks = [training(tmp_path, units=units) for units in (400, 200, 200)]
    assert build(*tasks, workers=2).estimate(0.0)[1] == pytest.approx(2 * START + 200.0)
    last = [Task("aggregate", ""), Task("plot", "")]
    assert build(*tasks, *last, workers=2).estimate(0.0)[1] == pytest.approx(2 * START + 200.0 + 2 * (START + 5.0))


def test_a_job_that_takes_longer_than_believed_is_almost_done():
    share, left = build(Task("split", "digits", began=0.0)).estimate(1000.0)
    assert share == pytest.approx(0.95)
    assert left == pytest.approx(0.05 * (START + 30.0))


def test_when_all_is_done_nothing_is_left():
    assert build(Task("split", "digits", began=0.0, ended=3.0)).estimate(9.0) == (1.0, 0.0)
    assert build().estimate(0.0) == (1.0, 0.0)


def test_the_jobs_of_a_build_are_those_that_snakemake_counts(tmp_path):
    from compositional.planning.packs import Pack

    common = {"family": {"settings": {"steps": 10, "batch_size": 4}}}
    runs = {f"digits/cnn/none/lambda=0/seed={seed}": {} for seed in (0, 1)}
    packs = [Pack({"stage": stage, "common": common, "runs": runs, "files": []}) for stage in ("train", "evaluate")]
    found = tasks_of({packs[0].name: 1, "split": 1, "plot": 1, "total": 3}, packs, tmp_path)
    assert found[packs[0].name] == [Task("train", "digits/cnn/none", 20, tmp_path / "progress" / f"{packs[0].name}.json")]
    assert found["split"] == [Task("split", "digits")]
    assert found["plot"] == [Task("plot", "")]
    assert len(found) == 3
