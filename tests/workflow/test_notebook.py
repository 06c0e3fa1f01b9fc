"""A run trained from Python equals the workflow's to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from support.project import ROOT, RUN, Project

import compositional
from compositional.configuration.configuration import ConfigurationError
from compositional.notebook import trained

pytestmark = pytest.mark.workflow
TINY = ROOT / "tests" / "support" / "tiny.yaml"
SENTENCES = "results/runs/scan_jump/primitive_attention/entropy/lambda=0.1/seed=0"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("notebook"))
    project.snakemake(f"{RUN}/metrics.csv", f"{SENTENCES}/metrics.csv")
    return project


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("path", "model"), [(RUN, "cnn"), (SENTENCES, "primitive_attention")])
def test_a_run_trained_in_a_notebook_equals_the_workflows(project, tmp_path, path, model, elsewhere):
    """This also holds if the workflow has not made the split."""
    theirs = compositional.open(project.folder / path)
    results = tmp_path / "results" if elsewhere else project.folder / "results"
    task = theirs.run.task
    ours = compositional.train(task, model, "entropy", 0.1, 0, overlays=[TINY], results=results)
    assert repr(ours) == repr(theirs)
    assert ours.weights.keys() == theirs.weights.keys()
    assert all(torch.equal(ours.weights[name], theirs.weights[name]) for name in ours.weights)
    pd.testing.assert_frame_equal(ours.history, theirs.history, check_exact=True, check_dtype=False)
    shared = theirs.metrics.merge(ours.metrics, on=["split", "metric"])
    assert len(shared) == len(ours.metrics) > 0
    assert np.array_equal(shared.value_x.astype(float), shared.value_y)
    assert ours.metric("accuracy", "test") == theirs.metric("accuracy", "test")
    if theirs.predictions is not None:
        pairs = [
            frame.sort_values("input")[["input", "prediction"]].values.tolist()
            for frame in (ours.predictions, theirs.predictions)
        ]
        assert pairs[0] == pairs[1]


TRAIN = """
import sys
sys.settrace(lambda *event: None)  # as tools that measure coverage do
import compositional
run = compositional.train("scan_jump", "primitive_attention", "entropy", 0.1, overlays=sys.argv[1:2], results=sys.argv[2])
run.history.to_csv(sys.stdout, index=False)
"""


def test_debugging_tools_do_not_change_runs(project):
    """The tools are NUMBA_DISABLE_JIT, which is used to debug compiled functions, and a trace of every call."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", TRAIN, TINY, project.folder / "results"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (project.folder / SENTENCES / "history.csv").read_text()


def test_a_run_that_was_trained_by_other_code_is_opened_with_a_warning(project, monkeypatch):
    monkeypatch.setattr(trained, "code", lambda *modules: {"fingerprint": "of other code"})
    with pytest.warns(UserWarning, match="was trained by other code than today"):
        compositional.open(project.folder / RUN)


def test_a_run_that_was_trained_again_is_not_opened_with_metrics_of_other_weights(tmp_path):
    project, path = Project(tmp_path), "results/runs/digits_concat/cnn/none/lambda=0/seed=0"
    project.snakemake(f"{path}/metrics.csv")
    before = compositional.open(tmp_path / path).metric("accuracy", "test")
    steps = {"tasks": {"digits_concat": {"training": {"steps": 3}}}}
    project.snakemake(f"{path}/run.json", overlay=project.overlay(steps))
    with pytest.raises(ValueError, match="was trained again after its metrics were measured"):
        compositional.open(tmp_path / path)
    project.snakemake(f"{path}/metrics.csv")
    assert compositional.open(tmp_path / path).metric("accuracy", "test") == before


def test_the_notebook_of_the_docs_runs_with_the_same_outputs(tmp_path):
    cells = [cell for cell in json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    outputs = ["".join(one["data"]["text/plain"]) for cell in cells for one in cell["outputs"]]
    script = (
        "\n".join("".join(cell["source"]) for cell in cells)
        + "\nfigure.savefig('plot.png')\nprint(run)\nprint(*table.columns, sep='  ')"
    )
    (tmp_path / "notebook.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "notebook.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    run, columns = done.stdout.splitlines()
    assert outputs[0] == run == "<run digits_concat/cnn/entropy/lambda=1/seed=0, done after 200 steps>"
    assert columns in outputs[2]
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_other_settings_train_another_run(project):
    asked = {"overlays": [TINY], "results": project.folder / "results"}
    run = compositional.train("digits_concat", "cnn", steps=3, **asked)
    assert run.steps == 3
    with pytest.raises(ConfigurationError, match="did you mean 'steps'"):
        compositional.train("digits_concat", "cnn", stepz=3, **asked)
    with pytest.raises(ConfigurationError, match="lambda is 0 if and only if"):
        compositional.train("digits_concat", "cnn", strength=0.1, **asked)
