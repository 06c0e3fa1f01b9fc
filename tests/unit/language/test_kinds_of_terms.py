"""Names in logical forms are exchanged by their kind or by their place."""

from __future__ import annotations

import numpy as np

from compositional.language import kinds_of_terms

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


def test_a_city_can_replace_a_state_by_place_but_not_by_kind():
    texas, austin = ("size of texas", FORMS[0]), ("size of austin", FORMS[1])
    utah = ("size of utah", "_answer ( _size ( _stateid ( utah ) ) )")
    by_place, by_kind, by_both = exchanged("place"), exchanged("kind"), exchanged("both")
    assert {texas, austin} <= by_place
    assert utah not in by_place  # no training pair has utah inside _size
    assert {texas, utah, austin} <= by_kind  # the only city stays the same
    assert by_both == by_place | by_kind
    assert by_place == set(zip(QUESTIONS, FORMS, strict=True))  # exchanging texas with austin or utah gives existing pairs


def test_names_that_the_question_gives_in_part_are_never_exchanged():
    """Otherwise "rivers through salem texas" would have the form of Salem in any state."""
    known = [
        ("rivers through austin texas", "_answer ( _river ( _cityid ( austin , tx ) ) )"),
        ("rivers through salem", "_answer ( _river ( _cityid ( salem , _ ) ) )"),
        ("rivers through erie", "_answer ( _river ( _cityid ( erie , _ ) ) )"),
        ("where is baton rouge", "_answer ( _loc_1 ( _cityid ( baton rouge, _ ) ) )"),
        ("where is dc", "_answer ( _loc_1 ( _cityid ( washington, dc ) ) )"),
    ]
    for types in kinds_of_terms.TYPES:
        found = set(kinds_of_terms.exchanged(*zip(*known, strict=True), 20, np.random.default_rng(0), types))
        assert found == set(known)  # Salem and Erie give each other's pair


def test_terms_that_name_nothing_are_never_exchanged():
    for types in kinds_of_terms.TYPES:
        found = exchanged(types)
        assert {pair for pair in found if "all" in pair[0]} == {(QUESTIONS[5], FORMS[5]), (QUESTIONS[6], FORMS[6])}
        assert not [form for _, form in found if "<" in form]
