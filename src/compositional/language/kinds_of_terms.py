"""Exchanges of names in logical forms by the kind of thing that they name, by their place, or both.

`logical_forms` considers two terms exchangeable if they are arguments of the same symbol. In some forms each name is the argument
of a function that states its kind, as in `_stateid ( texas )`; that function can define the type instead. This module exchanges
only such terms: `_state ( all )` does not contain a name, although "all" is a word of the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from compositional.language import logical_forms

TYPES = ("place", "kind", "both")
_TERM = re.compile(r"(?<!\S)(\S+) \( ([^()]*) \)(?!\S)")
_NAMES = re.compile(r"\w+id")  # functions that hold a name
_HIDDEN, _KIND = "<hidden>", "<kind>"  # markers that occur in no symbol
_WRAPPED = re.compile(rf"\S+{_KIND} \( (\S+ \( [^()]* \)) \)")


def _written(question: str, form: str, kinds: bool) -> str:
    """The form with marked arguments if they are not names, or not all of them are words of the question, as "tx" is not for
    "austin texas"; with `kinds`, each name is wrapped in a symbol of its kind."""
    known = {*question.split(), "_", ","}

    def term(match: re.Match[str]) -> str:
        function, arguments = match.groups()
        if not _NAMES.fullmatch(function) or not known.issuperset(arguments.split()):
            return f"{function} ( {' '.join(_HIDDEN + symbol for symbol in arguments.split())} )"
        return f"{function}{_KIND} ( {match[0]} )" if kinds else match[0]

    return _TERM.sub(term, form)


def exchanged(
    inputs: Sequence[str], outputs: Sequence[str], copies: int, source: np.random.Generator, types: str
) -> list[tuple[str, str]]:
    """As `logical_forms.exchanged`, but for one of TYPES; with "both", half of the copies use each of the other two.

    Raises:
        ValueError: no term may be exchanged for another.
    """
    pairs = []
    for kinds in {"place": (False,), "kind": (True,), "both": (False, True)}[types]:
        written = [_written(*pair, kinds) for pair in zip(inputs, outputs, strict=True)]
        found = logical_forms.exchanged(inputs, written, copies // (1 + (types == "both")), source)
        pairs += [(question, _WRAPPED.sub(r"\1", form).replace(_HIDDEN, "")) for question, form in found]
    return pairs
