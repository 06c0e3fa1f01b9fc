"""Names without wildcards are matched as Snakemake matches them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from snakemake.io import IOFile

from compositional.planning import literals

NAMES = ["results/runs/scan_jump/lstm/none/0/0/run.json", "a+b/(c)|d", "results/x.y", "results/xzy", "ends\n"]


def outputs(name: str):
    """An output as Snakemake compiles it, and one that is compared."""
    rule = SimpleNamespace(has_wildcards=lambda: False, output=[IOFile(name)])
    literals.compare([rule])
    return IOFile(name), rule.output[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", [*NAMES, "results/x.y/z", "esults/x.y", ""])
def test_the_same_names_match(name, target):
    compiled, compared = outputs(name)
    assert compared.regex() is not compiled.regex()
    assert bool(compared.match(target)) == bool(compiled.match(target))
    assert bool(compared.match(IOFile(target))) == (name == target)


def test_a_match_has_no_wildcards():
    assert outputs("results/x.y")[1].match("results/x.y").groupdict() == {}


def test_rules_with_wildcards_are_left_alone():
    rule = SimpleNamespace(has_wildcards=lambda: True, output=[IOFile("results/tables/{figure}.csv")])
    literals.compare([rule])
    assert rule.output[0].match("results/tables/ablation.csv").groupdict() == {"figure": "ablation"}


def test_snakemake_keeps_the_expression_of_an_output():
    assert IOFile("results/x.y")._regex is None
