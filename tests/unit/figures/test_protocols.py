"""Protocols of selection, compared with choices made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from compositional.figures.shared import protocols

# (regularizer, lambda): accuracies of seeds 0 and 1 on in_distribution, compositional, test; losses in distribution.
RUNS = {
    ("none", 0.0): ([0.98, 0.98], [0.10, 0.20], [0.00, 0.10], 0.5),
    ("entropy", 0.1): ([1.00, 1.00], [0.80, 0.40], [0.90, 0.70], 0.3),
    ("entropy", 1.0): ([1.00, 1.00], [0.50, 0.90], [0.60, 0.90], 0.2),
    ("entropy", 10.0): ([0.96, 0.97], [0.99, 0.10], [0.40, 0.40], 0.1),
    ("dropout", 0.1): ([1.00, 0.99], [0.20, 0.20], [0.85, 0.85], 0.1),
}


def table(runs=RUNS) -> pd.DataFrame:
    rows = []
    for (regularizer, strength), (own, compositional, test, loss) in runs.items():
        for seed in range(2):
            members = {"in_distribution": own[seed], "compositional": compositional[seed], "test": test[seed], "train": 1.0}
            for split, value in members.items():
                rows.append((regularizer, strength, seed, split, "accuracy", value))
                rows.append((regularizer, strength, seed, split, "loss", loss if split == "in_distribution" else 1.0))
    return pd.DataFrame(rows, columns=["regularizer", "lambda", "seed", "split", "metric", "value"])


def chosen(found, protocol):
    return set(found[protocol].settings.values())


def test_every_protocol_makes_the_choice_that_it_describes():
    found = protocols.choices(protocols.runs_of(table()), ["entropy"])
    assert set(found) == {"in-distribution", "compositional", "leave one seed out", "within one point", "oracle"}
    # 0.1 and 1 tie at 1.00 in distribution; the loss decides for 1.
    assert chosen(found, "in-distribution") == {("entropy", 1.0)}
    assert set(found["in-distribution"].tied) == {("entropy", 0.1), ("entropy", 1.0)}
    # Means over seeds: .60 for 0.1, .70 for 1, .545 for 10.
    assert chosen(found, "compositional") == {("entropy", 1.0)}
    assert found["compositional"].score == pytest.approx(0.7)
    # Without seed 0 the accuracies of the other seed are .40, .90, .10; without seed 1 they are .80, .50, .99.
    assert found["leave one seed out"].settings == {0: ("entropy", 1.0), 1: ("entropy", 10.0)}
    # .97 is the smallest sufficient accuracy; at 10 it is .965.
    assert chosen(found, "within one point") == {("entropy", 1.0)}
    assert chosen(found, "oracle") == {("entropy", 0.1)}


def test_a_chosen_run_is_compared_with_the_plain_run_of_the_same_seed():
    runs = protocols.runs_of(table())
    found = protocols.choices(runs, ["entropy"])
    assert protocols.reached(runs, found["leave one seed out"].settings).tolist() == [0.6, 0.4]
    assert protocols.gains(runs, found["leave one seed out"].settings).tolist() == pytest.approx([0.6, 0.3])


def test_a_choice_among_several_regularizers_does_not_compare_lambdas():
    found = protocols.choices(protocols.runs_of(table()), ["entropy", "dropout"])
    assert "within one point" not in found
    assert chosen(found, "oracle") == {("dropout", 0.1)}
    assert chosen(found, "compositional") == {("entropy", 1.0)}


def test_the_smallest_lambda_wins_if_losses_are_equal():
    alike = {key: (own, compositional, [0.5, 0.5], 0.3) for key, (own, compositional, _, _) in RUNS.items()}
    found = protocols.choices(protocols.runs_of(table(alike)), ["entropy"])
    assert chosen(found, "oracle") == {("none", 0.0)}
    assert chosen(found, "in-distribution") == {("entropy", 0.1)}
    # Computed means may differ in the last bit: .1 + .2 is not .3.
    near = {
        ("none", 0.0): ([1.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.3),
        ("entropy", 0.1): ([1.0, 1.0], [0.1 + 0.2, 0.6], [0.0, 0.0], 0.3),
        ("entropy", 1.0): ([1.0, 1.0], [0.3, 0.6], [0.0, 0.0], 0.3),
    }
    assert protocols.choices(protocols.runs_of(table(near)), ["entropy"])["compositional"].tied == (
        ("entropy", 0.1),
        ("entropy", 1.0),
    )


def test_a_setting_with_a_diverged_run_is_never_chosen():
    lost = RUNS | {("entropy", 1.0): ([1.0, np.nan], [1.0, np.nan], [1.0, np.nan], 0.2)}
    found = protocols.choices(protocols.runs_of(table(lost)), ["entropy"])
    assert chosen(found, "in-distribution") == chosen(found, "compositional") == {("entropy", 0.1)}
    everything = {key: ([np.nan] * 2, [np.nan] * 2, [np.nan] * 2, 0.1) for key in RUNS}
    with pytest.raises(ValueError, match="nothing can be chosen"):
        protocols.choices(protocols.runs_of(table(everything)), ["entropy"])


def test_in_distribution_is_the_tasks_first_such_member():
    images = table().replace({"split": {"in_distribution": "validation"}})
    assert protocols.runs_of(images).equals(protocols.runs_of(table()))


def test_an_accuracy_exactly_one_point_below_the_plain_models_is_within_it():
    assert 0.1 - protocols.POINT > 0.09  # in floating point
    near = {("none", 0.0): 0.1, ("entropy", 0.1): 0.2, ("entropy", 1.0): 0.09, ("entropy", 10.0): 0.0899}
    runs = protocols.runs_of(table({key: ([own, own], [0.0, 0.0], [0.0, 0.0], 0.1) for key, own in near.items()}))
    assert chosen(protocols.choices(runs, ["entropy"]), "within one point") == {("entropy", 1.0)}


def test_nothing_is_within_one_point_of_a_plain_model_that_diverged():
    lost = RUNS | {("none", 0.0): ([0.98, np.nan], [0.1, np.nan], [0.0, np.nan], 0.5)}
    found = protocols.choices(protocols.runs_of(table(lost)), ["entropy"])
    assert set(found) == {"in-distribution", "compositional", "leave one seed out", "oracle"}


def test_rank_correlations_are_of_at_least_three_runs_that_learned_the_task():
    accuracies = {"in_distribution": [0.9, 0.95, 1.0, 0.89], "compositional": [0.1, 0.2, 0.3, 0.9], "test": [0.2, 0.3, 0.4, 0.0]}
    runs = pd.DataFrame(accuracies)
    assert protocols.rank_correlation(runs, "compositional", 0.9) == (pytest.approx(1), 3)
    # Ranks 1, 2, 3, 4 and 2, 3, 4, 1: 1 - 6 (1 + 1 + 1 + 9) / (4 * 15).
    assert protocols.rank_correlation(runs, "compositional", 0.0) == (pytest.approx(-0.2), 4)
    few, count = protocols.rank_correlation(runs[:2], "compositional", 0.9)
    assert np.isnan(few)
    assert count == 2


def test_a_seed_without_the_chosen_or_the_plain_run_has_no_gain():
    runs = protocols.runs_of(table()).drop([("none", 0.0, 1), ("entropy", 1.0, 0)])
    settings = {0: ("entropy", 1.0), 1: ("entropy", 1.0)}
    assert protocols.reached(runs, settings).to_dict() == {1: 0.9}
    assert protocols.gains(runs, settings).isna().all()
