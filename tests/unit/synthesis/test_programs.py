"""Programs: their text, their types, and inventions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from support.programs import FN_0, terms

from compositional.synthesis import graphs
from compositional.synthesis.programs import Library, parse


def test_programs_have_text_types_size_and_mass():
    library = Library({"fn_0": FN_0, "fn_1": "(fn_0 (func #0 (next_port #1)))"})
    term = parse("(fn_1 (fn_0 identity) (move identity))")
    assert parse(str(term)) == term
    assert str(library.expand(term)) == (
        "(push (add (connect (func (push (add (connect identity))) (next_port (move identity))))))"
    )
    assert (term.size, library.mass(term), library.expand(term).size) == (5, 11, 11)
    assert graphs.run(library, term) == graphs.run(library, library.expand(term))
    for text, problem in (("(push)", "takes 1 arguments and has 0"), ("(psuh identity)", "unknown name"), ("#0", "unknown name")):
        with pytest.raises(ValueError, match=problem):
            library.check(parse(text))
    for text in ("(push identity", "push identity", ")"):
        with pytest.raises(ValueError, match="is no program"):
            parse(text)
    with pytest.raises(ValueError, match="not numbered from 0"):
        library.add("fn_2", parse("(push #1)"))


@settings(max_examples=60)
@given(terms({"fn_0": 1, "fn_1": 2}))
def test_inventions_are_equivalent_to_their_bodies(term):
    library = Library({"fn_0": FN_0, "fn_1": "(func #1 (fn_0 #0))"})
    assert graphs.run(library, term) == graphs.run(library, library.expand(term))
    assert library.mass(term) == library.expand(term).size
