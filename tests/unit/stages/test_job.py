"""An error of a job is brief on the terminal, with the plug-in's own line, and complete in the job's log."""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys

import pytest
import torch
from support.project import ROOT

import compositional.tasks
from compositional.records.fingerprint import code
from compositional.regularizers import interaction
from compositional.stages.shared.job import OtherThanPlannedError, check, logged


def test_an_error_in_a_plugin_names_its_line(tmp_path, capsys):
    with pytest.raises(SystemExit), logged(tmp_path / "job.log"):
        interaction._squares(torch.zeros(1, 2), 4, 4, 3, 1)
    said = capsys.readouterr().err
    lines, first = inspect.getsourcelines(interaction._squares)
    place = next(first + index for index, line in enumerate(lines) if line.strip().startswith("raise ValueError"))
    assert said.startswith("ValueError: interaction: in images of 4 x 4 a square of 3 pixels may leave no room")
    assert f"  {interaction.__file__}, line {place}, _squares: raise ValueError(" in said
    assert "Traceback" not in said
    assert "Traceback" in (tmp_path / "job.log").read_text()


def test_an_error_elsewhere_names_no_plugin(tmp_path, capsys):
    with pytest.raises(SystemExit), logged(tmp_path / "job.log"):
        raise ValueError("nothing of theirs")
    assert capsys.readouterr().err == f"ValueError: nothing of theirs\n(details in {tmp_path / 'job.log'})\n"


def test_the_traceback_is_kept_if_nothing_can_be_written_to_the_terminal(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    with pytest.raises(SystemExit), logged(tmp_path / "job.log"):
        raise ValueError("nothing of theirs")
    assert "nothing of theirs" in (tmp_path / "job.log").read_text()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("from pathlib import Path; WORDS = Path('words.txt').read_text()", r"may read no file, .*: not .*/words\.txt"),
        ("import numpy as np; SHIFT = np.random.random()", "draws random numbers from a global generator"),
    ],
)
def test_a_plug_in_that_reads_or_draws_when_it_is_imported_is_refused(tmp_path, monkeypatch, line, complaint):
    """What `build` or `draw` may not do, the first lines of their file may not either."""
    (tmp_path / "words.txt").write_text("red blue")
    (tmp_path / "at_the_top.py").write_text(line)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compositional.tasks, "__path__", [*compositional.tasks.__path__, str(tmp_path)])
    content = {"recipe": {"code": {"modules": ["tasks.at_the_top"]}, "of": {}}}
    with pytest.raises((PermissionError, ValueError), match=rf"tasks/at_the_top\.py, when it is imported, {complaint}"):
        check(content, tmp_path)


def test_a_job_refuses_what_was_planned_with_a_library_that_it_does_not_see(tmp_path):
    """Folders on PYTHONPATH affect Snakemake's own process, which plans, but not jobs."""
    about = tmp_path / "torch-99.0.dist-info/METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n")
    planning = "import json; from compositional.records.fingerprint import code; print(json.dumps(code('models.cnn')))"

    def planned(*folders):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", *folders)))}
        done = subprocess.run([sys.executable, "-c", planning], env=environment, capture_output=True, text=True, check=True)
        return {"recipe": {"code": json.loads(done.stdout), "of": {}}}

    check(planned(), tmp_path)
    with pytest.raises(OtherThanPlannedError, match=r"planned with other versions; this environment has torch 2\."):
        check(planned(tmp_path), tmp_path)


def test_what_is_compared_with_the_plan_is_imported_before(tmp_path, monkeypatch):
    """An edit after the comparison must not be what runs."""
    monkeypatch.delitem(sys.modules, "compositional.models.lstm_regressor", raising=False)
    check({"recipe": {"code": code("models.lstm_regressor"), "of": {}}}, tmp_path)
    assert "compositional.models.lstm_regressor" in sys.modules
