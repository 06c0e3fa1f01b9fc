"""Controls: the two halves of entropy, partners among seen combinations, and plain regularizers, with hand-computed values."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import pytest
import torch

from compositional.kinds.image import Batch
from compositional.plugins import defaults
from compositional.regularizers import Representation, Step, dropout, entropy, label_smoothing, recombination, weight_decay


def step_of(strength, batch=None, parameters=None, **more):
    """A step of runs with these lambdas and constant noise."""
    strength = torch.tensor(strength)
    noise = more.pop("noise", None)
    again = more.pop("again", None)
    return Step(parameters or {}, batch, (strength > 0).float(), lambda shape: noise, again, strength=strength, **more)


def test_the_norm_alone_has_no_noise_and_the_noise_alone_no_norm():
    values = torch.full((2, 1, 4), 2.0)
    shown = Representation("penultimate", values, None)
    noise = torch.ones(2, 1, 4)
    options = defaults("regularizers.entropy")
    norm = step_of([0.5, 0.0], parameters=options | {"parts": "norm"}, representations=[shown], noise=noise)
    assert entropy.perturb(norm, shown) is values
    assert entropy.penalty(norm).tolist() == [4.0, 4.0]
    alone = step_of([0.5, 0.0], parameters=options | {"parts": "noise"}, representations=[shown], noise=noise)
    # The noise is lambda times the feature noise of 0.3; the plain run has none.
    assert entropy.perturb(alone, shown)[:, 0, 0].tolist() == pytest.approx([2.15, 2.0])
    assert entropy.penalty(alone).tolist() == [0.0, 0.0]
    both = step_of([0.5, 0.0], parameters=options, representations=[shown], noise=noise)
    assert entropy.perturb(both, shown)[:, 0, 0].tolist() == pytest.approx([2.3, 2.0])
    assert entropy.penalty(both).tolist() == [4.0, 4.0]


def labelled_batch() -> Batch:
    """Two runs of five rows of 1 x 2 pixels: left components 1 to 5, right ones 10 to 50."""
    pixels = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]]).view(1, 5, 1, 1, 2)
    labels = torch.tensor([[7, 3, 7, 0, 7], [1, 1, 0, 0, 2]])
    return Batch(pixels.expand(2, -1, -1, -1, -1).clone(), labels, 1)


def test_partners_of_the_same_label_make_seen_combinations_only():
    batch = labelled_batch()
    exchanged = batch.recombine_within_label()
    assert torch.equal(exchanged.images[..., :1], batch.images[..., :1])
    rights = exchanged.images[..., 1].flatten(1).tolist()
    # Rows 0, 2 and 4 have the label 7: each gets the next one's right half, cyclically. Rows 1 and 3 have unique labels.
    assert rights == [[30.0, 20.0, 50.0, 40.0, 10.0], [20.0, 10.0, 40.0, 30.0, 50.0]]
    before, after = (
        {(label, value) for label, value in zip(batch.labels[0].tolist(), right, strict=True)}
        for right in (batch.images[0, ..., 1].flatten().tolist(), rights[0])
    )
    # The right halves within a class stay the same: no class gets a right half with which it was not drawn.
    assert before == after


def test_recombination_uses_the_configured_exchange():
    batch = labelled_batch()
    batch = replace(batch, images=batch.images[:, :4], labels=batch.labels[:, :4])
    for exchange, expected in (("lexicon", [20.0, 10.0, 40.0, 30.0]), ("seen", [30.0, 20.0, 10.0, 40.0])):
        step = step_of(
            [1.0, 1.0],
            batch,
            {"exchange": exchange},
            again=lambda other: (other.images[..., 1].flatten(2).sum(-1, keepdim=True), []),
            outputs=torch.zeros(2, 4, 1),
        )
        assert recombination.penalty(step)[0].item() == sum(value**2 for value in expected) / 4


def test_an_exchange_for_another_kind_of_task_is_refused(digit_splits, scan_splits):
    with pytest.raises(ValueError, match="exchange: virtual is not for tasks of this kind, which take lexicon, seen"):
        recombination.prepare(defaults("regularizers.recombination") | {"exchange": "virtual"}, digit_splits["train"])
    with pytest.raises(ValueError, match="exchange: seen is not for sequences, which take"):
        recombination.prepare(defaults("regularizers.recombination") | {"exchange": "seen"}, scan_splits["train"])


def test_weight_decay_is_half_the_squared_norm_of_all_weights_and_its_gradient_is_the_weights():
    weights = {"a": torch.tensor([[1.0, 2.0], [3.0, 0.0]], requires_grad=True), "b": torch.tensor([[2.0], [1.0]])}
    penalty = weight_decay.penalty(step_of([1.0, 1.0], weights=weights))
    assert penalty.tolist() == [4.5, 5.0]
    (gradient,) = torch.autograd.grad(penalty.sum(), weights["a"])
    assert torch.equal(gradient, weights["a"])


def test_dropout_drops_each_runs_own_share_and_does_not_change_the_plain_run():
    noise = torch.tensor([NormalDist().inv_cdf(share) for share in (0.05, 0.2, 0.3, 0.9)]).expand(3, 1, 4)
    values = torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(3, 1, 4)
    shown = Representation("penultimate", values, None)
    step = step_of([0.0, 0.1, 0.25], noise=noise)
    kept = dropout.perturb(step, shown)[:, 0].tolist()
    assert kept[0] == [1.0, 2.0, 3.0, 4.0]
    assert kept[1] == pytest.approx([0.0, 2 / 0.9, 3 / 0.9, 4 / 0.9])
    assert kept[2] == pytest.approx([0.0, 0.0, 4.0, 16 / 3])
    assert dropout.penalty(step).tolist() == [0.0, 0.0, 0.0]
    others = Representation("encoder_states", values, None)
    assert dropout.perturb(step, others) is values


def test_label_smoothing_is_the_loss_against_a_mixture_of_label_and_uniform_distribution():
    scores = torch.tensor([[[2.0, 0.0, -1.0], [0.5, 0.5, 0.0]]])
    labels = torch.tensor([[0, 2]])
    batch = Batch(torch.zeros(1, 2, 1, 1, 2), labels, 1)
    penalty = label_smoothing.penalty(step_of([0.1], batch, outputs=scores)).item()
    own = batch.losses(scores, "cross_entropy").mean().item()
    smoothed = torch.nn.functional.cross_entropy(scores[0], labels[0], label_smoothing=0.1).item()
    assert own + 0.1 * penalty == pytest.approx(smoothed)
    # Hinge, first row: against labels 0, 1 and 2 it is 0, 3 and 4; second row: 1, 1 and 1.5.
    penalty = label_smoothing.penalty(step_of([0.1], batch, outputs=scores, loss="hinge")).item()
    assert penalty == pytest.approx(((7 / 3 - 0) + (3.5 / 3 - 1.5)) / 2)
