"""Programs ask, and end together with those that they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from unittest.mock import Mock

import pytest
from support.configurations import ROOT

from compositional.terminal import commands

# A program that needs a second to end after Ctrl-C, as Snakemake does, and one that runs it.
SLOW = """
import time
try:
    time.sleep(0.5)  # the other program waits by then
    print("begun", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    print("ended", flush=True)
"""
RUNNING = f"""
import os, sys
from compositional.terminal import commands
try:
    commands.run([sys.executable, "-c", {SLOW!r}], os.environ)
except KeyboardInterrupt:
    print("after it")
"""


@pytest.mark.parametrize(
    ("answer", "agrees"),
    [("y", True), (" YES ", True), ("", False), ("no", False), (EOFError, False), (KeyboardInterrupt, False)],
)
def test_only_yes_is_agreement(answer, agrees, monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", Mock(side_effect=[answer]))
    assert commands.agreed("Go on?") == agrees
    assert ("OPTIONS=--yes" in capsys.readouterr().err) == (not isinstance(answer, str))


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_has_ended_ends_no_program(name):
    """As in `snakemake -n ... | head`."""
    code = (
        f"import sys; from compositional.terminal import commands; commands.put('a', sys.{name}); commands.put('b', sys.{name})"
    )
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {name: writer}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, **streams, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stdout or b"", done.stderr or b"") == (0, b"", b"")


def test_the_status_of_a_program_is_returned(tmp_path):
    code = "import os, sys; sys.exit(len(os.listdir()))"
    (tmp_path / "file").touch()
    assert commands.run([sys.executable, "-c", code], os.environ, tmp_path) == 1


def test_ctrl_c_leaves_a_program_the_time_to_end():
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    ) as process:
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "ended\nafter it\n"


def test_ctrl_c_ends_a_calibration_in_a_sentence_and_keeps_what_was_measured(tmp_path):
    with subprocess.Popen(
        [
            *(sys.executable, ROOT / "workflow/calibrate.py", "--figures", "ablation"),
            *("--configfile", ROOT / "tests/support/tiny.yaml"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        first = process.stdout.readline().partition(" ")[0]
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate()[1] == "Stopped. What was measured is kept in results/pack_sizes.csv.\n"
        assert process.returncode == commands.STOPPED
    assert first.replace("/", ",") in (tmp_path / "results/pack_sizes.csv").read_text()
