"""The term homomorphism: parts of commands, leave-one-out errors, and controls, with hand-computed values."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary
from compositional.plugins import defaults
from compositional.regularizers import Representation, Step, homomorphism

PHRASES = [
    f"{verb} {manner}".strip() for verb in ("walk", "look", "run", "jump") for manner in ("", "left", "right", "around left")
]
# Every phrase occurs with each rule; the second half differs from rule to rule.
COMMANDS = [
    f"{phrase} {modifier} {word} {PHRASES[(5 * place + shift) % len(PHRASES)]}"
    for modifier, word, shift in (("twice", "and", 3), ("thrice", "after", 7))
    for place, phrase in enumerate(PHRASES)
]


@pytest.fixture(scope="module")
def split() -> SequenceSplit:
    commands = [*COMMANDS, *COMMANDS[:1] * (-len(COMMANDS) % 16)]
    return SequenceSplit(commands, [""] * len(commands), Vocabulary.of(commands), Vocabulary.of(["x"]), "cpu")


def penalty(split, state, seed=0, **options):
    """R of a model whose state at every position of a phrase is state(phrase), (D,)."""
    ((_, batch),) = split.evaluation_batches(1, len(split))

    def shown(own):
        phrases = [split.source.decode(row) for row in own.inputs[0].tolist()]
        values = torch.stack([state(phrase) for phrase in phrases])[:, None].expand(-1, own.inputs.shape[2], -1)
        # Values at padding must not count.
        return [Representation("encoder_states", torch.where(own.input_mask[..., None], values, 1e3), own.input_mask)]

    source = torch.Generator().manual_seed(seed)
    parameters = defaults("regularizers.homomorphism") | options
    step = Step(
        parameters,
        batch,
        torch.ones(1),
        lambda shape: torch.randn(1, *shape, generator=source),
        lambda own: (torch.empty(0), shown(own)),
        homomorphism.prepare(parameters, split),
        representations=shown(batch),
    )
    return float(homomorphism.penalty(step))


def words(phrase):
    """A state that is a sum over words; each word adds its own number at one of four positions."""
    total = torch.zeros(4, dtype=torch.double)
    for word in phrase.split():
        total[sum(map(ord, word)) % 4] += 1 + len(word)
    return total


def unrelated(phrase):
    """A state that contains no information about the states of the parts."""
    return torch.from_numpy(np.random.default_rng(list(phrase.encode())).standard_normal(4))


def test_parts_are_the_words_around_the_first_conjunction_and_the_first_without_its_modifier():
    commands = ["run twice after look left", "walk and jump thrice", "look thrice", "run left"]
    own = SequenceSplit(commands * 4, [""] * 16, Vocabulary.of(commands), Vocabulary.of(["x"]), "cpu")
    ((_, batch),) = own.evaluation_batches(1, 16)
    found, rules = homomorphism.parts(batch, homomorphism.prepare(defaults("regularizers.homomorphism"), own))
    decoded = {name: [own.source.decode(row) for row in part.inputs[0].tolist()] for name, part in found.items()}
    sentences = own.input_sentences()
    expected = {
        "run twice after look left": ("run twice", "look left", "run", "after", "twice"),
        "walk and jump thrice": ("walk", "jump thrice", "walk", "and", "<pad>"),
        "look thrice": ("look thrice", "look thrice", "look", "<pad>", "thrice"),
        "run left": ("run left", "run left", "run left", "<pad>", "<pad>"),
    }
    for row, sentence in enumerate(sentences):
        tokens = [own.source.words[int(rules[kind][0, row])] for kind in ("conjunctions", "modifiers")]
        assert (*(decoded[name][row] for name in ("first", "second", "stem")), *tokens) == expected[sentence]
        for name, part in found.items():  # the length and the mask include END
            length = len(decoded[name][row].split()) + 1
            assert int(part.input_lengths[0, row]) == int(part.input_mask[0, row].sum()) == length


def test_leave_one_out_errors_equal_those_of_regressions_without_the_row():
    source = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(1, 7, 3, generator=source).double(), torch.randn(1, 7, 2, generator=source).double()
    member = torch.tensor([[True] * 6 + [False]])
    inputs, targets = ((own - own[:, :6].mean(1, keepdim=True)) * member[..., None] for own in (inputs, targets))
    found = homomorphism.left_out(inputs, targets, member)
    ridge = 0.01 * inputs.square().sum() / 6
    for row in range(6):
        kept = [other for other in range(6) if other != row]
        x, y = (own[0, kept] - own[0, kept].mean(0) for own in (inputs, targets))
        operator = torch.linalg.solve(x.T @ x + ridge * torch.eye(3, dtype=torch.double), x.T @ y)
        predicted = targets[0, kept].mean(0) + (inputs[0, row] - inputs[0, kept].mean(0)) @ operator
        torch.testing.assert_close(found[0, row], targets[0, row] - predicted)
    assert found[0, 6].abs().sum() == 0


def test_sums_are_predicted_unrelated_states_are_not_and_scale_does_not_matter(split):
    assert penalty(split, words) < 0.05
    assert penalty(split, unrelated) > 0.8
    assert penalty(split, lambda phrase: 7 * unrelated(phrase)) == pytest.approx(penalty(split, unrelated))


def test_shuffled_wholes_cannot_be_predicted_from_parts(split):
    assert penalty(split, words, target="shuffled") > 0.8


def test_the_mean_of_parts_is_exact_for_constant_states_and_wrong_by_half_the_sum_for_additive_ones(split):
    options = {"operator": "mean", "normalize": "none"}
    assert penalty(split, lambda phrase: torch.ones(4), **options) == 0
    # States count words: "x and y" is x + y + 1, its error is (x + y) / 2 + 1. The modifier's error is 1 everywhere.
    count = lambda phrase: torch.tensor([float(len(phrase.split()))])  # noqa: E731
    assert penalty(split, count, rules="modifiers", **options) == 1
    # A command that occurs several times counts once.
    rows = [len(sentence.split()) - 1 for sentence in set(split.input_sentences()) if " and " in sentence]
    by_hand = np.mean([(total / 2 + 1) ** 2 for total in rows])
    assert penalty(split, count, rules="conjunctions", conjunctions=["and"], **options) == pytest.approx(by_hand)


def test_the_norm_alone_is_the_mean_square_of_wholes(split):
    assert penalty(split, lambda phrase: torch.full((4,), 3.0), target="norm") == 9


def test_rules_with_fewer_than_three_phrases_do_not_count():
    commands = ["walk and jump", "look and run", "run and walk", "jump after look", "look after walk", "jump after look"]
    few = SequenceSplit(commands, [""] * len(commands), Vocabulary.of(commands), Vocabulary.of(["x"]), "cpu")
    # "after" has two different phrases; its wholes have the norm 5.
    state = lambda phrase: torch.full((4,), 5.0 if "after" in phrase else 3.0)  # noqa: E731
    assert penalty(few, state, target="norm", modifiers=[]) == 9


@pytest.mark.parametrize("detach", ["none", "whole"])
def test_the_variance_has_no_gradient_and_on_request_the_wholes_have_none(detach):
    wholes = torch.tensor([[[1.0], [2.0], [6.0]]], requires_grad=True)
    part = torch.tensor([[[1.0], [0.0], [2.0]]], requires_grad=True)
    parameters = defaults("regularizers.homomorphism") | {"operator": "mean", "detach": detach}
    step = Step(parameters, None, torch.ones(1), None, None, None)
    error = homomorphism._error(step, wholes, [part], torch.ones(1, 3, dtype=torch.bool))
    error.sum().backward()
    # Errors of 0, 2 and 4; the squared distances from the mean, 3, are 4, 1 and 9.
    assert error.tolist() == pytest.approx([20 / 14])
    assert part.grad.flatten().tolist() == pytest.approx([0.0, -4 / 14, -8 / 14])
    assert (wholes.grad is None) == (detach == "whole")
    if detach == "none":
        assert wholes.grad.flatten().tolist() == pytest.approx([0.0, 4 / 14, 8 / 14])


@pytest.mark.parametrize(("option", "message"), [(["nor"], "no word nor"), ([], "needs a word in conjunctions or modifiers")])
def test_words_of_rules_must_occur_in_the_task(split, option, message):
    parameters = defaults("regularizers.homomorphism") | {"conjunctions": option, "modifiers": []}
    with pytest.raises(ValueError, match=message):
        homomorphism.prepare(parameters, split)


@pytest.mark.parametrize("episodes", [True, False])
def test_episodes_are_refused_but_not_sentences_with_one_of_their_words(episodes):
    sentences = ["walk means WALK jump and walk", "this means well and thrice" if episodes else "look and walk thrice"]
    own = SequenceSplit(sentences, ["", ""], Vocabulary.of(sentences), Vocabulary.of(["x"]), "cpu")
    parameters = defaults("regularizers.homomorphism") | {"conjunctions": ["and"], "modifiers": ["thrice"]}
    with pytest.raises(ValueError, match="inputs with study examples") if episodes else nullcontext():
        homomorphism.prepare(parameters, own)
