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


@pytest.mark.parametrize(("count", "measured"), [(5, {"twice", "thrice"}), (4, {"twice"})])
def test_a_rule_is_measured_on_at_least_five_held_out_wholes(jump, count, measured):
    alone = [pair for pair in PAIRS if pair[0].startswith("jump ") and not {"and", "after"} & set(pair[0].split())]
    twice, thrice = ([pair for pair in alone if pair[0].endswith(rule)] for rule in ("twice", "thrice"))
    pairs = twice + thrice[:count]
    jump.splits["test"] = SequenceSplit(*map(list, zip(*pairs, strict=True)), SOURCE, TARGET, "cpu")
    assert set(homomorphism._chosen(jump)) == measured


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


def test_the_error_in_distribution_is_that_on_wholes_of_training(jump):
    words = {word: np.random.default_rng(index).normal(size=6) for index, word in enumerate(SOURCE.words)}
    drawn = np.random.default_rng(0)
    found = _measured(
        jump, lambda phrase: drawn.normal(size=6) if "jump" in phrase else sum(words[word] for word in phrase.split())
    )
    assert found["homomorphism_error_in_distribution in encoder_states"] < 1e-6
    assert found["homomorphism_error in encoder_states"] > 0.9


def test_the_error_of_the_mean_of_parts_is_that_on_held_out_wholes(jump):
    found = _measured(jump, lambda phrase: np.array([len(phrase.split())], dtype=float))
    errors = []
    for _, held_out in homomorphism._chosen(jump).values():
        counts = np.array([[len(phrase.split()) for phrase in whole] for whole in held_out])
        whole, mean = counts[:, 0], counts[:, 1:].mean(1)
        errors.append(np.square(whole - mean).sum() / np.square(whole - whole.mean()).sum())
    assert found["homomorphism_error_of_mean in encoder_states"] == pytest.approx(np.mean(errors))


def test_tasks_without_commands_have_no_such_measure(problem):
    other = problem("lstm_attention")
    other.about |= {"dataset": "cogs"}
    assert homomorphism.measure(other, {"w": np.zeros((2, 1))}) == [{}, {}]
