"""Code that is edited while a kernel runs is not silently ignored."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import compositional
from compositional.notebook import imported


def test_an_edited_module_is_refused_until_the_kernel_is_restarted(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("a = 1")
    monkeypatch.setitem(sys.modules, "compositional.mine", SimpleNamespace(__file__=str(path)))
    monkeypatch.setattr(imported, "_known", {})
    imported.check()
    imported.check()
    path.write_text("a = 2")
    with pytest.raises(RuntimeError, match=f"{path}: changed after this process imported it. Restart the kernel"):
        imported.check()


@pytest.mark.parametrize("strength", ["0.1", True, None])
def test_a_lambda_that_is_no_number_is_refused(strength):
    with pytest.raises(TypeError, match="strength must be a number of Python"):
        compositional.train("digits_concat", "cnn", "entropy", strength=strength)


@pytest.mark.parametrize("overlays", ["mine.yaml", {"device": "cpu"}, None])
def test_an_overlay_that_is_in_no_list_is_refused(overlays):
    with pytest.raises(TypeError, match="overlays must be a list of files and dictionaries, such as"):
        compositional.train("digits_concat", "cnn", overlays=overlays)
