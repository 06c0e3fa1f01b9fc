"""tests/mutations.py names text and tests that exist, so an edit of that code is noticed."""

from __future__ import annotations

import mutations
import pytest
from support.project import ROOT


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_the_text_to_change_occurs_once_and_the_named_tests_exist(name):
    file, text, instead, test = mutations.MUTATIONS[name]
    assert (ROOT / mutations.LIBRARY / file).read_text(encoding="utf-8").count(text) == 1
    assert text != instead
    path, _, function = test.partition("::")
    assert (ROOT / path).is_file()
    assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_a_name_of_no_change_is_refused_before_any_test_runs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["mutations.py", "--help"])
    monkeypatch.setattr(mutations, "tested", lambda *_: pytest.fail("tests would run"))
    with pytest.raises(SystemExit, match=r"no change has '--help' in its name: docs/testing\.md lists all names"):
        mutations.main()
