"""SCAN jump with a few composed commands in training, compared with the counts of the published files."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from compositional.plugins import defaults
from compositional.tasks import scan_exposure, scan_jump

# In tasks_train_addprim_complex_jump_num<commands>_rep<1 to 5>.txt: copies of each command of jump, and lines.
PUBLISHED = {1: (734, 14671), 2: (489, 14670), 4: (293, 14668), 8: (163, 14670), 16: (86, 14665), 32: (44, 14655)}


@cache
def build(**options):
    members, about = scan_exposure.build(None, defaults("tasks.scan_exposure") | options)
    return Counter(members["train"]["input"][:]), members["test"]["input"][:], about["references"]


def jumps(counts: Counter) -> dict[str, int]:
    return {command: count for command, count in counts.items() if "jump" in command.split()}


@pytest.mark.parametrize("commands", PUBLISHED)
def test_every_number_of_commands_has_the_published_copies_and_lines(commands):
    counts, _, _ = build(commands=commands)
    copies, lines = PUBLISHED[commands]
    shown = jumps(counts)
    assert set(shown.values()) == {copies}
    assert (len(shown), shown["jump"], counts.total()) == (commands + 1, copies, lines)


def test_without_composed_commands_training_is_the_published_split():
    members, _ = scan_jump.build(None, defaults("tasks.scan_jump"))
    assert build()[0] == Counter(members["train"]["input"][:])


def test_training_sets_of_a_draw_are_nested_and_disjoint_from_their_common_test_set():
    few, test, _ = build(commands=8)
    many, same, _ = build(commands=32)
    assert set(jumps(few)) < set(jumps(many))
    assert test == same
    assert len(set(test)) == 7706 - 32
    assert not set(test) & set(many)
    other, elsewhere, _ = build(commands=32, draw=1)
    assert set(jumps(other)) != set(jumps(many))
    assert set(elsewhere) != set(test)


def test_the_entropy_of_the_verb_is_that_of_the_published_files():
    # Without jump, three verbs are equally frequent. The published files have 1.747, 1.829 and 1.835 bits for 1, 4 and 32
    # commands; draws differ.
    assert build()[2]["bits of the verb"] == pytest.approx(1.584963, abs=1e-6)
    for commands, bits in ((1, 1.747), (4, 1.829), (32, 1.835)):
        drawn = [build(commands=commands, draw=draw)[2]["bits of the verb"] for draw in range(5)]
        assert min(drawn) - 0.02 < bits < max(drawn) + 0.02
    assert build(commands=32, weight="once")[2]["bits of the verb"] == pytest.approx(1.600, abs=0.001)


def test_once_writes_every_composed_command_once():
    shown = jumps(build(commands=8, weight="once")[0])
    assert shown.pop("jump") == 1467
    assert list(shown.values()) == [1] * 8


@pytest.mark.parametrize(("commands", "rows"), [(1, 16), (16, 16), (64, 256), (256, 1024)])
def test_rows_and_different_commands_vary_separately(commands, rows):
    counts, test, references = build(commands=commands, rows=rows, untested=256)
    shown = jumps(counts)
    assert (counts.total(), shown.pop("jump"), len(shown), set(shown.values())) == (
        14670,
        1467 - rows,
        commands,
        {rows // commands},
    )
    assert (references["composed commands"], references["rows of composed commands"]) == (commands, rows)
    assert len(set(test)) == 7706 - 256
    assert not set(test) & set(counts)


def test_the_entropy_depends_on_the_rows_more_than_on_the_commands():
    few, many = (
        {count: build(commands=count, rows=rows, untested=256)[2]["bits of the verb"] for count in (1, 64)} for rows in (64, 1024)
    )
    assert max(few.values()) - min(few.values()) < 0.01
    assert max(many.values()) - min(many.values()) < 0.02
    assert min(many.values()) - max(few.values()) > 0.15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commands": 33}, "commands=33 is more than untested=32; use untested: 256"),
        ({"commands": 3, "rows": 16}, "rows=16 is no multiple of commands=3"),
        ({"rows": 16}, "rows=16 is no multiple of commands=0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
