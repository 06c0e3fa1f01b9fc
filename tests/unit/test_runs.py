"""Runs, their paths, and grids of them."""

from __future__ import annotations

import pytest

from compositional.runs import Run, expand, format_lambda


def test_run_paths_round_trip_and_never_leave_the_results_folder():
    run = Run("scan_jump", "lstm_attention", "entropy", 1e-05, 3)
    assert run.path == "scan_jump/lstm_attention/entropy/lambda=1e-05/seed=3"
    assert Run.parse(run.path) == run
    assert Run.parse("a/b/c/lambda=1e+20/seed=0").path == "a/b/c/lambda=1e+20/seed=0"
    wrong = [f"a/b/c/lambda={text}/seed=0" for text in ("-1", "1-2", "1e", "1.2.3", "1e999", "inf")]
    for path in ("../x/a/lambda=1/seed=0", "a/b/c/lambda=1/seed=../0", *wrong):
        with pytest.raises(ValueError, match="is not"):
            Run.parse(path)
    assert [format_lambda(value) for value in (0, 0.1, 10.0, 0.30000000000000004)] == ["0", "0.1", "10", "0.3"]


def test_lambda_zero_is_one_run_shared_by_all_regularizers():
    grid = {"task": "t", "model": "m", "regularizers": {"a": [0, 1], "b": [0, 2]}, "seeds": [0]}
    assert [(run.regularizer, run.strength) for run in expand(grid)] == [("none", 0), ("a", 1), ("b", 2)]
