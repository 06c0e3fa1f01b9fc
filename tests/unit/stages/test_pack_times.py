"""What a calibration measures."""

from __future__ import annotations

import copy

import pytest

from compositional.stages.shared import devices, pack_times


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pack_times, "SECONDS", 0.0)
    monkeypatch.setattr(devices, "resolve", lambda wanted: wanted)


def test_doubling_sizes_up_to_the_most_are_measured_and_nothing_is_changed(problem, monkeypatch):
    monkeypatch.setattr(pack_times, "GAIN", 1e9)
    case = problem("primitive_attention", "entropy")
    before = copy.deepcopy(case.settings)
    rows = list(pack_times.pack_times(case, 5, float("inf")))
    assert [runs for runs, _, _ in rows] == [1, 2, 4]
    assert all(milliseconds > 0 and megabytes > 0 for _, milliseconds, megabytes in rows)
    assert case.settings == before


def test_no_size_is_tried_that_would_need_more_memory_or_that_cannot_pay(problem, monkeypatch):
    case = problem("primitive_attention", None)
    assert [runs for runs, _, _ in pack_times.pack_times(case, 8, 1.0)] == [1]
    monkeypatch.setattr(pack_times, "GAIN", 0.0)  # no gain is large enough
    assert [runs for runs, _, _ in pack_times.pack_times(case, 16, float("inf"))] == [1, 2, 4]
