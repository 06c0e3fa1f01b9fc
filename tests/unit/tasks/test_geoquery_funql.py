"""GeoQuery in FunQL: what its loader writes, how its names are exchanged, and how published systems are read."""

from __future__ import annotations

import csv

import pytest
from support import small

from compositional.datasets import geoquery_funql
from compositional.evaluation import readings
from compositional.plugins import defaults
from compositional.stages.split import audit
from compositional.tasks import geoquery_funql as task


def build(**options):
    return task.build(small.raw_files("geoquery_funql"), defaults("tasks.geoquery_funql") | options)


def test_functions_are_marked_and_commas_are_separate_symbols():
    forms = build()[0]["train"]["output"][:]
    assert "_answer ( _size ( _cityid ( austin , _ ) ) )" in forms
    assert "_answer ( _size ( _cityid ( austin, _ ) ) )" in build(commas="glued")[0]["train"]["output"][:]
    assert "_answer ( _state ( all ) )" in forms
    assert "answer ( state ( all ) )" in build(functions="plain")[0]["train"]["output"][:]


def test_the_query_split_shares_no_form_and_the_question_split_declares_that_it_does():
    members, about = build()
    assert [count["in_training"] for count in audit(members, about["disjoint"])] == [0, 0]
    assert about["in_distribution"] == "validation"
    _, about = build(split="question")
    assert "3 pairs" in about["disjoint"][0]["by_design"]


@pytest.mark.parametrize(
    ("form", "category"),
    [
        ("_answer ( _len ( _riverid ( red ) ) )", "asks/len; names/river"),
        ("_answer ( _state ( all ) )", "asks/state; names/none"),
        ("answer ( state ( stateid ( red ) ) )", "asks/state; names/state"),
        (
            "_answer ( _exclude ( _loc_2 ( _stateid ( a ) ) , _loc_2 ( _cityid ( b , _ ) ) ) )",
            "asks/exclude; names/city; names/state",
        ),
    ],
)
def test_categories(form, category):
    assert geoquery_funql.category(form) == category


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a ( b ( c ) )", "a ( b ( c ) )"),
        ("a ( b ( c", "a ( b ( c ) )"),
        ("a ( b ( c ) ) ) )", "a ( b ( c ) )"),
        ("a ( b ) ) c", "a ( b ) ) c"),  # an extra bracket inside stays
        ("", ""),
    ],
)
def test_brackets_are_repaired_only_at_the_end(written, read):
    assert readings.repaired(written) == read


def test_the_best_point_is_named_with_their_number(tmp_path):
    rows = [(0, "test", "accuracy", 0.9), (1, "test", "accuracy", 0.2), (2, "test", "accuracy", 0.4), (2, "train", "accuracy", 1)]
    with (tmp_path / "history.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("step", "split", "metric", "value"), *rows])
    assert readings.best_recorded(tmp_path / "history.csv", 253, 512) == ("accuracy, best of 2 points", 0.4)
    assert readings.best_recorded(tmp_path / "history.csv", 253, 16) == ("accuracy, best of 2 points on 16 examples", 0.4)
