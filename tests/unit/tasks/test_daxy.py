"""The translation test with one new word: its training set, its test set, its scores and its caption."""

from __future__ import annotations

from collections import Counter

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from support import raw, small

from compositional.evaluation import decoding
from compositional.figures import new_word
from compositional.language import lexicon
from compositional.plugins import defaults
from compositional.stages.split import audit
from compositional.tasks import daxy


def build(**options):
    return daxy.build(small.raw_files("daxy"), defaults("tasks.daxy") | options)


def new(member) -> Counter:
    return Counter(sentence for sentence in member["input"][:] if "daxy" in sentence.split())


def test_the_new_word_is_in_one_training_sentence_and_in_no_in_distribution_sentence():
    members, about = build(copies=7)
    assert new(members["train"]) == {"i am daxy .": 7}
    assert not new(members["in_distribution"])
    assert new(members["test"]) == {"you are daxy .": 1, "he is daxy .": 1}
    assert members["test"]["category"][:] == ["context/you_are", "context/he_is"]
    assert [count["in_training"] for count in audit(members, about["disjoint"])] == [0, 0]


def test_contexts_move_from_the_test_set_into_training():
    members, _ = build(copies=3, contexts=1)
    assert new(members["train"]) == {"i am daxy .": 3, "you are daxy .": 3}
    assert new(members["test"]) == {"he is daxy .": 1}


def test_bleu_of_words_uses_all_translations_of_a_sentence():
    rows = [("x", "a b c d e", "a b c d e"), ("x", "v w x y z", "a b c d e")]
    assert decoding._bleu(rows, words=True) == pytest.approx(100)
    assert decoding._bleu([("x", *rows[0][1:]), ("y", *rows[1][1:])], words=True) < 60
    assert decoding._bleu([("x", "a b c d", "a bc d")], words=True) < 100  # spaces count


def test_sentences_that_end_in_a_mark_of_their_own_are_not_warned_about(caplog):
    assert decoding._bleu([("x", "i am daxy .", "i am daxy .")] * 200, words=True) == pytest.approx(100)
    assert not caplog.records


def test_the_caption_counts_answers():
    rows = []
    for seed, answers in enumerate([(1, 0), (1, 1), (0, 0)]):
        run = ("daxy", "lstm", "none", 0.0, seed)
        rows += [
            (*run, "test", f"accuracy of context/{name}", hit) for name, hit in zip(("he_is", "i_am_very"), answers, strict=True)
        ]
        rows += [(*run, "test", "accuracy", sum(answers) / 2), (*run, "test", "accuracy of context", sum(answers) / 2)]
        rows += [(*run, "in_distribution", "bleu", 30.0), (*run, "in_distribution", "accuracy", 0.25)]
    table = pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])
    figure, text = new_word.draw(table, {"methods": {}, "published": {"LSTM": 0.125}})
    plt.close(figure)
    # The seeds' shares are 0.5, 1 and 0: 4.303 * 0.5 / sqrt 3.
    assert (
        "* lstm (3 seeds): 3 of 6 right, 0.500 ± 1.242; ordinary sentences: BLEU 30.000 ± 0.000, exact match 0.250 ± 0.000"
        in text
    )
    assert "by the words before it: he is 0.67, i am very 0.33" in text
    assert "* published, LSTM: 0.125" in text


def test_the_published_files_have_the_documented_counts(tmp_path):
    members, _ = daxy.build(raw.published("daxy", tmp_path), defaults("tasks.daxy"))
    assert {name: len(member) for name, member in members.items()} == {"train": 10_999, "in_distribution": 1_183, "test": 8}
    assert new(members["train"]) == {"i am daxy .": 1000}
    pairs = set(zip(members["train"]["input"], members["train"]["output"], strict=True))
    assert len(pairs) == 9_992 + 1
    assert len({english for english, _ in pairs}) == 6_287 + 1
    types = lexicon.infer(members["train"]["input"][:], members["train"]["output"][:])
    (own,) = [words for words in types if ("daxy", "daxiste") in words]
    assert len(own) == 49 + 1
