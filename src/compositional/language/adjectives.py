"""Adjectives with their nouns in English captions, found by simple rules instead of a tagger.

The adjectives are a list of the words that occur most often between an article and another word in Multi30k's training captions,
without words that are often nouns themselves ("adult", "female", "light", "open"). A word is a noun if, after a determiner or
such an adjective, training has it more often at the end of a phrase than before another word of the phrase. A pair is one of
these adjectives followed by one of these nouns at the end of a phrase: "purple frisbee" in "a purple frisbee in", but not
"yellow rain" in "a yellow rain coat". Singular and plural are different words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_LISTED = (
    "beige black blond blonde blue brown brunette gold golden gray green grey orange pink purple red silver tan white yellow "
    "bright checkered colorful dark floral multicolored plaid striped "
    "big giant huge large little long narrow short small tall tiny elderly new old older teenage young younger "
    "bald barefoot bearded homeless shirtless african american asian chinese indian japanese "
    "beautiful busy cold crowded dirty dry dusty empty fancy happy hot muddy nice steep sunny warm wet "
    "brick concrete grassy metal plastic rocky sandy snowy stone wooden acoustic electric indoor outdoor public rural "
    "traditional urban"
)
_DETERMINERS = "a an the two three four five six some several many his her their its"
_ENDS = (
    "a an the and or of in on at with to is are was were by for from while whilst as through into over near behind next that "
    "who which his her their its during down up off out along across under against around onto inside outside beside between "
    'above below before after has have . , ; : ! ? " ( )'
)
ADJECTIVES, _BEFORE, _AFTER = (frozenset(listed.split()) for listed in (_LISTED, _DETERMINERS, _ENDS))


def words(sentence: str) -> list[str]:
    """The words and punctuation marks of a sentence in lower case."""
    return re.findall(r"\w+|[^\w\s]", sentence.lower())


def _ends_before(word: str) -> bool:
    """Whether a noun phrase ends before this word: a function word, a punctuation mark, or a verb form in -ing."""
    return word in _AFTER or word.endswith("ing")


def nouns(sentences: Iterable[Sequence[str]]) -> set[str]:
    """The words that count as nouns, given training sentences as `words` returns them."""
    score: Counter[str] = Counter()
    for sentence in sentences:
        for before, word, after in zip(sentence, sentence[1:], [*sentence[2:], "."], strict=False):
            if before in _BEFORE or before in ADJECTIVES:
                score[word] += 1 if _ends_before(after) else -1
    none = ADJECTIVES | _BEFORE | _AFTER
    return {word for word, more in score.items() if more > 0 and word.isalpha() and word not in none}


def pairs(sentence: Sequence[str], known: set[str]) -> list[tuple[str, str]]:
    """All neighboring (adjective, noun) pairs in a sentence as `words` returns it; `known` are the nouns."""
    triples = zip(sentence, sentence[1:], [*sentence[2:], "."], strict=False)
    return [(word, noun) for word, noun, after in triples if word in ADJECTIVES and noun in known and _ends_before(after)]
