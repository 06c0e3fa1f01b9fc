"""Programs: terms over primitives and inventions.

There is one type, the transformer of states: a primitive of arity k takes k transformers and returns one. A term is therefore
well typed if and only if every head has the right number of arguments. An invention is a named term with holes #0, #1, ... A
program that uses it is equivalent to the program with the invention's body in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

PRIMITIVES = {
    "identity": 0,
    "next_port": 1,
    "prev_port": 1,
    "move": 1,
    "add": 1,
    "push": 1,
    "pop": 1,
    "connect": 1,
    "func": 2,
    "if_positions_equal": 5,
}


@dataclass(frozen=True)
class Term:
    """A head (primitive, invention, or hole) applied to its arguments."""

    head: str
    arguments: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join([self.head, *map(str, self.arguments)])})" if self.arguments else self.head

    @cached_property
    def _hash(self) -> int:
        return hash((self.head, self.arguments))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def size(self) -> int:
        """The number of primitives, inventions and holes."""
        return 1 + sum(argument.size for argument in self.arguments)

    def heads(self) -> list[str]:
        """All heads, in the order in which they are written."""
        return [self.head, *(head for argument in self.arguments for head in argument.heads())]


def hole(term: Term) -> int | None:
    """The number of a hole; None for any other term."""
    return int(term.head[1:]) if term.head.startswith("#") else None


def parse(text: str) -> Term:
    """The inverse of str(term).

    Raises:
        ValueError: the text is not a term.
    """
    tokens = re.findall(r"[()]|[^\s()]+", text)

    def read(place: int) -> tuple[Term, int]:
        if place >= len(tokens) or tokens[place] == ")":
            raise ValueError(f"{text!r} is no program: something is missing")
        if tokens[place] != "(":
            return Term(tokens[place]), place + 1
        head, place = read(place + 1)
        arguments = []
        while place < len(tokens) and tokens[place] != ")":
            argument, place = read(place)
            arguments.append(argument)
        if place >= len(tokens):
            raise ValueError(f"{text!r} is no program: a parenthesis is not closed")
        return Term(head.head, head.arguments + tuple(arguments)), place + 1

    term, end = read(0)
    if end != len(tokens):
        raise ValueError(f"{text!r} is no program: {' '.join(tokens[end:])!r} is left over")
    return term


class Library:
    """The primitives and the inventions so far, in order: a later invention may use earlier ones."""

    def __init__(self, inventions: Mapping[str, str] | None = None) -> None:
        self.bodies: dict[str, Term] = {}
        self.arities = dict(PRIMITIVES)
        self._expanded: dict[str, Term] = {}
        for name, body in (inventions or {}).items():
            self.add(name, parse(body))

    def __len__(self) -> int:
        return len(self.bodies)

    def add(self, name: str, body: Term) -> None:
        """Add an invention; its arity is the number of different holes.

        Raises:
            ValueError: the name is taken, the body is not well typed, or its holes are not numbered from 0.
        """
        if name in self.arities:
            raise ValueError(f"there is an invention or primitive {name!r} already")
        holes = sorted({head for head in body.heads() if head.startswith("#")}, key=lambda head: int(head[1:]))
        if holes != [f"#{index}" for index in range(len(holes))]:
            raise ValueError(f"the holes of {body} are not numbered from 0")
        self.check(body, dict.fromkeys(holes, 0))
        self._expanded[name] = self.expand(body)
        self.bodies[name] = body
        self.arities[name] = len(holes)

    def check(self, term: Term, holes: Mapping[str, int] | None = None) -> None:
        """Check that a term is well typed.

        Raises:
            ValueError: it is not; the message names the part that is wrong.
        """
        arity = self.arities.get(term.head, (holes or {}).get(term.head))
        if arity is None:
            raise ValueError(f"unknown name {term.head!r} in {term}; known: {', '.join(self.arities)}")
        if arity != len(term.arguments):
            raise ValueError(f"{term.head!r} takes {arity} arguments and has {len(term.arguments)} in {term}")
        for argument in term.arguments:
            self.check(argument, holes)

    def expand(self, term: Term) -> Term:
        """The same program written in primitives only."""
        arguments = tuple(self.expand(argument) for argument in term.arguments)
        body = self._expanded.get(term.head)
        return Term(term.head, arguments) if body is None else substitute(body, arguments)

    def mass(self, term: Term) -> int:
        """The number of primitives of the expanded program, computed without expanding it."""
        masses = [self.mass(argument) for argument in term.arguments]
        body = self._expanded.get(term.head)
        if body is None:
            return 1 + sum(masses)
        return sum(masses[int(head[1:])] if head.startswith("#") else 1 for head in body.heads())


def substitute(body: Term, arguments: Sequence[Term] | Mapping[int, Term]) -> Term:
    """A body with its holes replaced by the arguments, by number."""
    index = hole(body)
    if index is not None:
        return arguments[index]
    return Term(body.head, tuple(substitute(argument, arguments) for argument in body.arguments))
