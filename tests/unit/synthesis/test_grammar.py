"""Search by probability, and the grammar that defines the probabilities."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from support.programs import FN_0

from compositional.synthesis.grammar import Grammar, enumerate_terms, expected_counts, reestimate
from compositional.synthesis.programs import Library, Term, parse


def test_enumeration_is_complete_without_repetition_and_ordered_by_probability():
    library = Library({"fn_0": FN_0})
    source = random.Random(0)
    weights = {name: source.random() + 0.1 for name in library.arities}
    grammar = Grammar(library, {name: math.log(weight / sum(weights.values())) for name, weight in weights.items()})
    found = list(itertools.islice(enumerate_terms(grammar), 3000))
    values = [value for _, value, _ in found]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(values))

    def log_probability(term: Term) -> float:
        return sum(grammar.log_probabilities[head] for head in term.heads())

    assert all(value == pytest.approx(log_probability(term)) for term, value, _ in found)
    programs = [term for term, *_ in found]
    assert len(set(programs)) == len(programs)
    for term, _, places in found:
        library.check(term)
        assert term.arguments == tuple(programs[place] for place in places)

    def every(size: int) -> list[Term]:
        """All programs of a size, found by brute force."""
        made = []
        for head, arity in library.arities.items():
            for sizes in itertools.product(range(1, size), repeat=arity):
                if sum(sizes) == size - 1:
                    made += [Term(head, arguments) for arguments in itertools.product(*map(every, sizes))]
        return made

    likely = {term for size in range(1, 5) for term in every(size) if log_probability(term) > values[-1] + 1e-9}
    assert len(likely) > 50
    assert likely <= set(programs)


def test_inside_outside_equals_hand_computed_values():
    """The program has two derivations: four primitives (p^4), or the invention and identity (p^2), with p = 1/11."""
    library = Library({"fn_0": FN_0})
    grammar = Grammar.uniform(library)
    counts, total = expected_counts(grammar, [parse("(fn_0 identity)")])
    p = 1 / 11
    by_invention = p**2 / (p**2 + p**4)
    assert total == pytest.approx(math.log(p**2 + p**4))
    assert counts["fn_0"] == pytest.approx(by_invention)
    assert counts["identity"] == pytest.approx(1)
    assert counts["push"] == counts["add"] == counts["connect"] == pytest.approx(1 - by_invention)
    assert counts["move"] == 0
    # Nested: each of the two readings is independent of the other.
    counts, total = expected_counts(grammar, [parse("(fn_0 (fn_0 identity))")])
    assert total == pytest.approx(2 * math.log(p + p**3) + math.log(p))
    assert counts["fn_0"] == pytest.approx(2 * by_invention)
    # An argument used twice is derived once.
    twice = Library({"fn_0": "(func #0 #0)"})
    counts, total = expected_counts(Grammar.uniform(twice), [parse("(func (push identity) (push identity))")])
    assert total == pytest.approx(math.log(p**5 + p**3))
    posterior = p**3 / (p**5 + p**3)
    assert counts["push"] == pytest.approx(posterior + 2 * (1 - posterior))


def test_reestimation_gives_relative_frequencies_if_unambiguous_and_never_lowers_the_likelihood():
    plain = Grammar.uniform(Library())
    programs = [parse("(push (add (connect identity)))"), parse("(push identity)")]
    once = reestimate(plain, programs, pseudocount=1e-12)
    assert math.exp(once.log_probabilities["push"]) == pytest.approx(2 / 6)
    assert math.exp(once.log_probabilities["add"]) == pytest.approx(1 / 6)
    ambiguous = Grammar.uniform(Library({"fn_0": FN_0, "fn_1": "(add #0)"}))
    values = [expected_counts(ambiguous, programs)[1]]
    for _ in range(5):
        ambiguous = reestimate(ambiguous, programs, pseudocount=1e-12)
        values.append(expected_counts(ambiguous, programs)[1])
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(values))
    flat = once.flattened(0.5).log_probabilities
    assert max(flat.values()) - min(flat.values()) == pytest.approx(0.5)
    assert sum(map(math.exp, flat.values())) == pytest.approx(1)
