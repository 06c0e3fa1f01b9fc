"""Exchanges of names in logical forms by what kind of thing they name, by where they stand, or both.

`logical_forms` takes two terms to be alike if they are arguments of one symbol. In forms whose names stand in a function of their
kind, `_stateid ( texas )`, that function can say so instead. Only such terms are exchanged here: `_state ( all )` names nothing,
though "all" is a word of the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from compositional.language import logical_forms

TYPES = ("place", "kind", "both")
_TERM = re.compile(r"(?<!\S)(\S+) \( ([^()]*) \)(?!\S)")
_NAMES = re.compile(r"\w+id")  # functions that hold a name
_HIDDEN, _KIND = "<hidden>", "<kind>"  # parts of no symbol
_WRAPPED = re.compile(rf"\S+{_KIND} \( (\S+ \( [^()]* \)) \)")


def _written(form: str, kinds: bool) -> str:
    """The form with names out of sight where no name is, and with `kinds` every named term an argument of its kind alone."""

    def term(match: re.Match[str]) -> str:
        function, arguments = match.groups()
        if not _NAMES.fullmatch(function):
            return f"{function} ( {' '.join(_HIDDEN + symbol for symbol in arguments.split())} )"
        return f"{function}{_KIND} ( {match[0]} )" if kinds else match[0]

    return _TERM.sub(term, form)


def exchanged(
    inputs: Sequence[str], outputs: Sequence[str], copies: int, source: np.random.Generator, types: str
) -> list[tuple[str, str]]:
    """As `logical_forms.exchanged`, with one of TYPES; of "both", half of the copies are of either.

    Raises:
        ValueError: no term may be exchanged for another.
    """
    pairs = []
    for kinds in {"place": (False,), "kind": (True,), "both": (False, True)}[types]:
        written = [_written(form, kinds) for form in outputs]
        found = logical_forms.exchanged(inputs, written, copies // (1 + (types == "both")), source)
        pairs += [(question, _WRAPPED.sub(r"\1", form).replace(_HIDDEN, "")) for question, form in found]
    return pairs
