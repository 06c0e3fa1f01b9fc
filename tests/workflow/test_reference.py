"""The reference results in the repository: a part of them is rebuilt at full laptop scale and agrees."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.configurations import STUDIES, read
from support.project import Project, call

from compositional.archive import comparison
from compositional.configuration.configuration import Configuration
from compositional.files import sha256
from compositional.records import provenance
from compositional.runs import Run, figure_runs
from compositional.stages.aggregate import aggregate

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "reference"
RUNS = [Run("digits_concat", "cnn", "none", 0.0, 0), Run("digits_concat", "cnn", "entropy", 10.0, 0)]
KEYS = ["task", "model", "regularizer", "lambda", "seed"]


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.csv")), ids=lambda path: path.stem)
def test_a_reference_is_complete_and_records_its_origin(path):
    record = provenance.read(path.with_suffix(".provenance.json"))
    assert record["files"] == {path.name: sha256(path)}
    assert len(record["source"]["commit"]) == 40
    assert record["source"]["dirty"] is False
    table = pd.read_csv(path)
    configured = set(figure_runs(Configuration(read("config.yaml", *STUDIES)).figures[path.stem]))
    assert {Run(*key) for key in table[KEYS].itertuples(index=False)} == configured


@pytest.mark.workflow
def test_a_part_of_the_reference_rebuilt_agrees(tmp_path):
    Project(tmp_path)
    sources = [f"results/runs/{run.path}/metrics.csv" for run in RUNS]
    done = call(["--cores", "2", *sources, "--config", "device=cpu"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    aggregate([tmp_path / name for name in sources], tmp_path / "table.csv")
    rebuilt, reference = pd.read_csv(tmp_path / "table.csv"), pd.read_csv(REFERENCE / "ablation.csv")
    # The tolerance is that of the complete table; runs that were not rebuilt are taken from the reference.
    rest = reference.merge(rebuilt[KEYS].drop_duplicates(), how="left", indicator=True)
    whole = pd.concat([rebuilt, reference[(rest._merge == "left_only").to_numpy()]])
    assert len(whole) == len(reference)
    agrees, detail = comparison.compare_tables(reference, whole, exact=False)
    assert agrees, detail
