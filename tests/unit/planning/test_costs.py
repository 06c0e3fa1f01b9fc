"""The cost of jobs comes from earlier runs or, if there are none, from the shipped table."""

from __future__ import annotations

import json
import sys
from unittest.mock import Mock

import pytest

from compositional.planning import costs
from compositional.planning.costs import Costs, measured, words
from compositional.records.places import recipe_name
from compositional.stages.shared import job

TABLE = {("train", "a/cnn/none"): 0.1, ("train", "a/cnn/entropy"): 0.2, ("train", "b/lstm/none"): 1.0, ("split", "a"): 7.0}


@pytest.fixture(autouse=True)
def table(monkeypatch):
    monkeypatch.setattr(costs, "shipped", lambda: TABLE)


def record(results, family, seed, **values):
    folder = results / "runs" / family / "lambda=0" / f"seed={seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in values.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_earlier_runs_have_priority_over_the_table(tmp_path):
    for seed, seconds in enumerate((30.0, 50.0, 40.0)):
        record(tmp_path, "a/cnn/none", seed, run={"wall_seconds": seconds, "steps": 100}, evaluation={"wall_seconds": 3.0})
    assert Costs(tmp_path).seconds("train", "a/cnn/none") == pytest.approx(0.4)
    assert Costs(tmp_path).seconds("evaluate", "a/cnn/none") == pytest.approx(3.0)
    record(tmp_path, "a/cnn/entropy", 0, run={"wall_seconds": 3.0})  # a record without steps is ignored
    assert Costs(tmp_path).seconds("train", "a/cnn/entropy") == 0.2


def test_families_missing_in_the_table_cost_as_much_as_the_most_similar_one(tmp_path):
    known = Costs(tmp_path)
    assert known.seconds("train", "c/cnn/entropy") == 0.2
    assert known.seconds("train", "c/cnn/dropout") == pytest.approx(0.15)
    assert known.seconds("train", "b/other/none") == 1.0
    assert known.seconds("train", "c/other/dropout") == 0.2
    assert known.seconds("train", "a_select/cnn/dropout") == pytest.approx(0.15)
    assert known.seconds("represent", "a/cnn/none") is None


def test_the_data_matter_more_than_the_regularizer(tmp_path, monkeypatch):
    table = {("train", "digits_concat/cnn/none"): 1.0, ("train", "mnist_concat/cnn/dropout"): 30.0}
    monkeypatch.setattr(costs, "shipped", lambda: table)
    assert Costs(tmp_path).seconds("train", "digits_concat_select_pairs/cnn/dropout") == 1.0


def test_costs_of_splits_come_from_the_logs_of_their_jobs(tmp_path, monkeypatch):
    content = {"recipe": {"of": {}}}
    recipe = tmp_path / f"{recipe_name('split_b', content)}.json"
    recipe.write_text(json.dumps(content))
    log = tmp_path / "logs/split/b.log"
    monkeypatch.setattr(sys, "argv", ["split.py", str(recipe), str(log)])
    monkeypatch.setattr(job, "time", Mock(monotonic=Mock(side_effect=[50.0, 53.4])))
    with job.told():
        pass
    assert Costs(tmp_path).seconds("split", "b") == 3.4
    log.write_text("without its end\n")
    assert Costs(tmp_path).seconds("split", "b") == 7.0
    assert Costs(tmp_path).seconds("split", "a") == 7.0


def test_the_table_is_written_from_a_build(tmp_path):
    record(tmp_path, "a/cnn/none", 0, run={"wall_seconds": 40.0, "steps": 100}, evaluation={"wall_seconds": 3.0})
    assert list(measured(tmp_path)) == [("train", "a/cnn/none", "0.4"), ("evaluate", "a/cnn/none", "3")]


def test_times_are_written_in_words():
    assert [words(seconds) for seconds in (0, 33, 70, 400, 9000)] == ["5 s", "35 s", "1 min", "7 min", "2.5 h"]


def test_a_model_was_timed_for_the_table_or_in_a_run_here(tmp_path):
    assert Costs(tmp_path).timed("cnn")
    assert not Costs(tmp_path).timed("another")
    folder = tmp_path / "runs/digits_concat/another/none/lambda=0/seed=0"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    assert Costs(tmp_path).timed("another")
