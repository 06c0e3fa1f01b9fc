"""The published term on tiny states, by hand, and its controls."""

from __future__ import annotations

import pytest
import torch

from compositional.kinds.tagging import TaggingSplit
from compositional.language.vocabulary import Vocabulary
from compositional.plugins import defaults
from compositional.regularizers import Representation, Step, modifier_homomorphism

# Pairs: (walk twice) in the first sentence, (jump twice) and (walk thrice) in the second, none in the third.
SENTENCES = ["walk twice then jump", "jump twice then walk thrice", "walk foo thrice then twice"]
OPTIONS = {"verbs": ["walk", "jump"]}


@pytest.fixture(scope="module")
def split() -> TaggingSplit:
    return TaggingSplit(SENTENCES, [""] * 3, Vocabulary.of(SENTENCES), Vocabulary.of(["x"]), "cpu")


def operators(first: torch.Tensor, second: torch.Tensor) -> dict[str, torch.Tensor]:
    """Both operators compute second relu(first x) + 1, (1, ...)."""
    zero = torch.zeros(1, len(first))
    one = {"0.weight": first[None], "0.bias": zero, "2.weight": second[None], "2.bias": torch.ones(1, len(second))}
    return {f"operators.{word}.{name}": values for word in ("twice", "thrice") for name, values in one.items()}


def penalty(split, states, weights, **options):
    """R from the states (S of the batch,) of width 1 in both layers, those of the second being twice those of the first."""
    parameters = defaults("regularizers.modifier_homomorphism") | OPTIONS | options
    batch = split.batch(torch.arange(len(split)).unsqueeze(0))
    shown = [
        Representation(name, factor * states.view(1, 3, 5, 1), batch.input_mask)
        for name, factor in (("middle_states", 1.0), ("last_states", 2.0))
    ]
    source = torch.Generator().manual_seed(0)
    noise = lambda shape: torch.randn(1, *shape, generator=source)  # noqa: E731
    prepared = modifier_homomorphism.prepare(parameters, split)
    again = lambda other: (torch.empty(0), shown)  # noqa: E731
    step = Step(parameters, batch, torch.ones(1), noise, again, prepared, representations=shown, weights=weights)
    return float(modifier_homomorphism.penalty(step))


STATES = torch.tensor([[1.0, 3, 9, 9, 9], [2, 4, 9, 5, 1], [9, 9, 9, 9, 9]])  # means of the pairs: 2 and 3 (twice), 3 (thrice)


def test_the_value_by_hand(split):
    constant = operators(torch.zeros(2, 2), torch.zeros(1, 2))  # predicts 1
    # First layer: twice (1 + 4) / 2, thrice 4. Second layer, means 4, 6 and 6: twice (9 + 25) / 2, thrice 25.
    assert penalty(split, STATES, constant) == pytest.approx(((5 / 2 + 4) / 2 + (34 / 2 + 25) / 2) / 2)


def test_a_linear_operator_has_no_error_whatever_the_states(split):
    half = operators(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([[0.5, -0.5]]))  # the mean of the two, plus 1
    for states in (STATES, torch.randn(3, 5, generator=torch.Generator().manual_seed(1))):
        assert penalty(split, states, half) == pytest.approx(1, rel=1e-5)  # the 1 alone


def test_shuffled_targets_are_those_of_pairs_with_the_same_modifier(split):
    half = operators(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([[0.5, -0.5]]))
    found = penalty(split, STATES, half, target="shuffled")
    # Thrice has one pair. Those of twice are exchanged or not: errors (2 + 1 - 3, 3 + 1 - 2) or (1, 1), doubled apart from the 1.
    exchanged = {layer: (((2 - 3) * layer + 1) ** 2 + ((3 - 2) * layer + 1) ** 2) / 2 for layer in (1, 2)}
    possible = [((a + 1) / 2 + (b + 1) / 2) / 2 for a in (1, exchanged[1]) for b in (1, exchanged[2])]
    assert any(found == pytest.approx(value, rel=1e-5) for value in possible)


def test_the_norm_is_that_of_the_pairs_states_and_needs_no_operator(split):
    first = ((1 + 9 + 4 + 16) / 4 + (25 + 1) / 2) / 2
    assert penalty(split, STATES, {}, target="norm") == pytest.approx((first + 4 * first) / 2)


def test_faults_are_named(split):
    with pytest.raises(ValueError, match="no operator for 'twice'"):
        penalty(split, STATES, {})
    with pytest.raises(ValueError, match="no word skip"):
        penalty(split, STATES, {}, verbs=["skip"])
    with pytest.raises(ValueError, match="none of then follows one of walk"):
        penalty(split, STATES, {}, verbs=["walk"], modifiers=["then"])
