"""Compiled functions and their cache."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np

SOURCE = """
from compositional.layers.compiled import compiled

@compiled
def fill(values):
    for place in range(values.shape[0]):
        values[place] = {}
"""


def filled(path):
    """What the function in this file writes."""
    spec = spec_from_file_location("example", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    values = np.zeros(3)
    module.fill(values)
    return values.tolist()


def test_an_edit_that_keeps_a_file_s_time_and_size_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "example.py"
    for number in (1, 2):
        path.write_text(SOURCE.format(number))
        os.utime(path, (10**9, 10**9))
        assert filled(path) == [number] * 3
    assert len([*tmp_path.rglob("*.nbi")]) == 2
