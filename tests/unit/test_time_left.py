"""The check of the estimated time left reads the output of a build."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compositional.planning.costs import words

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import time_left


def test_estimated_times_are_compared_with_actual_times():
    lines = [
        (1.0, "[10:00:00] Training 8 runs of a\n"),
        (30.0, f"0 % done (0 of 9 jobs), about {words(600)} left\n"),
        (61.0, f"12 % done (1 of 9 jobs, 1 failed), about {words(40)} left\n"),
        (90.0, "9 of 9 jobs done in 2 min\n"),
        (111.0, ""),
    ]
    found = list(time_left.said(lines))
    assert found == [(30.0, 600.0), (61.0, 40.0)]
    (_, _, truth, error), (_, _, _, after) = time_left.wrong(found, 111.0)
    assert truth == 81.0
    assert error == pytest.approx(600 / 81 - 1)
    assert after == pytest.approx(-0.2)
