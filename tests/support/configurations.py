"""The shipped configuration, merged like Snakemake merges it, with changes."""

from __future__ import annotations

from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from compositional.configuration import files
from compositional.configuration.configuration import Configuration, ConfigurationError

ROOT = Path(__file__).parents[2]


def merged(*overlays: dict) -> dict:
    """Configurations merged into a new one."""
    return reduce(files.merged, overlays, {})


@cache
def _file(name: str) -> dict:
    return yaml.safe_load((ROOT / "config" / name).read_text())


def read(*names: str) -> dict:
    """Files of config/, merged. The caller may change the result."""
    return merged(*map(_file, names))


PAPER = ["paper.yaml", *(f"paper/{path.name}" for path in sorted((ROOT / "config" / "paper").glob("*.yaml")))]
STUDIES = [f"studies/{path.name}" for path in sorted((ROOT / "config" / "studies").glob("*.yaml"))]


def change(config: dict, path: list, value: Any) -> dict:
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return config


def refusal(path: list, value: Any) -> str:
    """The error message for the shipped configuration with one value changed, which must be invalid."""
    with pytest.raises(ConfigurationError) as caught:
        Configuration(change(read("config.yaml", *STUDIES), path, value))
    return str(caught.value)
