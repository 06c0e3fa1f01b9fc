"""SCAN's template and filler splits, compared with the counts of the published files."""

from __future__ import annotations

from functools import cache

import pytest

from compositional.datasets import scan
from compositional.plugins import defaults
from compositional.stages.split import audit
from compositional.tasks import scan_fillers, scan_templates


@cache
def fillers(**options):
    members, about = scan_fillers.build(None, defaults("tasks.scan_fillers") | options)
    assert audit(members, about["disjoint"])[0]["in_training"] == 0
    return set(members["train"]["input"][:]), members["test"]["input"][:], about["references"]


@pytest.mark.parametrize("template", ["right", "opposite right", "around right"])
def test_a_template_is_in_every_test_command_and_with_no_verb_in_training(template):
    members, about = scan_templates.build(None, {"template": template})
    train, test = members["train"]["input"][:], members["test"]["input"][:]
    assert (len(train), len(test), audit(members, about["disjoint"])[0]["in_training"]) == (15225, 4476, 0)
    phrases = [f"{verb} {template}" for verb in ("walk", "look", "run", "jump", "turn")]
    assert not any(phrase in command for command in train for phrase in phrases)
    assert all(any(phrase in command for phrase in phrases[:-1]) for command in test)
    dropped = {command for command, _ in scan.commands()} - set(train) - set(test)
    assert len(dropped) == 1209
    assert all(f"turn {template}" in command for command in dropped)


# Lines of tasks_train_filler_num<verbs>.txt; "add" counts the commands that each further verb adds.
@pytest.mark.parametrize(("verbs", "lines", "added"), [(0, 15225, 0), (1, 16290, 1065), (2, 17391, 1101), (3, 18528, 1137)])
def test_each_further_verb_adds_the_published_commands(verbs, lines, added):
    train, test, references = fillers(verbs=verbs)
    assert len(train) == lines
    assert (len(test), all("jump around right" in command for command in test)) == (1173, True)
    assert references == {"composed commands": lines - 15225, "draw": 0, "verbs shown": verbs}
    if verbs:
        before, same, _ = fillers(verbs=verbs - 1)
        new = ("look", "walk", "run")[verbs - 1]
        assert before < train
        assert len(train - before) == added
        assert all(f"{new} around right" in command for command in train - before)
        assert same == test


def test_few_commands_are_nested_and_come_from_one_verb():
    none, few, many, every = (fillers(commands=count)[0] for count in (0, 4, 64, None))
    assert none == fillers(verbs=0)[0]
    assert none < few < many < every
    assert [len(shown - none) for shown in (few, many, every)] == [4, 64, 1065]
    assert fillers(commands=4, draw=1)[0] != few
    assert fillers(commands=4)[2] == {"composed commands": 4, "draw": 0, "verbs shown": 1}


def test_more_commands_than_there_are_are_refused():
    with pytest.raises(
        ValueError, match='commands=1066, but with verbs=1 only 1065 commands have "around right"; ask for at most'
    ):
        fillers(commands=1066)
