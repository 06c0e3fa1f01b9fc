"""Whoever edits code that tests/mutations.py changes finds out at once."""

from __future__ import annotations

import mutations
import pytest
from support.project import ROOT


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_the_text_that_is_changed_is_there_once_and_so_are_the_tests(name):
    file, text, instead, test = mutations.MUTATIONS[name]
    assert (ROOT / mutations.LIBRARY / file).read_text(encoding="utf-8").count(text) == 1
    assert text != instead
    path, _, function = test.partition("::")
    assert (ROOT / path).is_file()
    assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")
