"""One source of versions: the conda file has the lock's pins, and the lock has what requirements.in asks for."""

from __future__ import annotations

import runpy
from importlib import metadata
from pathlib import Path

ENVS = Path(__file__).parents[2] / "envs"


def pins(name: str) -> dict[str, str]:
    lines = [line.strip() for line in (ENVS / name).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {package.lower().replace("_", "-"): version for package, version in (line.split("==") for line in lines)}


def test_conda_file_has_the_same_pins():
    assert (ENVS / "environment.yaml").read_text() == runpy.run_path(str(ENVS / "lock.py"))["environment"]()


def test_the_lock_holds_what_was_asked_for_and_is_what_is_installed():
    asked, locked = pins("requirements.in"), pins("requirements.txt")
    assert asked.items() <= locked.items()
    installed = {name: metadata.version(name).split("+")[0] for name in asked}
    assert installed == asked
