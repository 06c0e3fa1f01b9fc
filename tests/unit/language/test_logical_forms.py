"""Terms of logical forms are found, and exchanged together with the words that they name."""

from __future__ import annotations

import pytest

from compositional import randomness
from compositional.language import logical_forms

# The term for a name depends on its kind: cities have a longer term, and "ohio" is both a state and a river.
_NAMES = {
    "texas": "_stateid ( texas )",
    "new york": "_stateid ( new york )",
    "utah": "_stateid ( utah )",
    "austin": "_cityid ( austin , _ )",
    "dallas": "_cityid ( dallas , _ )",
    "red": "_riverid ( red )",
}
_STATE, _SIZE = (
    "( A , ( _capital ( A ) , _loc ( A , B ) , _const ( B , {} ) ) )",
    "( A , ( _size ( B , A ) , _const ( B , {} ) ) )",
)
_QUESTIONS = [(f"what is the capital of {name}", _STATE.format(_NAMES[name])) for name in ("texas", "new york", "utah")]
_QUESTIONS += [(f"how big is {name}", _SIZE.format(_NAMES[name])) for name in ("austin", "dallas", "red")]
_QUESTIONS += [
    ("how big is ohio", _SIZE.format("_stateid ( ohio )")),
    ("how long is the ohio", _SIZE.format("_riverid ( ohio )")),
]
_OWN = [("what states are there", "( A , _state ( A ) )"), ("how big is the us", _SIZE.format("_countryid ( usa )"))]


def test_terms_belong_to_the_words_that_they_name_and_have_a_type_by_their_place():
    assert logical_forms.named(*_QUESTIONS[1]) == {"_stateid ( new york )": ("new york", "_const")}
    assert logical_forms.named("big texas or texas", _SIZE.format("_stateid ( texas )")) == {}  # which of the two?
    assert logical_forms.named("new and york", _SIZE.format("_stateid ( new york )")) == {}
    elsewhere = [("size of utah", "( A , _size ( _stateid ( utah ) ) )"), ("size of iowa", "( A , _size ( _stateid ( iowa ) ) )")]
    found = logical_forms.infer(*zip(*_QUESTIONS, *_OWN, *elsewhere, strict=True))
    assert found == {"_const": sorted(_NAMES.items()), "_size": [("iowa", "_stateid ( iowa )"), ("utah", "_stateid ( utah )")]}


def test_exchanged_terms_take_their_words_with_them():
    inside = "( _in ( A , B ) , _const ( A , {} ) , _const ( B , {} ) )"
    two = ("is texas in utah", inside.format("_stateid ( texas )", "_stateid ( utah )"))
    overlapping = ("in austin texas", "( _const ( A , _cityid ( austin , texas ) ) , _const ( B , _stateid ( texas ) ) )")
    pairs = logical_forms.exchanged(*zip(two, *_QUESTIONS, overlapping, *_OWN, strict=True), 50, randomness.generator(0))
    made = [pairs[start : start + 50] for start in range(0, len(pairs), 50)]
    assert [set(copies) for copies in made[-3:]] == [{pair} for pair in (overlapping, *_OWN)]
    names = (_NAMES | {"austin texas": "_cityid ( austin , texas )"}).items()
    for own, copies in zip(_QUESTIONS, made[1:-3], strict=True):
        ((term, (name, _)),) = logical_forms.named(*own).items()
        assert set(copies) == {(own[0].replace(name, other), own[1].replace(term, its)) for other, its in names}
    both = {
        (f"is {left} in {right}", inside.format(first, second))
        for left, first in names
        for right, second in names
        if left != right  # different terms stay different
    }
    assert len(set(made[0])) > 20
    assert set(made[0]) <= both
    form = "( _const ( {} ) )"
    few = [
        ("utah", "_stateid ( utah )"),
        ("red", "_riverid ( red )"),
        ("ohio", "_stateid ( ohio )"),
        ("ohio", "_riverid ( ohio )"),
    ]
    more = ("utah red ohio", form.format("_stateid ( utah ) , _riverid ( red ) , _stateid ( ohio )"))
    pairs = [*((name, form.format(term)) for name, term in few), more]
    assert (
        logical_forms.exchanged(*zip(*pairs, strict=True), 1, randomness.generator(0))[-1] == more
    )  # three terms, and two of their type
    with pytest.raises(ValueError, match="needs logical forms with at least two terms"):
        logical_forms.exchanged(["jump twice"], ["I_JUMP I_JUMP"], 1, randomness.generator(0))
