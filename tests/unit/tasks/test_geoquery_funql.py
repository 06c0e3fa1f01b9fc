"""GeoQuery in FunQL: what its loader writes, how its names are exchanged, and how published systems are read."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from support import small

from compositional.datasets import geoquery_funql
from compositional.evaluation import readings
from compositional.language import kinds_of_terms
from compositional.plugins import defaults
from compositional.stages.split import audit
from compositional.tasks import geoquery_funql as task


def build(**options):
    return task.build(small.raw_files("geoquery_funql"), defaults("tasks.geoquery_funql") | options)


def test_functions_are_marked_and_commas_parted():
    forms = build()[0]["train"]["output"][:]
    assert "_answer ( _size ( _cityid ( austin , _ ) ) )" in forms
    assert "_answer ( _size ( _cityid ( austin, _ ) ) )" in build(commas="glued")[0]["train"]["output"][:]
    assert "_answer ( _state ( all ) )" in forms


def test_the_query_split_shares_no_form_and_the_question_split_says_that_it_does():
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
        (
            "_answer ( _exclude ( _loc_2 ( _stateid ( a ) ) , _loc_2 ( _cityid ( b , _ ) ) ) )",
            "asks/exclude; names/city; names/state",
        ),
    ],
)
def test_categories(form, category):
    assert geoquery_funql.category(form) == category


QUESTIONS = [
    "size of texas",
    "size of austin",
    "rivers in texas",
    "rivers in utah",
    "length of the red",
    "all states",
    "all cities",
]
FORMS = [
    "_answer ( _size ( _stateid ( texas ) ) )",
    "_answer ( _size ( _cityid ( austin , _ ) ) )",
    "_answer ( _loc_2 ( _stateid ( texas ) ) )",
    "_answer ( _loc_2 ( _stateid ( utah ) ) )",
    "_answer ( _len ( _riverid ( red ) ) )",
    "_answer ( _loc_2 ( _state ( all ) ) )",
    "_answer ( _loc_2 ( _city ( all ) ) )",
]


def exchanged(types: str) -> set[tuple[str, str]]:
    return set(kinds_of_terms.exchanged(QUESTIONS, FORMS, 20, np.random.default_rng(0), types))


def test_by_place_a_city_stands_for_a_state_and_by_kind_it_does_not():
    texas, austin = ("size of texas", FORMS[0]), ("size of austin", FORMS[1])
    utah = ("size of utah", "_answer ( _size ( _stateid ( utah ) ) )")
    by_place, by_kind, by_both = exchanged("place"), exchanged("kind"), exchanged("both")
    assert {texas, austin} <= by_place
    assert utah not in by_place  # no training pair has utah inside _size
    assert {texas, utah, austin} <= by_kind  # the only city stays
    assert by_both == by_place | by_kind
    assert by_place == set(zip(QUESTIONS, FORMS, strict=True))  # texas and austin, texas and utah: what these make is there


def test_what_names_nothing_is_never_exchanged():
    for types in kinds_of_terms.TYPES:
        found = exchanged(types)
        assert {pair for pair in found if "all" in pair[0]} == {(QUESTIONS[5], FORMS[5]), (QUESTIONS[6], FORMS[6])}
        assert not [form for _, form in found if "<" in form]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a ( b ( c ) )", "a ( b ( c ) )"),
        ("a ( b ( c", "a ( b ( c ) )"),
        ("a ( b ( c ) ) ) )", "a ( b ( c ) )"),
        ("a ( b ) ) c", "a ( b ) ) c"),  # a surplus bracket inside stays
        ("", ""),
    ],
)
def test_brackets_are_repaired_at_the_end_alone(written, read):
    assert readings.repaired(written) == read


def test_the_best_point_is_named_with_their_number(tmp_path):
    rows = [(0, "test", "accuracy", 0.9), (1, "test", "accuracy", 0.2), (2, "test", "accuracy", 0.4), (2, "train", "accuracy", 1)]
    with (tmp_path / "history.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("step", "split", "metric", "value"), *rows])
    assert readings.best_recorded(tmp_path / "history.csv") == ("accuracy, best of 2 points", 0.4)
