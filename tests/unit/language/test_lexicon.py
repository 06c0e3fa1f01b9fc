"""Words that may be exchanged are inferred from training pairs alone."""

from __future__ import annotations

from compositional.datasets import scan
from compositional.language import lexicon


def test_the_lexicon_of_scan_jump_is_inferred():
    pairs = [pair for pair in scan.commands() if "jump" not in pair[0]] + [("jump", "I_JUMP")] * 5
    verbs = [(verb, scan.ACTIONS[verb]) for verb in ("jump", "look", "run", "walk")]
    directions = [("left", "I_TURN_LEFT"), ("right", "I_TURN_RIGHT")]
    assert lexicon.infer(*zip(*pairs, strict=True)) == [verbs, directions]


def test_words_share_a_type_only_if_outputs_differ_in_their_symbols_alone():
    """A name and a noun, each shown alone, have the same input context, but their outputs differ."""
    names, nouns = ["Ava", "Liam"], ["cat", "shark"]
    inputs = [*names, *nouns, *(f"{name} slept" for name in names), *(f"a {noun} slept" for noun in nouns)]
    outputs = [f"{name} ." for name in names] + [f"LAMBDA a . {noun} ( a )" for noun in nouns]
    outputs += [f"sleep ( {name} )" for name in names] + [f"{noun} ( 1 ) sleep ( 1 )" for noun in nouns]
    assert lexicon.infer(inputs, outputs) == [[(word, word) for word in words] for words in (names, nouns)]


def test_words_that_are_their_own_forms_do_not_connect_types_that_sentences_tell_apart():
    names, nouns, alone = ("Emma", "Liam"), ("cat", "dog"), ("Emma", "cat", "shark")
    sentences = {f"{name} ran": f"run ( {name} )" for name in names} | {f"a {noun} ran": f"run ( {noun} )" for noun in nouns}
    pairs = sentences | {word: word for word in alone}
    assert lexicon.infer([*pairs], [*pairs.values()]) == [[(word, word) for word in words] for words in (names, nouns)]
    # Without names alone, nothing is distinguished, and what is known alone joins the nouns.
    del pairs["Emma"]
    assert lexicon.infer([*pairs], [*pairs.values()])[1] == [(word, word) for word in (*nouns, "shark")]
