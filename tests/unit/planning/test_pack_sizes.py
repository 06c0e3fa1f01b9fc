"""The number of runs in a pack: the choice, whose measurements it uses, and what may limit it."""

from __future__ import annotations

import pytest
from support.configurations import STUDIES, merged, read

from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.files import write_csv
from compositional.planning import pack_sizes
from compositional.planning.pack_sizes import COLUMNS, OWN, PackSizes, chosen

FAMILY = ("scan_jump_b", "lstm_attention_annealed", "entropy")  # a variant: its task is in the module scan_jump


def sizes(results, **change):
    return PackSizes(Configuration(merged(read("config.yaml", *STUDIES), change)), results).of


def rows(*times, task="scan_jump", model="lstm_attention_annealed", regularizer="entropy", machine=None):
    """times: milliseconds for one run, two runs, four runs, ... at 100 megabytes a run."""
    where = [machine or pack_sizes.machine(), task, model, regularizer]
    return [[*where, 2**power, own, 100 * 2**power] for power, own in enumerate(times)]


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Writes the rows of the shipped table."""
    monkeypatch.setattr(pack_sizes, "SHIPPED", tmp_path / "shipped.csv")
    monkeypatch.setattr(pack_sizes, "room", lambda: 10000.0)
    return lambda *parts: write_csv(tmp_path / "shipped.csv", COLUMNS, [row for part in parts for row in part])


@pytest.mark.parametrize(
    ("times", "memory", "expected"),
    [
        ({1: (30, 100), 2: (25, 200), 4: (20, 400), 8: (24, 800)}, 1000, 8),  # 24 <= 1.2 x 20
        ({1: (30, 100), 2: (25, 200), 4: (20, 400), 8: (24.1, 800)}, 1000, 4),
        ({1: (30, 100), 2: (25, 200), 4: (20, 400), 8: (15, 800)}, 799, 4),  # 8 need too much memory
        ({1: (30, 100), 2: (25, 200), 4: (20, 400), 8: (15, 800)}, 399, 2),
        ({1: (60, 500), 2: (73, 700)}, 1000, 1),  # more runs are slower
        ({2: (66, 700), 1: (60, 500)}, 400, 1),  # not even one fits: nothing better is known
    ],
)
def test_the_largest_pack_that_is_about_as_fast_as_the_fastest_and_fits_is_chosen(times, memory, expected):
    assert chosen(times, memory) == expected


def test_own_measurements_precede_the_shipped_ones_and_those_of_another_machine_are_ignored(tmp_path, shipped):
    shipped(rows(40, 20, machine="the machine of the table"))
    assert sizes(tmp_path)(FAMILY) == 2
    write_csv(tmp_path / OWN, COLUMNS, rows(40, 20, 15, machine=f"{pack_sizes.processor()}, 4096 cores"))
    assert sizes(tmp_path)(FAMILY) == 2
    write_csv(tmp_path / OWN, COLUMNS, rows(40, 20, 15) + rows(40, machine="another"))
    assert sizes(tmp_path)(FAMILY) == 4
    assert sizes(tmp_path)((*FAMILY[:2], "recombination")) == 2  # not measured here


def test_the_configured_number_is_never_exceeded_and_is_used_if_nothing_similar_was_measured(tmp_path, shipped):
    shipped(rows(40, 20, 15, 10))
    most = {"cpu": {"default": 3, "scan_jump": 3, "scan_jump_b": 5}}
    assert sizes(tmp_path, pack_size=most)(FAMILY) == 5
    assert sizes(tmp_path, pack_size=most)(("scan_jump", *FAMILY[1:])) == 3
    assert sizes(tmp_path)(("digits_concat", "cnn", "entropy")) == 30


def test_numbers_for_cuda_are_the_configured_ones(tmp_path, shipped):
    shipped(rows(40, 20))
    write_csv(tmp_path / OWN, COLUMNS, rows(40, 20))
    assert sizes(tmp_path, device="cuda", pack_size={"cuda": {"scan_jump_b": 7}})(FAMILY) == 7


def test_without_own_measurements_the_most_similar_shipped_family_counts(tmp_path, shipped):
    shipped(
        rows(40, 30, 20, task="scan_length"),
        rows(40, 20, task="scan_length", regularizer="none"),
        rows(40, task="scan_jump", model="lstm_attention"),
        rows(40, 20, 10, 5, task="scan_jump", model="transformer_small"),
    )
    assert sizes(tmp_path)(FAMILY) == 4  # the same model precedes the same task, the same term decides
    assert sizes(tmp_path)((*FAMILY[:2], "recombination")) == 2  # of two that are equally similar, the smaller size
    assert sizes(tmp_path)(("scan_length", "lstm_attention", "none")) == 1


@pytest.mark.parametrize("content", ["machine\nhere,scan_jump\n", f"head\n{','.join('abcd')},two,1,1\n"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / OWN).write_text(content)
    if "two" in content:
        (tmp_path / OWN).write_text(content.replace("a,b", f'"{pack_sizes.machine()}",b'))
    with pytest.raises(ConfigurationError, match=r"pack_sizes\.csv: .*Delete it; make calibrate measures again"):
        sizes(tmp_path)


def test_what_is_measured_replaces_only_the_same_family_on_the_same_machine(tmp_path, shipped):
    others = rows(40, machine="another, of 2 cores") + rows(30, task="scan_length")
    write_csv(tmp_path / OWN, COLUMNS, others + rows(40, 50))
    pack_sizes.keep(tmp_path / OWN, ("scan_jump", *FAMILY[1:]), [(1, "40", "100"), (2, "20", "200")])
    write_csv(tmp_path / "expected.csv", COLUMNS, others + rows(40, 20))
    assert (tmp_path / OWN).read_bytes() == (tmp_path / "expected.csv").read_bytes()
    pack_sizes.keep(tmp_path / "new.csv", FAMILY, [(1, "40", "100")])
    assert pack_sizes.read(tmp_path / "new.csv", own=True) == {FAMILY: {1: (40.0, 100.0)}}


def test_no_file_is_made_by_a_look(tmp_path):
    sizes(tmp_path)(FAMILY)
    assert not list(tmp_path.iterdir())
