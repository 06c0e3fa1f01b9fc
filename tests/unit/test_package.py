"""The map of the package, in its docstring, is whole."""

from __future__ import annotations

import re

from support.configurations import ROOT

import compositional


def test_every_module_is_on_the_map():
    """In the docstring of the package."""
    words = set(re.findall(r"\w+", compositional.__doc__))
    assert {path.stem for path in (ROOT / "src/compositional").iterdir() if path.name[0] not in "._"} <= words
