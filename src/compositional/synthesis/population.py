"""Populations of programs: search explores them, and learning a library compresses them. Everything here is deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import stitch_core

from compositional.synthesis import graphs
from compositional.synthesis.grammar import Grammar, enumerate_terms, reestimate
from compositional.synthesis.programs import Library, Term, parse, substitute


@dataclass(frozen=True)
class Individual:
    """A program and its graph; `origin` is its number in the previous generation, None if it is new.

    changed: a program of less mass with an isomorphic graph has replaced the original one, and numbers or connects nodes
    differently. A network reads the numbers of nodes and ports, so for a network it is another graph.
    """

    term: Term
    state: graphs.State
    origin: int | None = None
    changed: bool = False


@dataclass(frozen=True)
class Search:
    """How to explore and compress.

    population: the number of graphs wanted.
    programs: how many programs an exploration enumerates.
    max_nodes, max_edges: larger graphs are left out.
    pseudocount, max_range: of the re-estimation; max_range limits the range of log probabilities.
    iterations, max_arity: of library learning, which finds one invention per iteration.
    """

    population: int
    programs: int
    max_nodes: int
    max_edges: int
    pseudocount: float
    max_range: float
    iterations: int
    max_arity: int


def _read(state: graphs.State) -> tuple:
    """What a network reads of a graph: nodes and edges by number, the ends of each edge in any order, and its port."""
    return state.nodes, [(edge.ident, {edge.left, edge.right}, edge.port) for edge in state.edges]


def explore(library: Library, members: list[Individual], search: Search) -> tuple[list[Individual], dict]:
    """Fill a population with new graphs, in order of decreasing probability of their programs.

    The grammar is uniform for an empty population; otherwise it is re-estimated from its programs. A program that has less mass
    than a member's and an isomorphic graph replaces that member's program, also when the population is full.

    Returns:
        The population (members first, in their order) and a report: the numbers of enumerated, new and replaced programs, and the
        grammar.
    """
    grammar = Grammar.uniform(library)
    if members:
        grammar = reestimate(grammar, (member.term for member in members), search.pseudocount).flattened(search.max_range)
    classes = graphs.Classes()
    places = {classes.of(member.state): place for place, member in enumerate(members)}
    members, fresh, replaced, valid = list(members), 0, 0, 0
    made: list[graphs.Transformer] = []
    for term, _, arguments in enumerate_terms(grammar):
        made.append(graphs.combine(library, term.head, tuple(made[place] for place in arguments)))
        state = made[-1](graphs.State())
        if state.valid and len(state.nodes) <= search.max_nodes and len(state.edges) <= search.max_edges:
            valid += 1
            place = places.get(number := classes.of(state))
            if place is not None:
                if library.mass(term) < library.mass(members[place].term):
                    changed = members[place].changed or _read(state) != _read(members[place].state)
                    members[place] = replace(members[place], term=term, state=state, changed=changed)
                    replaced += 1
            elif len(members) < search.population:
                places[number] = len(members)
                members.append(Individual(term, state))
                fresh += 1
        if len(made) >= search.programs:
            break
    report = {"programs": len(made), "valid": valid, "new": fresh, "replaced": replaced}
    return members, report | {"log_probabilities": dict(grammar.log_probabilities)}


def _canonical(body: Term) -> tuple[Term, list[int]]:
    """A body with its holes renumbered in order of appearance, and the old number of each hole."""
    order = list(dict.fromkeys(int(head[1:]) for head in body.heads() if head.startswith("#")))
    return substitute(body, {old: Term(f"#{new}") for new, old in enumerate(order)}), order


def compress(library: Library, terms: list[Term], iterations: int, max_arity: int) -> tuple[Library, list[Term]]:
    """Learn inventions that make programs shorter (Stitch: Bowers et al., POPL 2023), and rewrite the programs with them.

    An invention that equals an earlier one is not added again; programs use the earlier one.

    Raises:
        RuntimeError: a rewritten program is not equivalent to the original (this would be an error of the Stitch library).
    """
    result = stitch_core.compress(
        [str(term) for term in terms],
        iterations=iterations,
        max_arity=max_arity,
        threads=1,  # several threads would not be deterministic
        previous_abstractions=0,
        abstraction_prefix="new_",
        # Holes and bodies must be complete programs, because there is only one type.
        no_curried_bodies=True,
        no_curried_metavars=True,
    )
    learned = Library({name: str(body) for name, body in library.bodies.items()})
    known = {learned.expand(body): name for name, body in learned.bodies.items()}
    names: dict[str, tuple[str, list[int]]] = {}

    def renamed(term: Term) -> Term:
        arguments = tuple(renamed(argument) for argument in term.arguments)
        name, order = names.get(term.head, (term.head, range(len(arguments))))
        return Term(name, tuple(arguments[index] for index in order))

    for abstraction in result.abstractions:
        body, order = _canonical(renamed(parse(abstraction.body)))
        expanded = learned.expand(body)
        if expanded not in known:
            known[expanded] = f"fn_{len(learned)}"
            learned.add(known[expanded], body)
        names[abstraction.name] = known[expanded], order
    rewritten = [renamed(parse(text)) for text in result.rewritten]
    for before, after in zip(terms, rewritten, strict=True):
        learned.check(after)
        if learned.expand(after) != library.expand(before):
            raise RuntimeError(f"compression changed {before} into {after}")
    return learned, rewritten


def refill(library: Library, members: list[Individual], search: Search) -> tuple[Library, list[Individual], list[dict]]:
    """Alternate compression and exploration until the population is full; an empty population is explored first.

    Returns:
        The library, the population, and a report of every exploration.

    Raises:
        ValueError: a round found no new graph and no invention, so further rounds would find none either.
    """
    reports: list[dict] = []
    while len(members) < search.population or not reports:
        before = (len(library), len(members))
        if members:
            terms = [member.term for member in members]
            library, terms = compress(library, terms, search.iterations, search.max_arity)
            members = [replace(member, term=term) for member, term in zip(members, terms, strict=True)]
        members, report = explore(library, members, search)
        reports.append(report | {"inventions": len(library)})
        if (len(library), len(members)) == before:
            raise ValueError(
                f"{search.programs} programs were enumerated and no new graph found: the population has {len(members)} of "
                f"{search.population}. Raise `programs` (or max_nodes and max_edges), or lower `population`."
            )
    return library, members, reports


def describe(library: Library, member: Individual) -> dict:
    """A member as JSON: its program, size, mass, graph and origin, and whether it has changed."""
    return {
        "program": str(member.term),
        "size": member.term.size,
        "mass": library.mass(member.term),
        "graph": {"nodes": list(member.state.nodes), "edges": [list(edge) for edge in member.state.edges]},
        "origin": member.origin,
        "changed": member.changed,
    }


def restore(library: Library, described: list[dict]) -> Iterator[Individual]:
    """Members from their descriptions; each one's number becomes its `origin`."""
    for number, member in enumerate(described):
        term = parse(member["program"])
        library.check(term)
        yield Individual(term, graphs.run(library, term), number)
