"""Which words may be exchanged for which others, inferred from training pairs alone.

The method follows LexSym (Akyurek and Andreas, ACL 2023) in the form of the study's specification. (word, symbol) is an entry if
the number of sentences is the same for those with the word, those with the symbol, and those with both. Two entries have the same
type if two training pairs differ only in these entries, in the input and in the output. (If only inputs had to match, sentences
of a single word, which COGS has for nouns, names and verbs, would put all of these into one type. In SLOG, their outputs match as
well; such sentences do not connect words that have different types without them.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence


def virtual_words(count: int) -> list[str]:
    """Names for words, and for the symbols they stand for, that occur in no sentence.

    The words of a type can be exchanged for them without producing a command of the test set.
    """
    return [f"<virtual{number}>" for number in range(count)]


def infer(inputs: Sequence[str], outputs: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Types of at least two exchangeable (input word, output symbol) entries, sorted.

    In SCAN jump these are the four verbs with their actions, and the two directions with their turns.
    """
    pairs = sorted(set(zip(inputs, outputs, strict=True)))
    words: Counter[str] = Counter()
    symbols: Counter[str] = Counter()
    both: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        seen_words, seen_symbols = set(source.split()), set(target.split())
        words.update(seen_words)
        symbols.update(seen_symbols)
        both.update((word, symbol) for word in seen_words for symbol in seen_symbols)
    entries = dict(sorted(pair for pair, count in both.items() if count == words[pair[0]] == symbols[pair[1]]))

    # Entries with a common context are connected; types are the connected components.
    by_context = defaultdict(set)
    for source, target in pairs:
        for word in set(source.split()) & entries.keys():
            sides = ((source, word), (target, entries[word]))
            by_context[tuple(tuple("_" if other == own else other for other in text.split()) for text, own in sides)].add(word)
    component = {word: {word} for word in entries}
    for context, joined in sorted(by_context.items(), key=lambda item: item[0][0] == ("_",)):
        # A word alone does not show where it can stand.
        if context[0] == ("_",) and len({min(component[word]) for word in joined if len(component[word]) > 1}) > 1:
            continue
        merged = set().union(*(component[word] for word in joined))
        for word in merged:
            component[word] = merged
    types = {tuple(sorted(members)) for members in component.values() if len(members) > 1}
    return [[(word, entries[word]) for word in members] for members in sorted(types)]
