"""Tolerances are derived from the spread of seeds; they are wide enough for a faithful rebuild and no wider."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compositional.archive import comparison

KEYS = ["task", "model", "regularizer", "lambda", "split", "metric"]


def table(source: np.random.Generator, spread: float = 0.1, seeds: int = 5) -> pd.DataFrame:
    """Accuracies of two regularizers at three lambdas, each around a different mean."""
    rows = [
        ("t", "m", regularizer, strength, seed, "test", "accuracy", strength + spread * source.standard_normal())
        for regularizer in ("a", "b")
        for strength in (0.1, 1.0, 10.0)
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=[*KEYS[:4], "seed", *KEYS[4:], "value"])


def test_tolerances_equal_hand_computed_values():
    # Cells (1, 3) and (2, 2, 2): variances 2 (1 degree of freedom) and 0 (2 degrees), pooled (1 * 2 + 2 * 0) / 3.
    rows = [("t", "m", "a", 1.0, seed, "test", "loss", value) for seed, value in enumerate((1.0, 3.0))]
    rows += [("t", "m", "a", 2.0, seed, "test", "loss", 2.0) for seed in range(3)]
    frame = pd.DataFrame(rows, columns=[*KEYS[:4], "seed", *KEYS[4:], "value"])
    single, mean = comparison.tolerances(frame, ["value"], KEYS, numbers=7)
    quantile = stats.t.ppf(1 - 0.01 / 14, 3)
    assert single.tolist() == pytest.approx([quantile * 2] * 2 + [quantile * np.sqrt(2 / 3 * 2)] * 3)
    assert mean.tolist() == pytest.approx([quantile * np.sqrt(2)] * 2 + [quantile * np.sqrt(2 / 3 * 2 / 3)] * 3)


def test_without_spread_only_rounding_is_tolerated():
    frame = table(np.random.default_rng(0), seeds=1)
    assert comparison.compare_tables(frame, frame.assign(value=frame.value * (1 + 5e-6)), exact=False)[0]
    assert not comparison.compare_tables(frame, frame.assign(value=frame.value * (1 + 5e-5)), exact=False)[0]


def test_a_faithful_rebuild_hardly_ever_fails_and_a_shift_does():
    source = np.random.default_rng(1)
    drawn = [comparison.compare_tables(table(source), table(source), exact=False)[0] for _ in range(100)]
    assert sum(drawn) >= 97  # the level promises 99 of 100
    for _ in range(20):
        one, two = table(source), table(source)
        shifted = two.assign(value=two.value.where((two.regularizer != "b") | (two["lambda"] != 1), two.value + 0.5))
        agrees, detail = comparison.compare_tables(one, shifted, exact=False)
        assert not agrees
        assert "regularizer b, lambda 1.0" in detail


def test_lost_runs_other_columns_and_divergence_never_agree():
    frame = table(np.random.default_rng(2))
    assert "1 rows are missing" in comparison.compare_tables(frame, frame.drop(index=3), exact=False)[1]
    assert "1 rows are not in the archived" in comparison.compare_tables(frame.drop(index=3), frame, exact=False)[1]
    assert "columns" in comparison.compare_tables(frame, frame.rename(columns={"split": "part"}), exact=False)[1]
    diverged = frame.assign(value=frame.value.where(frame.index != 3))
    for exact in (True, False):
        assert not comparison.compare_tables(frame, diverged, exact)[0]
        assert comparison.compare_tables(diverged, diverged, exact)[0]


def test_numbers_must_be_equal_if_equal_bytes_are_promised():
    frame = table(np.random.default_rng(3))
    agrees, detail = comparison.compare_tables(frame, frame.assign(value=frame.value + 1e-12 * (frame.index == 7)), exact=True)
    assert not agrees
    assert detail.startswith("1 of 30 numbers, such as task t, model m, regularizer a, lambda 1.0")


def test_two_tables_can_be_compared_from_the_command_line(tmp_path, monkeypatch, capsys):
    paths = [tmp_path / name for name in ("kept.csv", "same.csv", "near.csv", "far.csv")]
    for path, change in zip(paths, (0, 0, 1e-9, 0.5), strict=True):
        path.write_text(f"task,seed,metric,value\na,0,accuracy,{0.25 + change}\na,1,accuracy,0.25\n")
    expected = {"same.csv": ("1 of 1 to the byte.", 0), "near.csv": ("0 of 1 to the byte, the rest", 0), "far.csv": ("NOT", 1)}
    for path in paths[1:]:
        monkeypatch.setattr("sys.argv", ["comparison", str(paths[0]), str(path)])
        text, status = expected[path.name]
        assert comparison.main() == status
        assert text in capsys.readouterr().out


def test_records_that_cannot_be_compared_end_with_a_message(tmp_path, monkeypatch, capsys):
    """For example records from a stranger, which can contain anything."""
    (tmp_path / "archived").mkdir()
    monkeypatch.setattr("sys.argv", ["comparison", str(tmp_path)])
    for manifest in ("{}", "[]", "nonsense", "3"):
        (tmp_path / "archived/manifest.json").write_text(manifest)
        assert comparison.main() == 2
        assert "cannot be compared" in capsys.readouterr().err
    for missing in (["folder"], ["a.csv", "b.csv"]):
        monkeypatch.setattr("sys.argv", ["comparison", *(str(tmp_path / name) for name in missing)])
        assert comparison.main() == 2
        assert "cannot be compared (FileNotFoundError" in capsys.readouterr().err


def test_tables_with_several_columns_of_numbers():
    frame = table(np.random.default_rng(4)).rename(columns={"value": "mean"}).assign(width=1.5)
    assert comparison.compare_tables(frame, frame, exact=False)[0]
    assert not comparison.compare_tables(frame, frame.assign(width=1.6), exact=False)[0]
