"""Which phrases of SCAN are wholes and parts, and the errors of networks that are known to be additive or not."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from compositional.datasets import scan
from compositional.evaluation import activations, homomorphism
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary

PAIRS = scan.commands()
SOURCE, TARGET = (Vocabulary.of([pair[side] for pair in PAIRS]) for side in (0, 1))


@pytest.fixture
def jump(problem):
    """SCAN with "jump" only in the test set, except for the verb alone."""
    made = problem("primitive_attention")
    made.about |= {"dataset": "scan"}
    members = {"train": [], "test": []}
    for pair in PAIRS:
        members["test" if "jump" in pair[0].split() and pair[0] != "jump" else "train"].append(pair)
    made.splits = {
        name: SequenceSplit(*map(list, zip(*pairs, strict=True)), SOURCE, TARGET, "cpu") for name, pairs in members.items()
    }
    return made


def test_derivations_equal_those_made_by_hand():
    assert list(homomorphism.derivations("walk twice and run left thrice")) == [
        ("and", ("walk twice and run left thrice", "walk twice", "run left thrice")),
        ("twice", ("walk twice", "walk")),
        ("thrice", ("run left thrice", "run left")),
    ]
    assert list(homomorphism.derivations("turn left")) == []


def test_held_out_wholes_are_those_that_occur_only_in_the_test_set(jump):
    chosen = homomorphism._chosen(jump)
    assert set(chosen) == {"and", "after", "twice", "thrice"}
    for rule, (seen, held_out) in chosen.items():
        assert all("jump" in whole[0].split() for whole in held_out)
        assert all("jump" not in whole[0].split() for whole in seen)
        assert not set(seen) & set(held_out)
        # "jump" and its six manners with a direction; there are more conjunctions than needed.
        assert len(held_out) == (7 if rule in homomorphism.MODIFIERS else 200)


def _measured(jump, vector) -> dict[str, float]:
    """The measures of one run whose representation of a phrase is `vector(phrase)`."""

    def show(problem, weights, probe):
        rows = np.stack([vector(item) for item in probe.items])[None]
        return {"encoder_states": rows, "word_embedding": rows}

    with mock.patch.object(activations, "on_stimuli", show):
        return homomorphism.measure(jump, {"w": np.zeros((1, 1))})[0]


def test_a_bag_of_words_is_a_homomorphism_and_noise_is_not(jump):
    words = {word: np.random.default_rng(index).normal(size=6) for index, word in enumerate(SOURCE.words)}
    found = _measured(jump, lambda phrase: sum(words[word] for word in phrase.split()))
    assert found["homomorphism_error in encoder_states"] < 1e-6
    assert found["homomorphism_error of and in encoder_states"] < 1e-6
    assert found["homomorphism_error_in_distribution in encoder_states"] < 1e-6
    assert found["homomorphism_error in encoder_states (shuffled)"] > 0.9
    assert not [name for name in found if "word_embedding" in name]
    drawn = np.random.default_rng(0)
    noise = _measured(jump, lambda phrase: drawn.normal(size=6))
    assert noise["homomorphism_error in encoder_states"] == pytest.approx(1, abs=0.2)


def test_tasks_without_commands_have_no_such_measure(problem):
    other = problem("lstm_attention")
    other.about |= {"dataset": "cogs"}
    assert homomorphism.measure(other, {"w": np.zeros((2, 1))}) == [{}, {}]
