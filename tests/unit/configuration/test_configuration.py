"""A configuration is checked as a whole, and runs that are asked for by their path."""

from __future__ import annotations

import json
from collections import OrderedDict

import pytest
import yaml
from support.configurations import SCHEMA, STUDIES, merged, read, refusal

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.runs import Run, figure_runs


@pytest.mark.parametrize("overlay", [[], ["paper.yaml"]])
def test_shipped_configurations_are_valid(overlay):
    figures = Configuration(read("config.yaml", *STUDIES, *overlay), SCHEMA).figures
    assert all(figure_runs(figure) or figure["sources"] == ["split"] for figure in figures.values())


def test_pack_sizes_are_of_known_tasks():
    assert "pack_size: unknown task 'scan_jmp'; did you mean 'scan_jump'?" in refusal(
        ["pack_size"], {"default": 4, "scan_jmp": 8}
    )


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run("scan_jump", "cnn", "none", 0, 0), "is for image tasks"),
        (Run("scan_jump", "lstm_attention", "entropy", 0, 0), "if and only if"),
        (Run("scan_jump", "lstm_attention", "none", 1, 0), "if and only if"),
        (Run("scan_jum", "lstm_attention", "none", 0, 0), "did you mean 'scan_jump'"),
    ],
)
def test_runs_asked_for_by_path_are_checked(run, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Configuration(read("config.yaml", *STUDIES), SCHEMA).check_run(run)


@pytest.mark.parametrize("overlay", [[], ["paper.yaml"]])
def test_a_portable_configuration_laid_over_the_shipped_one_is_itself(overlay):
    """As in an archive, where it is the overlay of a rebuild."""
    asked = Configuration(read("config.yaml", *STUDIES, *overlay), SCHEMA)
    again = Configuration(merged(read("config.yaml", *STUDIES), json.loads(json.dumps(asked.portable))), SCHEMA)
    assert again.config == asked.config | {"mirror": None}


def test_a_configuration_from_json_is_as_plain_as_one_from_yaml():
    asked = read("config.yaml", *STUDIES)
    ordered = json.loads(json.dumps(asked), object_pairs_hook=OrderedDict)
    found = Configuration(ordered, SCHEMA)
    assert yaml.safe_load(yaml.safe_dump(found.portable)) == Configuration(asked, SCHEMA).portable
    assert type(found.figures["ablation"]["grids"][0]) is dict
