"""Terms of bracketed logical forms and the words that they name, inferred from training pairs alone.

A word that names two things, as "mississippi" names a state and a river, is no good entry of a lexicon of single symbols
(language.lexicon): what it may be exchanged for depends on what is asked. A term holds both, what is named and of what kind:
`_stateid ( mississippi )`. So terms can be exchanged where symbols cannot, and for others of another length, as spans are
(Li, Wei and Lian, "Learning to Substitute Spans", ACL 2023): `_cityid ( austin , _ )` for `_stateid ( texas )`, and "austin"
for "texas" with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

_TERM = re.compile(r"(?<!\S)[^\s(),]+ \( ([^()]*) \)(?!\S)")


def _place(before: str) -> str:
    """The symbol whose bracket is the last one open at the end of this text: what a term that stands there is an argument of."""
    depth, symbols = 0, before.split()
    for index in reversed(range(len(symbols))):
        depth += {"(": 1, ")": -1}.get(symbols[index], 0)
        if depth > 0:
            return symbols[index - 1] if index else ""
    return ""


def named(source: str, target: str) -> dict[str, tuple[str, str]]:
    """By term of the target: the words of the source that it names, and its place.

    A term is a symbol with its arguments, none of which has brackets. It names those of them that are words of the source, if
    they stand there in one run, and once.
    """
    words, found = set(source.split()), {}
    for match in _TERM.finditer(target):
        run = " ".join(symbol for symbol in match[1].split() if symbol in words)
        if run and f" {source} ".count(f" {run} ") == 1:
            found[match[0]] = (run, _place(target[: match.start()]))
    return found


def infer(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Types of exchangeable (words, term) entries by the place that they share, each sorted and of at least two.

    Words that name several terms are no entry: put into another sentence, they would not say which.
    """
    terms_of, at = defaultdict(set), defaultdict(set)
    for source, target in zip(inputs, outputs, strict=True):
        for term, (run, place) in named(source, target).items():
            terms_of[run].add(term)
            at[place].add((run, term))
    entries = {place: sorted(entry for entry in found if len(terms_of[entry[0]]) == 1) for place, found in sorted(at.items())}
    return {place: found for place, found in entries.items() if len(found) > 1}


def _replace(text: str, others: dict[str, str]) -> tuple[str, int]:
    """The text with all of these replaced at once, where two overlap the longer one, and how often any was."""
    any_of = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
    return re.subn(rf"(?<!\S)(?:{any_of})(?!\S)", lambda match: others[match[0]], text)


def exchanged(inputs: Sequence[str], outputs: Sequence[str], copies: int, source: np.random.Generator) -> list[tuple[str, str]]:
    """Each pair `copies` times, each time with random terms of the same types instead of all of its own, words included.

    Different terms stay different. Pairs without terms, with more than their type has, or with such as share words stay as they
    are, so that every training pair keeps its share.

    Raises:
        ValueError: no term may be exchanged for another.
    """
    types = infer(inputs, outputs)
    if not types:
        raise ValueError("recombination: exchange: terms needs logical forms with two terms at least that may be exchanged")
    pairs = []
    for pair in zip(inputs, outputs, strict=True):
        at: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for term, (run, place) in named(*pair).items():
            at[place].append((run, term))
        at = {place: own for place, own in at.items() if len(own) <= len(types.get(place, ()))}
        for _ in range(copies):
            runs, terms = {}, {}
            for place, own in at.items():
                chosen = source.choice(len(types[place]), len(own), replace=False)
                for (run, term), index in zip(own, chosen, strict=True):
                    runs[run], terms[term] = types[place][index]
            replaced, count = _replace(pair[0], runs) if runs else (pair[0], 0)
            pairs.append((replaced, _replace(pair[1], terms)[0]) if count == len(terms) > 0 else pair)
    return pairs
