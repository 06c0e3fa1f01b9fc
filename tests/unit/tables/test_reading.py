"""Tables are read as they were written, even if pandas gives their names a special meaning."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import pytest
from support.project import ROOT

from compositional import files
from compositional.archive.comparison import compare_tables
from compositional.records import integrity, provenance
from compositional.runs import Run
from compositional.stages.aggregate import aggregate
from compositional.tables.shared.reading import TEXTS, read_table

NAMES = ["null", "nan", "na", "none", "inf", "true"]


@pytest.mark.parametrize("name", [*NAMES, "NA", "NULL", "N/A", "#N/A", "None", "007", "1e5", " a ", "é"])
def test_a_name_or_word_stays_what_it_is(tmp_path, name):
    path = tmp_path / "table.csv"
    files.write_csv(path, [*TEXTS, "value"], [[name] * len(TEXTS) + [0.1], ["other"] * len(TEXTS) + ["nan"]])
    table = read_table(path)
    assert [table[column][0] for column in TEXTS] == [name] * len(TEXTS)
    assert table.value.isna().tolist() == [False, True]
    assert table.value.dtype == float


@pytest.mark.parametrize("name", NAMES)
def test_runs_with_special_names_are_compared_row_by_row(tmp_path, name):
    """This covers the path from their folders to the comparison of an archive."""
    sources = []
    for seed in (0, 1):
        run = Run(name, name, name, 0.1, seed)
        sources.append(tmp_path / "runs" / run.path / "metrics.csv")
        files.write_csv(sources[-1], ["split", "metric", "value"], [[name, "accuracy", 0.5 + seed / 10], ["test", "loss", "nan"]])
    aggregate(sources, tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    assert {*table.task, *table.model, *table.regularizer} == {name}
    agrees, detail = compare_tables(table, table, exact=True)
    assert agrees
    assert detail == "4 numbers are equal"


def test_files_that_were_altered_or_have_other_columns_make_no_table(tmp_path):
    folder = tmp_path / "runs" / Run("t", "m", "none", 0.0, 0).path
    metrics, history = folder / "metrics.csv", folder / "history.csv"
    files.write_csv(metrics, ["split", "metric", "value"], [["test", "accuracy", 0.5]])
    files.write_csv(history, ["step", "split", "metric", "value"], [[1, "test", "loss", 0.5]])
    with pytest.raises(ValueError, match=r"the columns differ: of metrics\.csv: .*; of history\.csv: .*SOURCE must not mix"):
        aggregate([metrics, history], tmp_path / "table.csv")
    provenance.write(folder / "evaluation.json", {"inputs": {}}, {}, [metrics])
    metrics.write_text("split,metric,value\ntest,accuracy,1\n")
    with pytest.raises(integrity.DamagedFileError, match=r"metrics\.csv was altered or damaged"):
        aggregate([metrics], tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "reference").glob("*.csv")), ids=lambda path: path.stem)
def test_reference_tables_read_as_pandas_reads_them(path):
    pd.testing.assert_frame_equal(read_table(path), pd.read_csv(path), check_exact=True)


def test_only_one_function_reads_tables():
    readers = {
        path.relative_to(ROOT).as_posix()
        for place in ("src", "docs", "workflow")
        for path in Path(ROOT / place).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pd.read_csv"
    }
    assert readers == {"src/compositional/tables/shared/reading.py"}
