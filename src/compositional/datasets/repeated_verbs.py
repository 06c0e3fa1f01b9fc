"""Sentences of clauses "walk", "walk twice" or "walk thrice", joined by "then"; each verb is written once, twice or three times.

The rule is that of the repository of An and Du (arXiv 2601.18858), ryeii/Representational-Homomorphism-for-Transformer-Language-
Models. It draws with Python's generator, as `draw` does, so that the same seed gives the same sentences. The repository then
reads them from a Python set, in an order that differs from process to process. Here they keep the order in which they were drawn.
"""

from __future__ import annotations

import random

FILES: dict = {}

VERBS = ("walk", "jump", "look", "turn")
REPEATS = {"": 1, "twice": 2, "thrice": 3}
JOINT = "then"
NOISE = ("foo", "bar", "baz")
LENGTHS = range(5, 13)  # clauses of the published test sentences
_PER_LENGTH, _SEED = 200, 123  # of these
_TRIES = 10  # per sentence asked for: with two clauses and no noise there are only 144


def draw(clauses: int, noise_words: int, count: int, seed: int) -> list[tuple[str, str]]:
    """Distinct pairs (sentence, verbs in capitals), `count` of them, or fewer if ten times as many draws do not give as many.

    Verbs and modifiers are uniform. Each noise word is inserted at a uniform place, also between a verb and its modifier.
    """
    source = random.Random(seed)
    found: dict[tuple[str, str], None] = {}
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        verbs = [source.choice(VERBS) for _ in range(clauses)]
        modifiers = [source.choice(tuple(REPEATS)) for _ in range(clauses)]
        words = f" {JOINT} ".join(f"{verb} {modifier}" for verb, modifier in zip(verbs, modifiers, strict=True)).split()
        for _ in range(noise_words):
            place = source.randint(0, len(words))
            words.insert(place, source.choice(NOISE))
        written = [verb.upper() for verb, modifier in zip(verbs, modifiers, strict=True) for _ in range(REPEATS[modifier])]
        found[" ".join(words), " ".join(written)] = None
    return list(found)


def published(clauses: int) -> list[tuple[str, str]]:
    """The published test sentences with this number of clauses; drawn in the same way for other numbers."""
    return draw(clauses, 0, _PER_LENGTH, _SEED)


def last_verb_read(pairs: list[tuple[str, str]]) -> float:
    """Share of symbols that are right if at every word the last verb read so far is written.

    Symbol t is compared with what is written at word t. Symbols after the last word are not compared. If the first words are
    noise, nothing has been read, and nothing is right there.
    """
    right = compared = 0
    for sentence, output in pairs:
        last = ""
        for word, symbol in zip(sentence.split(), output.split(), strict=False):
            last = word.upper() if word in VERBS else last
            right, compared = right + (last == symbol), compared + 1
    return right / compared
