"""Terms of bracketed logical forms and the words that they name, inferred from training pairs alone.

A lexicon of single symbols (`language.lexicon`) has no place for a word that names two things, as "mississippi" names a state and
a river: which words may replace it depends on the question. A term contains both the name and its kind:
`_stateid ( mississippi )`. Terms can therefore be exchanged where symbols cannot, also for terms of another length, like spans in
Li, Wei and Lian, "Learning to Substitute Spans", ACL 2023: `_cityid ( austin , _ )` for `_stateid ( texas )`, together with
"austin" for "texas".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

_TERM = re.compile(r"(?<!\S)[^\s(),]+ \( ([^()]*) \)(?!\S)")


def _place(before: str) -> str:
    """The symbol whose bracket is the last open one at the end of the text: a term that follows is an argument of this symbol."""
    depth, symbols = 0, before.split()
    for index in reversed(range(len(symbols))):
        depth += {"(": 1, ")": -1}.get(symbols[index], 0)
        if depth > 0:
            return symbols[index - 1] if index else ""
    return ""


def named(source: str, target: str) -> dict[str, tuple[str, str]]:
    """For each term of the target: the words of the source that it names, and its place.

    A term is a symbol with its arguments, if none of these has brackets. It names the arguments that are words of the source,
    provided that they occur there exactly once, next to each other and in the same order.
    """
    words, found = set(source.split()), {}
    for match in _TERM.finditer(target):
        run = " ".join(symbol for symbol in match[1].split() if symbol in words)
        if run and f" {source} ".count(f" {run} ") == 1:
            found[match[0]] = (run, _place(target[: match.start()]))
    return found


def infer(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Types of exchangeable entries (words, term) by the place that they share; each type is sorted and has at least two entries.

    Words that name several terms are not entries, because in another sentence they would be ambiguous.
    """
    terms_of, at = defaultdict(set), defaultdict(set)
    for source, target in zip(inputs, outputs, strict=True):
        for term, (run, place) in named(source, target).items():
            terms_of[run].add(term)
            at[place].add((run, term))
    entries = {place: sorted(entry for entry in found if len(terms_of[entry[0]]) == 1) for place, found in sorted(at.items())}
    return {place: found for place, found in entries.items() if len(found) > 1}


def _replace(text: str, others: dict[str, str]) -> tuple[str, int]:
    """The text after all replacements at once (the longer one if two overlap), and the number of replacements."""
    any_of = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
    return re.subn(rf"(?<!\S)(?:{any_of})(?!\S)", lambda match: others[match[0]], text)


def exchanged(inputs: Sequence[str], outputs: Sequence[str], copies: int, source: np.random.Generator) -> list[tuple[str, str]]:
    """Each pair `copies` times, each time with all of its terms and their words replaced by random ones of the same types.

    Different terms stay different. Pairs stay unchanged if they have no terms, more terms of a type than the type has entries, or
    terms that share words. Every training pair thus keeps its share.

    Raises:
        ValueError: no term may be exchanged for another.
    """
    types = infer(inputs, outputs)
    if not types:
        raise ValueError("recombination: exchange: terms needs logical forms with at least two terms that may be exchanged")
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
