"""The task of verbs and modifiers: counts of the published data, a target by hand, and the rule "write the last verb read"."""

from __future__ import annotations

from functools import cache

import pytest

from compositional.datasets import repeated_verbs as dataset
from compositional.plugins import defaults
from compositional.tasks import repeated_verbs, repeated_verbs_written


@cache
def build(noise_words: int = 0):
    return repeated_verbs.build(None, defaults("tasks.repeated_verbs") | {"noise_words": noise_words})


def test_a_target_by_hand():
    pairs = dict(dataset.draw(2, 0, 2000, 0))
    assert len(pairs) == 144  # (4 verbs, 3 modifiers) twice: without noise these are all sentences
    assert pairs["walk twice then jump"] == "WALK WALK JUMP"
    assert pairs["turn then look thrice"] == "TURN LOOK LOOK LOOK"


# Pairs of a verb and a modifier directly after it in the repository's results, for its seed 0.
@pytest.mark.parametrize(
    ("noise_words", "sentences", "published"), [(0, 144, 192), (3, 2000, 1589), (9, 2000, 904), (15, 2000, 586)]
)
def test_training_sentences_have_the_published_number_of_pairs(noise_words, sentences, published):
    train = build(noise_words)[0]["train"]["input"][:]
    neighbors = [pair for text in train for pair in zip(text.split(), text.split()[1:], strict=False)]
    assert len(set(train)) == len(train) == sentences
    assert sum(first in dataset.VERBS and second in ("twice", "thrice") for first, second in neighbors) == published
    assert {sum(word in dataset.NOISE for word in text.split()) for text in train} == {noise_words}


def test_the_test_set_is_the_same_with_and_without_noise_and_has_two_hundred_sentences_of_each_length():
    test, noisy = (build(noise_words)[0]["test"] for noise_words in (0, 9))
    assert test["input"][:] == noisy["input"][:]
    clauses = [text.split().count("then") + 1 for text in test["input"]]
    assert [f"clauses/{count}" for count in clauses] == test["category"][:]
    assert {count: clauses.count(count) for count in set(clauses)} == dict.fromkeys(range(5, 13), 200)
    assert len(set(test["input"][:])) == 1600


def test_the_rule_of_the_last_verb_read_by_hand():
    # Written at the words: WALK WALK WALK JUMP, compared with WALK WALK JUMP. Noise before the first verb has no right symbol.
    assert dataset.last_verb_read([("walk twice then jump", "WALK WALK JUMP")]) == 2 / 3
    assert dataset.last_verb_read([("foo walk", "WALK"), ("jump thrice", "JUMP JUMP JUMP")]) == 2 / 3  # the third has no word


def test_the_rule_is_as_good_on_the_published_test_set_as_was_measured_there():
    references = build()[1]["references"]
    measured = (0.605, 0.574, 0.497, 0.481, 0.461, 0.435, 0.419, 0.385)
    for clauses, share in zip(range(5, 13), measured, strict=True):
        assert references[f"last verb read of clauses/{clauses}"] == pytest.approx(share, abs=5e-4)
    assert references["last verb read"] == pytest.approx(0.482, abs=5e-4)


def test_sentences_for_a_decoder_are_those_of_the_published_study():
    task, about = repeated_verbs_written.build(None, defaults("tasks.repeated_verbs_written"))
    inputs = {member: rows["input"][:] for member, rows in task.items()}
    assert sorted(inputs["train"] + inputs["validation"]) == sorted(build()[0]["train"]["input"])
    assert len(inputs["validation"]) == 24
    longer = [text for text in inputs["test"] if text.count("then") >= 4]
    assert longer == build()[0]["test"]["input"][:]
    assert len(inputs["test"]) == len(set(inputs["test"])) == 2000
    assert about["in_distribution"] == "validation"
