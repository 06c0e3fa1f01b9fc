"""GeoQuery in FunQL: what its loader writes, how its names are exchanged, and how published systems are read."""

from __future__ import annotations

import csv

import pytest
from support import raw, small

from compositional.datasets import geoquery_funql
from compositional.evaluation import readings
from compositional.language import kinds_of_terms, logical_forms
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
    assert readings.best_recorded(tmp_path / "history.csv", 253, 253) == ("accuracy, best of 2 points", 0.4)
    assert readings.best_recorded(tmp_path / "history.csv", 253, 16) == ("accuracy, best of 2 points on 16 examples", 0.4)


def _shown(pairs: list[tuple[str, str]]) -> tuple[set[str], set[str]]:
    """All words of the questions and all symbols of the forms."""
    return tuple({word for text in side for word in text.split()} for side in zip(*pairs, strict=True))


@pytest.mark.parametrize(
    ("split", "sizes", "vocabulary", "shared", "unwritable"),
    [
        ("query", (519, 54, 253), (241, 155), (0, 0), {"glued": 12, "split": 3}),
        ("question", (513, 57, 256), (239, 155), (3, 82), {"glued": 14, "split": 4}),
    ],
)
def test_the_published_files_have_the_documented_counts(tmp_path, split, sizes, vocabulary, shared, unwritable):
    folder = raw.published("geoquery_funql", tmp_path)
    for commas, count in unwritable.items():
        found = geoquery_funql.load(folder, split, commas, "plain")
        words, symbols = _shown(found["train"])
        # Forms with a symbol that is neither in training nor a word of the question.
        assert sum(not set(form.split()) <= symbols | set(question.split()) for question, form in found["test"]) == count
        assert tuple(map(len, found.values())) == sizes
        if commas == "glued":
            assert (len(words), len(symbols)) == vocabulary
            forms = {form for _, form in found["train"]}
            in_training = sum(pair in found["train"] for pair in found["test"]), sum(form in forms for _, form in found["test"])
            assert in_training == shared


def test_names_in_the_published_query_split_have_thirteen_places_and_cities_need_separate_commas(tmp_path):
    folder = raw.published("geoquery_funql", tmp_path)
    for commas in ("split", "glued"):
        questions, forms = zip(*geoquery_funql.load(folder, "query", commas, "marked")["train"], strict=True)
        written = [kinds_of_terms._written(*pair, kinds=False) for pair in zip(questions, forms, strict=True)]
        places = logical_forms.infer(questions, written)
        if commas == "split":
            assert (len(places), *sorted(map(len, places.values()))[:: len(places) - 1]) == (13, 2, 41)
        assert any("_cityid" in term for entries in places.values() for _, term in entries) == (commas == "split")
