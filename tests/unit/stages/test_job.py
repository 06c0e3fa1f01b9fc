"""An error of a job is on the terminal in few words, with the plug-in's own line, and in its log in full."""

from __future__ import annotations

import inspect

import pytest
import torch

from compositional.regularizers import interaction
from compositional.stages.shared.job import logged


def test_an_error_within_a_plug_in_names_its_line(tmp_path, capsys):
    with pytest.raises(SystemExit), logged(tmp_path / "job.log"):
        interaction._squares(torch.zeros(1, 2), 4, 4, 3, 1)
    said = capsys.readouterr().err
    lines, first = inspect.getsourcelines(interaction._squares)
    place = next(first + index for index, line in enumerate(lines) if line.strip().startswith("raise ValueError"))
    assert said.startswith("ValueError: interaction: in images of 4 x 4 a square of 3 pixels may leave no room")
    assert f"  {interaction.__file__}, line {place}, _squares: raise ValueError(" in said
    assert "Traceback" not in said
    assert "Traceback" in (tmp_path / "job.log").read_text()


def test_an_error_elsewhere_names_no_plug_in(tmp_path, capsys):
    with pytest.raises(SystemExit), logged(tmp_path / "job.log"):
        raise ValueError("nothing of theirs")
    assert capsys.readouterr().err == f"ValueError: nothing of theirs\n(details in {tmp_path / 'job.log'})\n"
