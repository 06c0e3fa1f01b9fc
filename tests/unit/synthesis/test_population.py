"""Populations of programs: compression, search and refilling."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import FN_0, chains

from compositional.synthesis import graphs, population
from compositional.synthesis.programs import Library, parse


@settings(max_examples=25)
@given(st.lists(chains(["push", "add", "connect", "next_port", "pop"]), min_size=2, max_size=8))
def test_compression_never_changes_a_program_or_its_graph(programs):
    library = Library({"fn_0": FN_0})
    learned, rewritten = population.compress(library, programs, iterations=3, max_arity=2)
    for before, after in zip(programs, rewritten, strict=True):
        assert learned.expand(after) == library.expand(before)
        assert graphs.run(learned, after) == graphs.run(library, before)
        assert after.size <= before.size
    assert [learned.bodies["fn_0"]] == [library.bodies["fn_0"]]
    bodies = [learned.expand(body) for body in learned.bodies.values()]
    assert len(set(bodies)) == len(bodies)  # no body is invented twice


def test_an_invention_that_equals_an_earlier_one_is_not_added():
    programs = [
        parse("(push (add (connect (next_port (push (add (connect identity)))))))"),
        parse("(push (add (connect (move identity))))"),
    ]
    learned, rewritten = population.compress(Library({"fn_0": FN_0}), programs, iterations=1, max_arity=2)
    assert list(learned.bodies) == ["fn_0"]
    assert [str(term) for term in rewritten] == ["(fn_0 (next_port (fn_0 identity)))", "(fn_0 (move identity))"]


def search(**changes) -> population.Search:
    base = {"population": 3, "programs": 10000, "max_nodes": 16, "max_edges": 24, "pseudocount": 0.001, "max_range": 0.5}
    return population.Search(**(base | {"iterations": 3, "max_arity": 2} | changes))


def test_a_population_is_filled_with_different_graphs_and_the_lightest_programs():
    library, members, reports = population.refill(Library({"fn_0": FN_0}), [], search())
    assert len(members) == 3
    classes = graphs.Classes()
    assert len({classes.of(member.state) for member in members}) == 3
    assert all(member.state.valid and member.state == graphs.run(library, member.term) for member in members)
    assert sum(report["new"] for report in reports) == 3
    described = json.loads(json.dumps([population.describe(library, member) for member in members]))
    restored = list(population.restore(library, described))
    assert [member.term for member in restored] == [member.term for member in members]
    assert [member.origin for member in restored] == [0, 1, 2]
    again = population.refill(Library({"fn_0": FN_0}), [], search())
    assert [str(member.term) for member in again[1]] == [str(member.term) for member in members]
    assert again[2] == reports
    heavy = population.Individual(
        parse("(next_port (prev_port (fn_0 identity)))"), graphs.run(library, parse("(fn_0 identity)")), 5
    )
    (light,), report = population.explore(Library({"fn_0": FN_0}), [heavy], search(population=1, programs=2000))
    assert (str(light.term), light.origin, light.changed, report["replaced"]) == ("(fn_0 identity)", 5, False, 1)
    # The same edge at another port: isomorphic, but different for a network.
    heavy = replace(heavy, state=graphs.run(library, parse("(next_port (fn_0 identity))")))
    ((light,), _) = population.explore(Library({"fn_0": FN_0}), [heavy], search(population=1, programs=2000))
    assert (light.origin, light.changed) == (5, True)
    with pytest.raises(ValueError, match="the population has 0 of 3"):
        population.refill(Library(), [], search(programs=50))


def test_graphs_of_the_maximum_size_are_kept():
    members, _ = population.explore(Library({"fn_0": FN_0}), [], search(programs=2000, max_nodes=2, max_edges=1))
    assert [(len(member.state.nodes), len(member.state.edges)) for member in members] == [(2, 1)]
