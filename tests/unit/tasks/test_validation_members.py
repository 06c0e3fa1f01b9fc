"""Members for choosing settings are disjoint from training and from the test set."""

from __future__ import annotations

from collections import Counter

import pytest

from compositional.datasets import scan
from compositional.plugins import defaults
from compositional.stages.split import audit
from compositional.tasks import digits_concat, scan_jump


def scan_members(**options):
    members, about = scan_jump.build(None, defaults("tasks.scan_jump") | options)
    return {name: member["input"][:] for name, member in members.items()}, members, about


@pytest.mark.parametrize("verb", ["walk", "look", "run"])
def test_a_held_out_verb_of_scan_is_trained_only_alone_like_jump(verb):
    inputs, members, about = scan_members(validation_verb=verb, held_out=0.05)
    # 7,260 commands contain neither verb; 363 are held out; each lone verb is 10 % of training: 6,897 / 8 = 862.
    assert {name: len(rows) for name, rows in inputs.items()} == {
        "train": 6897 + 2 * 862,
        "in_distribution": 363,
        "compositional": 5942,
        "test": 7706,
    }
    counts = Counter(inputs["train"])
    assert {command: n for command, n in counts.items() if {verb, "jump"} & set(command.split())} == {verb: 862, "jump": 862}
    assert all(verb in (words := command.split()) and "jump" not in words for command in inputs["compositional"])
    assert not any({verb, "jump"} & set(command.split()) for command in inputs["in_distribution"])
    together = set(inputs["test"]) | set(inputs["compositional"]) | set(inputs["in_distribution"]) | set(counts)
    assert together == {command for command, _ in scan.commands()}
    assert sum(len(set(rows)) for rows in inputs.values()) == len(together)
    assert [count["in_training"] for count in audit(members, about["disjoint"])] == [0, 0, 0]
    with_verb = sum(text.endswith(f"; {verb}/with") for text in members["test"]["category"])
    assert with_verb == sum(verb in command.split() for command in inputs["test"]) == 1764


def test_an_in_distribution_member_does_not_change_the_test_set():
    inputs, _, about = scan_members(held_out=0.05)
    published, _, before = scan_members()
    assert (about["in_distribution"], before["in_distribution"]) == ("in_distribution", "train")
    assert inputs["test"] == published["test"]
    assert len(inputs["in_distribution"]) == 660
    assert Counter(inputs["train"])["jump"] == round((13203 - 660) / 9)
    assert Counter(published["train"])["jump"] == 1467


def test_options_that_hold_out_commands_are_refused_in_setting_b():
    with pytest.raises(ValueError, match="validation_verb is for setting A"):
        scan_members(setting="B", validation_verb="look")


def digits_members(**options):
    sizes = {"train_pairs": 800, "test_pairs": 600}
    members, about = digits_concat.build(None, defaults("tasks.digits_concat") | sizes | options)
    combinations = {
        name: set(zip(member["label"], member["right_label"], strict=True)) for name, member in members.items()
    }  # by chance, 600 draws of at most 80 combinations leave some out
    images = {name: set(member["left_index"]) | set(member["right_index"]) for name, member in members.items()}
    return combinations, images, members, about


HELD = {(1, 2), (3, 4), (5, 6)}
TRAINED = {(digit, (digit + offset) % 10) for digit in range(10) for offset in (0, 1)}


def test_held_out_pairs_are_not_in_training():
    found, images, members, about = digits_members(evaluation_images="separate", validation_pairs=3)
    assert found["train"] == found["validation"] == TRAINED - HELD
    assert found["compositional"] == HELD
    assert not found["test"] & TRAINED
    assert not images["test"] & (images["validation"] | images["compositional"])
    assert all(count["in_training"] == 0 for count in audit(members, about["disjoint"]))


def test_a_validation_offset_does_not_change_training_and_leaves_the_test_set():
    found, images, members, about = digits_members(evaluation_images="separate", validation_offset=2)
    _, _, plain, _ = digits_members()
    assert members["train"].to_dict() == plain["train"].to_dict()
    assert found["compositional"] == {(digit, (digit + 2) % 10) for digit in range(10)}
    assert not found["test"] & (TRAINED | found["compositional"])
    assert not images["test"] & (images["validation"] | images["compositional"])
    assert all(count["in_training"] == 0 for count in audit(members, about["disjoint"]))


def test_separate_images_are_the_two_halves_of_every_class():
    _, images, members, _ = digits_members(evaluation_images="separate")
    assert set(members) == {"train", "validation", "test"}
    assert not images["test"] & images["validation"]
    _, shared, _, _ = digits_members()
    assert shared["test"] & shared["validation"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation_offset": 2}, "validation_offset needs setting A"),
        ({"validation_pairs": 1, "evaluation_images": "separate", "setting": "B"}, "validation_pairs needs setting A"),
        ({"validation_pairs": 1, "validation_offset": 2, "evaluation_images": "separate"}, "set one of them"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        digits_members(**options)
