"""Every regularizer, compared with hand-computed values."""

from __future__ import annotations

import math

import pytest
import torch

from compositional.datasets import scan
from compositional.kinds.image import Batch
from compositional.kinds.sequence import SequenceSplit
from compositional.language import lexicon, logical_forms
from compositional.language.vocabulary import Vocabulary
from compositional.plugins import defaults
from compositional.regularizers import Representation, Step, additivity, entropy, recombination, smoothness


def step_of(batch=None, representations=(), parameters=None, again=None, outputs=None, prepared=None, active=None):
    """A step with given contents; its "noise" consists of increasing numbers."""

    def normal(shape):
        return torch.arange(float(torch.Size(shape).numel())).view(1, *shape)

    active = torch.ones(1) if active is None else active
    return Step(parameters or {}, batch, active, normal, again, prepared, outputs, list(representations))


def test_entropy_is_mean_over_width_sum_over_valid_positions_mean_over_batch():
    values = torch.tensor([[[[1.0, 3.0], [2.0, 0.0]], [[4.0, 0.0], [9.0, 9.0]]]])  # (1 run, 2 rows, 2 positions, 2)
    mask = torch.tensor([[[True, True], [True, False]]])
    words = Representation("word_embedding", values, mask)
    # Rows: (1 + 9)/2 + (4 + 0)/2 = 7 and 16/2 = 8; mean 7.5. Two streams: 15. Other representations do not count.
    others = Representation("encoder_states", values, mask)
    assert entropy.penalty(step_of(representations=[words, words, others], parameters={"parts": "both"})).tolist() == [15.0]


def test_entropy_adds_noise_of_the_configured_power_to_active_runs_only():
    values = torch.zeros(2, 3, 4)
    options = {"parts": "both", "word_noise": 1.0, "feature_noise": 0.5}
    active = torch.tensor([1.0, 0.0])
    noisy = entropy.perturb(step_of(parameters=options, active=active), Representation("penultimate", values, None))
    assert torch.equal(noisy[0], 0.5 * torch.arange(12.0).view(3, 4))
    assert torch.equal(noisy[1], torch.zeros(3, 4))


def test_entropy_adds_word_noise_to_word_embeddings_and_none_to_other_states():
    step = step_of(parameters={"parts": "both", "word_noise": 2.0, "feature_noise": 0.5})
    words = Representation("word_embedding", torch.ones(1, 1, 2, 2), None)
    assert entropy.perturb(step, words).tolist() == [[[[1, 3], [5, 7]]]]
    others = Representation("encoder_states", torch.ones(1, 1, 2, 2), None)
    assert entropy.perturb(step, others) is others.values


def test_smoothness_counts_valid_steps_only():
    states = torch.tensor([[[[0.0], [1.0], [3.0]], [[5.0], [2.0], [100.0]]]])
    mask = torch.tensor([[[True, True, True], [True, True, False]]])
    options = defaults("regularizers.smoothness")
    step = step_of(representations=[Representation("encoder_states", states, mask)], parameters=options)
    # The squares of 1, 2 and -3, divided by three valid steps.
    assert smoothness.penalty(step).tolist() == pytest.approx([14 / 3])
    # A mask with a gap, as between the study pairs of an episode: no step begins or ends in it.
    states, mask = torch.tensor([[[[0.0], [1.0], [9.0], [5.0], [7.0]]]]), torch.tensor([[[True, True, False, True, True]]])
    step = step_of(representations=[Representation("command_states", states, mask)], parameters=options)
    assert smoothness.penalty(step).tolist() == pytest.approx([5 / 2])


def image_batch() -> Batch:
    """Four rows of 1 x 2 pixels: left components 1, 2, 3, 4, right ones 10, 20, 30, 40."""
    pixels = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]).view(1, 4, 1, 1, 2)
    return Batch(pixels, torch.zeros(1, 4, dtype=torch.int64), 1)


def test_partners_exchange_right_components():
    recombined = image_batch().recombine()
    assert recombined.images.view(4, 2).tolist() == [[1, 20], [2, 10], [3, 40], [4, 30]]


def pair_features(batch: Batch) -> torch.Tensor:
    """r(a, b) = a + b + a b: additive except for the product."""
    left, right = batch.images.flatten(2).unbind(-1)
    return (left + right + left * right).unsqueeze(-1)


def test_additivity_sums_the_squared_interaction_over_the_width():
    batch = image_batch()

    def shown(other):
        return [Representation("penultimate", pair_features(other) * torch.tensor([1.0, 2.0]), None)]

    step = step_of(batch, shown(batch), again=lambda other: (None, shown(other)))
    # ab + cd - ad - cb = (a - c)(b - d): (-1)(-10) = 10 for every pair of partners, and 20 in the second of two units.
    assert additivity.penalty(step).tolist() == [500.0]


def test_recombination_of_images_is_the_mean_squared_change_of_the_output():
    batch = image_batch()
    outputs = torch.stack([pair_features(batch).squeeze(-1), torch.zeros(1, 4)], -1)
    step = step_of(
        batch,
        parameters={"exchange": "lexicon"},
        outputs=outputs,
        again=lambda other: (torch.stack([pair_features(other).squeeze(-1), torch.zeros(1, 4)], -1), []),
    )
    # f changes by (1 + a)(b' - b): 20, -30, 40, -50.
    assert recombination.penalty(step).tolist() == [(400 + 900 + 1600 + 2500) / 4]


def swapped_batches(split, form, exchange="lexicon", logits=None):
    """A recombination step on real SCAN batches, and the batches on which it called the model; by default a uniform model."""
    options = {"form": form, "exchange": exchange}
    rows = torch.from_numpy(split.draw(0, range(2), 64))
    batch = split.batch(rows, split.training_layout(64))
    seen = []
    generator = torch.Generator().manual_seed(0)

    def again(other):
        seen.append(other)
        return torch.zeros(*other.targets.shape, len(split.target)) if logits is None else logits(other), []

    step = Step(
        options,
        batch,
        torch.ones(2),
        lambda shape: torch.randn(2, *shape, generator=generator),
        again,
        recombination.prepare(options, split),
        torch.zeros(*batch.targets.shape, len(split.target)) if logits is None else logits(batch),
    )
    return batch, recombination.penalty(step), seen[0]


def test_swaps_exchange_words_and_symbols_alike(scan_splits):
    split = scan_splits["train"]
    batch, _, swapped = swapped_batches(split, "hard")
    verb_of = dict(zip(scan.ACTIONS.values(), scan.ACTIONS, strict=True))
    truth = dict(scan.commands())
    changed = 0
    for run in range(2):
        targets = [row for chunk in batch.layout.chunks(swapped.targets) for row in chunk[run].tolist()]
        for row in range(64):
            command = split.source.decode(swapped.inputs[run, row].tolist())
            # The swapped actions are exactly those that the grammar assigns to the swapped command.
            assert split.target.decode(targets[row]) == truth[command]
            changed += command != split.source.decode(batch.inputs[run, row].tolist())
    assert changed > 64
    assert set(verb_of) <= set(split.target.words)


def with_virtual_words(split, count):
    """The same sentences, with additional words and symbols in the vocabularies that no sentence contains."""
    vocabularies = [Vocabulary((*side.words, *lexicon.virtual_words(count))) for side in (split.source, split.target)]
    return SequenceSplit(split.input_sentences(), split.output_sentences(), *vocabularies, "cpu")


def test_virtual_words_replace_all_words_of_a_type_and_create_no_test_command(scan_splits):
    split = with_virtual_words(scan_splits["train"], 6)
    batch, _, swapped = swapped_batches(split, "hard", "virtual")
    truth = dict(scan.commands())
    symbol_of = scan.ACTIONS | {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
    first, shown = set(), set()
    for run in range(2):
        targets = [row for chunk in batch.layout.chunks(swapped.targets) for row in chunk[run].tolist()]
        for row in range(64):
            before = split.source.decode(batch.inputs[run, row].tolist())
            after = split.source.decode(swapped.inputs[run, row].tolist())
            exchanged = {old: new for old, new in zip(before.split(), after.split(), strict=True) if old != new}
            assert set(exchanged) == set(before.split()) & set(symbol_of)
            assert len(set(exchanged.values())) == len(exchanged)  # different words stay different
            expected = {symbol_of[old]: new for old, new in exchanged.items()}
            assert split.target.decode(targets[row]) == " ".join(expected.get(s, s) for s in truth[before].split())
            shown |= set(exchanged.values())
            first |= {new for old, new in exchanged.items() if old == "walk"}
    assert shown == set(lexicon.virtual_words(6))
    assert first == set(lexicon.virtual_words(4))  # four for verbs, two for directions
    with pytest.raises(ValueError, match="needs 6 virtual words, of which the task lacks 1"):
        swapped_batches(with_virtual_words(scan_splits["train"], 5), "hard", "virtual")


def test_the_soft_form_vanishes_for_a_model_that_follows_every_exchange(scan_splits):
    split = with_virtual_words(scan_splits["train"], 6)

    def copies(batch):
        """The right symbol is the most probable one at each position; all others are equally probable."""
        return 3 * torch.nn.functional.one_hot(batch.targets, len(split.target)).float()

    for exchange in ("lexicon", "virtual"):
        _, soft, _ = swapped_batches(split, "soft", exchange, copies)
        torch.testing.assert_close(soft, torch.zeros(2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("exchange", ["lexicon", "virtual"])
def test_the_soft_form_is_the_divergence_of_two_predictions_at_every_target_position(scan_splits, exchange):
    split = with_virtual_words(scan_splits["train"], 6)
    size = len(split.target)
    sharpness = iter([3.0, 1.0])  # in the main pass, then in the pass over the swapped batch

    def copies(batch):
        return next(sharpness) * torch.nn.functional.one_hot(batch.targets, size).float()

    batch, soft, _ = swapped_batches(split, "soft", exchange, copies)
    # All symbols but the right one have the same probability.
    ours, theirs = ([math.exp(sharp), *[1.0] * (size - 1)] for sharp in (3, 1))
    ours, theirs = ([weight / sum(weights) for weight in weights] for weights in (ours, theirs))
    middle = [(p + q) / 2 for p, q in zip(ours, theirs, strict=True)]
    apart = sum(p * math.log(p / m) / 2 for own in (ours, theirs) for p, m in zip(own, middle, strict=True))
    assert batch.target_mask.logical_not().any()
    torch.testing.assert_close(soft, batch.target_mask.sum(1) / 64 * apart)


def test_hard_and_soft_forms_on_a_uniform_model(scan_splits):
    split = scan_splits["train"]
    batch, hard, _ = swapped_batches(split, "hard")
    tokens = batch.target_mask.sum(1) / 64
    symbols = torch.tensor(float(len(split.target)))
    torch.testing.assert_close(hard, tokens * symbols.log())
    _, soft, _ = swapped_batches(split, "soft")
    # A uniform distribution does not change under any exchange.
    torch.testing.assert_close(soft, torch.zeros(2), atol=1e-4, rtol=0)


def test_swapped_terms_are_drawn_from_all_training_pairs_and_change_lengths_of_sentences(question_splits):
    split = question_splits["train"]
    _, hard, swapped = swapped_batches(split, "hard", "terms")
    targets = [[row for chunk in swapped.layout.chunks(swapped.targets) for row in chunk[run].tolist()] for run in range(2)]
    runs = [
        {(split.source.decode(source), split.target.decode(target)) for source, target in zip(*both, strict=True)}
        for both in zip(swapped.inputs.tolist(), targets, strict=True)
    ]
    assert runs[0] != runs[1]
    names = logical_forms.infer(split.input_sentences(), split.output_sentences())["_const"]
    assert [name for name, _ in names] == ["austin", "new york", "red", "texas", "utah"]
    stays = {
        pair for pair in zip(split.input_sentences(), split.output_sentences(), strict=True) if not logical_forms.named(*pair)
    }
    possible = {(f"how big is {name}", f"( A , ( _size ( B , A ) , _const ( B , {term} ) ) )") for name, term in names}
    possible |= {(f"how long is the {name}", f"( A , ( _len ( B , A ) , _const ( B , {term} ) ) )") for name, term in names}
    assert len(stays) == 2
    assert stays < runs[0] | runs[1] <= possible | stays
    # The loss of a uniform model is the logarithm of the number of symbols at every position.
    torch.testing.assert_close(hard, swapped.target_mask.sum(1) / 64 * math.log(len(split.target)))
    with pytest.raises(ValueError, match="exchange: terms changes it; use form: hard"):
        swapped_batches(split, "soft", "terms")
