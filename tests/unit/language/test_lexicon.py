"""Words that may be exchanged, found in training pairs alone."""

from __future__ import annotations

from compositional.datasets import scan
from compositional.language import lexicon


def test_lexicon_of_scan_jump_is_found_without_being_told():
    pairs = [pair for pair in scan.commands() if "jump" not in pair[0]] + [("jump", "I_JUMP")] * 5
    verbs = [(verb, scan.ACTIONS[verb]) for verb in ("jump", "look", "run", "walk")]
    directions = [("left", "I_TURN_LEFT"), ("right", "I_TURN_RIGHT")]
    assert lexicon.infer(*zip(*pairs, strict=True)) == [verbs, directions]


def test_words_of_one_type_make_the_same_output_but_for_their_symbols():
    """A name and a noun, each shown by itself, have the same input context; what is made of them differs."""
    names, nouns = ["Ava", "Liam"], ["cat", "shark"]
    inputs = [*names, *nouns, *(f"{name} slept" for name in names), *(f"a {noun} slept" for noun in nouns)]
    outputs = [f"{name} ." for name in names] + [f"LAMBDA a . {noun} ( a )" for noun in nouns]
    outputs += [f"sleep ( {name} )" for name in names] + [f"{noun} ( 1 ) sleep ( 1 )" for noun in nouns]
    assert lexicon.infer(inputs, outputs) == [[(word, word) for word in words] for words in (names, nouns)]
