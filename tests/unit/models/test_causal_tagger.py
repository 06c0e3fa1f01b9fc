"""The causal tagger: its equations, no position sees a later word, and operators change nothing else."""

from __future__ import annotations

import math

import pytest
import torch
from support import small
from support.trained import untrained
from torch.nn import functional

from compositional.layers.tap import silent_tap
from compositional.training.problem import initial_weights


@pytest.fixture(scope="module")
def case():
    return small.problem("causal_tagger")


def logits(case, inputs, weights=None):
    """Logits (S, symbols) of one sentence of tokens (S,), by default of an untrained network."""
    batch = case.splits["test"].batch(torch.zeros(1, 1, dtype=torch.long))
    own = type(batch)(
        inputs[None, None], torch.ones(1, 1, len(inputs), dtype=torch.bool), *[inputs[None, None]] * 2, batch.typical
    )
    return case.model.forward(case.model_parameters, weights or untrained(case), own, silent_tap)[0, 0]


def by_hand(case, inputs, weights):
    """The same from the equations: normalization after each block and once more before the output."""
    w, options = {name: values[0] for name, values in weights.items()}, case.model_parameters
    width, heads, count = options["width"], options["heads"], len(inputs)

    def normalized(name, states):
        states = (states - states.mean(1, keepdim=True)) / (states.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        return states * w[f"{name}.weight"] + w[f"{name}.bias"]

    places = torch.arange(count)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
    states = w["words.weight"][inputs] + torch.cat([places.sin(), places.cos()], 1)
    for name in (f"layers.{layer}" for layer in range(options["layers"])):
        three = states @ w[f"{name}.self_attn.in_proj_weight"].T + w[f"{name}.self_attn.in_proj_bias"]
        query, key, value = (part.view(count, heads, -1) for part in three.chunk(3, 1))
        scores = torch.einsum("ihe,jhe->hij", query, key) / math.sqrt(width / heads)
        seen = torch.ones(count, count, dtype=torch.bool).tril()
        shares = scores.masked_fill(~seen, float("-inf")).softmax(2)
        mixed = torch.einsum("hij,jhe->ihe", shares, value).flatten(1)
        mixed = mixed @ w[f"{name}.self_attn.out_proj.weight"].T + w[f"{name}.self_attn.out_proj.bias"]
        states = normalized(f"{name}.norm1", states + mixed)
        hidden = functional.gelu(states @ w[f"{name}.linear1.weight"].T + w[f"{name}.linear1.bias"])
        states = normalized(f"{name}.norm2", states + hidden @ w[f"{name}.linear2.weight"].T + w[f"{name}.linear2.bias"])
    return normalized("norm", states) @ w["output.weight"].T + w["output.bias"]


def test_the_network_equals_its_equations(case):
    words, source = torch.tensor([3, 7, 5, 4, 6, 8]), torch.Generator().manual_seed(0)
    # Moved from their start, at which one normalization after another changes nothing.
    weights = {name: own + 0.3 * torch.randn(own.shape, generator=source) for name, own in untrained(case).items()}
    torch.testing.assert_close(logits(case, words, weights), by_hand(case, words, weights), atol=1e-5, rtol=1e-5)


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
