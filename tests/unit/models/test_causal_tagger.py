"""The causal tagger: no position sees a later word, and operators change nothing else."""

from __future__ import annotations

import pytest
import torch
from support import small
from support.trained import untrained

from compositional.layers.tap import silent_tap
from compositional.training.problem import initial_weights


@pytest.fixture(scope="module")
def case():
    return small.problem("causal_tagger")


def logits(case, inputs):
    """Logits (S, symbols) of one sentence of tokens (S,)."""
    batch = case.splits["test"].batch(torch.zeros(1, 1, dtype=torch.long))
    own = type(batch)(
        inputs[None, None], torch.ones(1, 1, len(inputs), dtype=torch.bool), *[inputs[None, None]] * 2, batch.typical
    )
    return case.model.forward(case.model_parameters, untrained(case), own, silent_tap)[0, 0]


def test_a_later_word_changes_no_earlier_logit(case):
    words = torch.tensor([3, 7, 5, 4, 6, 8])
    before = logits(case, words)
    for place in range(len(words)):
        changed = words.clone()
        changed[place] = 9
        after = logits(case, changed)
        torch.testing.assert_close(after[:place], before[:place])
        assert (after[place:] - before[place:]).abs().sum(1).min() > 1e-6  # from there on, everything sees it
    torch.testing.assert_close(logits(case, words[:3]), before[:3])


def test_the_network_starts_from_the_same_numbers_with_and_without_operators(case):
    weights = initial_weights(case, 0)
    family = "repeated_verbs", "causal_tagger", "none"
    bare = small.read_problem(small.split(family[0]), small.configuration().family_parameters(family), "cpu")
    bare.model_parameters = bare.model_parameters | {"operators": []}
    without = initial_weights(bare, 0)
    assert {name for name in weights if name.startswith("operators.")} == weights.keys() - without.keys()
    assert all(torch.equal(weights[name], own) for name, own in without.items())
