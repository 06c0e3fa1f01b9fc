"""One source of versions: the conda file has the lock's pins, and each lock has what its list asks for."""

from __future__ import annotations

import runpy
from importlib import metadata
from pathlib import Path

import pytest

from compositional.plugins import available, declarations

ENVS = Path(__file__).parents[2] / "envs"


def pins(name: str) -> dict[str, str]:
    lines = [line.strip() for line in (ENVS / name).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {package.lower().replace("_", "-"): version for package, version in (line.split("==") for line in lines)}


def test_conda_file_has_the_same_pins():
    assert (ENVS / "environment.yaml").read_text() == runpy.run_path(str(ENVS / "lock.py"))["environment"]()


@pytest.mark.parametrize("name", ["requirements", "development"])
def test_the_lock_holds_what_was_asked_for_and_is_what_is_installed(name):
    asked, locked = pins(f"{name}.in"), pins(f"{name}.txt")
    assert asked.items() <= locked.items()
    installed = {package: metadata.version(package).split("+")[0] for package in asked}
    assert installed == asked


def test_tools_for_development_are_not_in_the_user_s_environment():
    assert not pins("development.txt").keys() & pins("requirements.txt").keys()


def test_what_single_models_need_goes_with_the_environment():
    asked, locked = pins("optional.in"), pins("optional.txt")
    assert asked.items() <= locked.items()
    assert not locked.keys() & pins("requirements.txt").keys()
    tools = pins("development.txt")
    assert {name: tools[name] for name in locked.keys() & tools} == {name: locked[name] for name in locked.keys() & tools}
    assert {name for model in available("models") for name in declarations(f"models.{model}").get("PACKAGES", ())} == set(asked)
