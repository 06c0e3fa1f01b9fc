"""Errors of operators in cases with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from compositional.measures import homomorphism

SOURCE = np.random.default_rng(0)
PARTS, OPERATOR = SOURCE.normal(size=(60, 4)), SOURCE.normal(size=(4, 3))
SEEN = np.arange(60) < 40


def test_relative_error_equals_hand_computed_values():
    wholes = np.array([[0.0, 1.0], [2.0, 1.0]])
    assert homomorphism.relative_error(wholes, np.array([[1.0, 1.0], [1.0, 1.0]])) == 1  # the mean
    assert homomorphism.relative_error(wholes, wholes) == 0
    assert homomorphism.relative_error(wholes, np.array([[0.0, 1.0], [2.0, 2.0]])) == 0.5  # 1 of 1 + 1
    assert np.isnan(homomorphism.relative_error(np.ones((3, 2)), np.zeros((3, 2))))


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_a_linear_rule_has_no_error_on_held_out_phrases(scale):
    wholes = scale * (PARTS @ OPERATOR + 5)
    found = homomorphism.held_out_error(scale * PARTS, wholes, SEEN)
    assert found.value < 1e-8
    assert found.shuffled.min() > 0.8
    assert homomorphism.seen_error(scale * PARTS, wholes) < 1e-8


def test_wholes_that_are_independent_of_their_parts_have_an_error_of_about_one():
    wholes = SOURCE.normal(size=(60, 3))
    found = homomorphism.held_out_error(PARTS, wholes, SEEN)
    assert found.value == pytest.approx(1, abs=0.2)
    assert homomorphism.seen_error(PARTS, wholes) == pytest.approx(1, abs=0.2)


def test_the_parts_that_are_left_out_are_drawn_at_random():
    """Otherwise all phrases with one verb, which follow each other, would be left out together."""
    parts = np.repeat(np.eye(5), 6, axis=0)
    assert homomorphism.seen_error(parts, parts @ SOURCE.normal(size=(5, 3))) < 1e-8


def test_a_rule_that_fails_on_held_out_phrases_has_an_error_only_there():
    wholes = PARTS @ OPERATOR
    wholes[~SEEN] *= -1
    assert homomorphism.seen_error(PARTS[SEEN], wholes[SEEN]) < 1e-8
    assert homomorphism.held_out_error(PARTS, wholes, SEEN).value > 2
