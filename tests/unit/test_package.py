"""The map of the package, in its docstring, is complete."""

from __future__ import annotations

import re

from support.configurations import ROOT

import compositional


def test_every_module_is_on_the_map():
    """The map is the docstring of the package."""
    words = set(re.findall(r"\w+", compositional.__doc__))
    assert {path.stem for path in (ROOT / "src/compositional").iterdir() if path.name[0] not in "._"} <= words


def test_the_version_is_the_same_everywhere():
    """It must equal the first version in the changelog."""
    named = {
        "CHANGELOG.md": r"^## (\S+)",
        "pyproject.toml": r'^version = "(.*)"',
        "CITATION.cff": r"^version: (.*)",
    }
    found = {name: re.search(pattern, (ROOT / name).read_text(), re.MULTILINE).group(1) for name, pattern in named.items()}
    assert {*found.values()} == {found["CHANGELOG.md"]}
