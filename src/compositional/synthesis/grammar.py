"""Probabilistic grammars over programs: best-first enumeration, and re-estimation by the inside-outside algorithm."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compositional.synthesis.programs import Library, Term, hole


@dataclass(frozen=True)
class Grammar:
    """One nonterminal and a production for each primitive and invention. A program's probability is the product of its heads'."""

    library: Library
    log_probabilities: Mapping[str, float]

    @staticmethod
    def uniform(library: Library) -> Grammar:
        """The grammar whose productions are all equally probable."""
        return Grammar(library, dict.fromkeys(library.arities, -math.log(len(library.arities))))

    def flattened(self, most: float) -> Grammar:
        """The grammar with log probabilities compressed around their mean to a range of at most `most`, and normalized again."""
        values = self.log_probabilities
        mean = sum(values.values()) / len(values)
        spread = max(values.values()) - min(values.values())
        scale = min(1.0, most / spread) if spread else 1.0
        squeezed = {name: mean + scale * (value - mean) for name, value in values.items()}
        total = _log_sum(squeezed.values())
        return Grammar(self.library, {name: value - total for name, value in squeezed.items()})


def _log_sum(values: Iterable[float]) -> float:
    values = list(values)
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def enumerate_terms(grammar: Grammar) -> Iterator[tuple[Term, float, tuple[int, ...]]]:
    """All programs (well-typed terms) in order of decreasing probability; ties have a fixed order.

    Heap search (Fijalkow et al., "Scaling Neural Program Synthesis with Distribution-based Search", AAAI 2022): a candidate is a
    head with, for each argument, an index in the list of programs found so far. A candidate waits if an argument has not been
    found yet.

    Yields:
        (program, its log probability, the indices of its arguments in the order of enumeration).
    """
    arities, costs = grammar.library.arities, {name: -value for name, value in grammar.log_probabilities.items()}
    found: list[tuple[Term, float]] = []
    waiting: dict[int, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
    heap: list[tuple[float, int, str, tuple[int, ...]]] = []
    pushed = 0

    def offer(head: str, places: tuple[int, ...]) -> None:
        nonlocal pushed
        last = max(places, default=-1)
        if last >= len(found):
            waiting[last].append((head, places))
            return
        cost = costs[head]
        for place in places:
            cost += found[place][1]
        heapq.heappush(heap, (cost, pushed, head, places))
        pushed += 1

    for head, arity in arities.items():
        offer(head, (0,) * arity)
    while heap:
        cost, _, head, places = heapq.heappop(heap)
        term = Term(head, tuple(found[place][0] for place in places))
        found.append((term, cost))
        yield term, -cost, places
        for delayed in waiting.pop(len(found) - 1, ()):
            offer(*delayed)
        # Only an index after which all others are 0 is raised, so that every tuple of indices is reached exactly once.
        for index in range(len(places) - 1, -1, -1):
            offer(head, (*places[:index], places[index] + 1, *places[index + 1 :]))
            if places[index]:
                break


def _matches(body: Term, term: Term, holes: dict[int, Term]) -> bool:
    """Whether a term is an instance of an invention's expanded body; adds the terms that its holes stand for to `holes`."""
    index = hole(body)
    if index is not None:
        return holes.setdefault(index, term) == term
    if body.head != term.head:
        return False
    return all(_matches(part, own, holes) for part, own in zip(body.arguments, term.arguments, strict=True))


def expected_counts(grammar: Grammar, programs: Iterable[Term]) -> tuple[dict[str, float], float]:
    """The expected number of uses of each production in the programs' derivations, and the programs' log probability.

    A program is first expanded into primitives. It has as many derivations as there are ways to read parts of it as inventions.
    Inside: the probability of a subterm is the sum over the productions that can generate it; each contributes its own
    probability times those of its arguments. Outside: a use of a production counts with its posterior probability (Lari and
    Young, Computer Speech and Language 1990).
    """
    library = grammar.library
    bodies = {name: library.expand(body) for name, body in library.bodies.items()}
    counts = dict.fromkeys(library.arities, 0.0)
    total = 0.0
    readings: dict[Term, list[tuple[str, tuple[Term, ...], float]]] = {}
    inside: dict[Term, float] = {}

    def read(term: Term) -> float:
        if term not in inside:
            options = [(term.head, term.arguments)]
            for name, body in bodies.items():
                holes: dict[int, Term] = {}
                if _matches(body, term, holes):
                    options.append((name, tuple(holes[index] for index in range(library.arities[name]))))
            scored = [
                (name, arguments, grammar.log_probabilities[name] + sum(read(argument) for argument in arguments))
                for name, arguments in options
            ]
            readings[term] = scored
            inside[term] = _log_sum(score for *_, score in scored)
        return inside[term]

    for program in programs:
        whole = library.expand(program)
        total += read(whole)
        # The expected number of times that each subterm is derived as a unit, from the largest subterms to the smallest.
        uses: dict[Term, float] = defaultdict(float)
        uses[whole] = 1.0
        pending = [(-whole.size, 0, whole)]
        queued, order = {whole}, 1
        while pending:
            _, _, term = heapq.heappop(pending)
            for name, arguments, score in readings[term]:
                expected = uses[term] * math.exp(score - inside[term])
                counts[name] += expected
                for argument in arguments:
                    uses[argument] += expected
                    if argument not in queued:
                        queued.add(argument)
                        heapq.heappush(pending, (-argument.size, order, argument))
                        order += 1
    return counts, total


def reestimate(grammar: Grammar, programs: Iterable[Term], pseudocount: float) -> Grammar:
    """The grammar after one round of expectation maximization on the programs, with `pseudocount` added to each count."""
    counts, _ = expected_counts(grammar, programs)
    total = sum(counts.values()) + pseudocount * len(counts)
    return Grammar(grammar.library, {name: math.log((count + pseudocount) / total) for name, count in counts.items()})
