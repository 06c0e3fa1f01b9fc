"""The terminal output of a build, made from the messages of Snakemake's logger."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from compositional.planning.costs import START, Costs
from compositional.terminal import display
from compositional.terminal.display import HANDLER, Display
from compositional.terminal.progress import Task

JOB = {"rule_name": "plot", "rule_msg": "Drawing a", "wildcards": {"figure": "a"}, "output": ["a.pdf"], "log": []}


@pytest.fixture(autouse=True)
def _called_as_a_command(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/snakemake"])
    yield
    while Call.displays:  # their threads would write into the output of later tests
        Call.displays.pop().end()


class Call:
    """A simulated call of Snakemake with its logger and its handler."""

    displays: ClassVar[list[Display]] = []

    def __init__(self, **settings) -> None:
        self.logger = logging.Logger("snakemake.logging")
        self.theirs = io.StringIO()
        handler = logging.StreamHandler(self.theirs)
        handler.name = HANDLER
        self.logger.addHandler(handler)
        self.display = Display(self.logger, SimpleNamespace(**settings), "did you mean {}?".format, "")
        self.displays.append(self.display)

    def tell(self, text: str = "", level: int = logging.INFO, **values) -> str:
        """The text that Snakemake's handler writes for a message."""
        before = self.theirs.tell()
        self.logger.log(level, text, extra=values)
        return self.theirs.getvalue()[before:]


def test_snakemakes_messages_are_hidden_except_those_that_users_need():
    call = Call()
    assert call.tell("Config file config.yaml is extended by additional config") == ""
    assert call.tell("table", event="run_info", stats={"plot": 1, "total": 1}) == ""
    assert call.tell("job", event="job_info", jobid=1, **JOB) == ""
    assert call.tell("Nothing to be done (all requested files are present and up to date).")
    assert call.tell("disk is full", logging.ERROR) == "disk is full\n"
    assert call.tell("Cannot restore a.csv: no backup found.", logging.WARNING) == ""


@pytest.mark.parametrize("asked", [{"quiet": {"reason"}}, {"verbose": True}, {"printshellcmds": True}])
def test_explicit_options_for_verbosity_restore_snakemakes_output(asked, capsys):
    call = Call(**asked)
    assert call.tell("Config file config.yaml is extended by additional config")
    call.tell("job", event="job_info", jobid=1, **JOB)
    call.display.succeed()
    assert capsys.readouterr().err == ""


def test_a_dry_run_shows_jobs_without_reasons(capsys):
    call = Call(dryrun=True)
    assert call.tell("Building DAG of jobs...") == ""
    assert call.tell("table", event="run_info", stats={"plot": 1}) == ""
    assert call.tell("job", event="job_info", jobid=1, **JOB) == ""
    assert capsys.readouterr().out == "Job 1: Drawing a\n"
    assert call.tell("table", event="run_info", stats={"plot": 1}) == "table\n"


def test_the_error_for_a_missing_target_names_the_nearest_one(capsys):
    call = Call()
    assert (
        call.tell("MissingRuleException:\nNo rule to produce ablation (if you use input functions make sure", logging.ERROR) == ""
    )
    assert capsys.readouterr().err == "did you mean ablation?\n"


def test_a_result_that_may_not_be_replaced_is_named_with_its_owner(tmp_path, capsys):
    held = tmp_path / "run.json"
    held.touch()
    told = f"Write-protected output files for rule train_a__0:\n    output: x\n    affected files:\n        {held}\n        other"
    call = Call(dryrun=True)
    assert call.tell(f"ProtectedOutputException in rule train_a__0 in file x, line 8:\n{told}", logging.ERROR) == ""
    said = f"{held} must be made again and is write-protected (its owner is {held.owner()}). Make it readable"
    assert capsys.readouterr().err.startswith(said)


def test_a_log_file_gets_plain_lines_with_failures_last(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 50.0)
    call = Call()
    call.tell("table", event="run_info", stats={"plot": 2, "total": 2})
    call.display.begin([], Costs(tmp_path), 2)
    for jobid in (1, 2):
        call.tell("job", event="job_info", jobid=jobid, **JOB)
    call.tell("done", event="job_finished", job_id=1)
    call.tell("Error in rule plot", logging.ERROR, event="job_error", jobid=2)
    shown = capsys.readouterr().err
    assert [line.partition("] ")[2] for line in shown.splitlines()] == ["Drawing a", "Drawing a"]
    share, left = call.display.build.estimate(50.0)
    assert share == 0.5
    assert call.display._line(share, left).startswith("50 % done (1 of 2 jobs, 1 failed), about ")
    call.display.fail()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 2 jobs failed, 1 succeeded."
    assert "  alone: snakemake a.pdf" in lines
    assert not call.display.bar


@pytest.mark.parametrize(("terminal", "has_bar"), [("xterm", True), ("dumb", False), (None, False)])
def test_a_bar_is_shown_only_where_a_line_can_be_replaced(tmp_path, monkeypatch, terminal, has_bar):
    """terminal: its type; None if standard error is closed."""
    monkeypatch.setenv("TERM", terminal or "xterm")
    monkeypatch.setattr(sys, "stderr", terminal and SimpleNamespace(isatty=lambda: True, write=len, flush=lambda: None))
    call = Call()
    call.tell("table", event="run_info", stats={"plot": 1, "total": 1})
    call.display.begin([], Costs(tmp_path), 1)
    assert (call.display.bar is not None) == has_bar
    call.display.end()


def test_the_time_that_a_job_waits_in_a_queue_is_not_taken_for_its_cost(tmp_path, monkeypatch):
    call, log, now = Call(), tmp_path / "a.log", [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    call.display.begin([], Costs(tmp_path), 2)
    call.display.tasks = {"evaluate_a": [Task("evaluate", "a", 2)]}
    ((task,),) = call.display.tasks.values()
    for ended, expected in (("took 20.5 s, 19.0 s of CPU time, at most 500 MB\n", 20.5 + START), ("metrics", 3600.0)):
        call.tell("job", event="job_info", jobid=1, **JOB | {"rule_name": "evaluate_a", "log": [str(log)]})
        log.write_text(ended)
        now[0] += 3600
        call.tell("done", event="job_finished", job_id=1)
        assert task.ended - task.began == expected


def test_progress_in_a_log_file_has_the_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(display, "FILE_SECONDS", 0.01)
    call, said = Call(), threading.Event()
    say = call.display.say
    monkeypatch.setattr(call.display, "say", lambda text: (say(text), said.set()))
    call.tell("table", event="run_info", stats={"plot": 1, "total": 1})
    call.display.begin([], Costs(tmp_path), 1)
    assert said.wait(60)
    call.display.end()
    assert re.match(r"\[\d\d:\d\d:\d\d\] 0 % done \(0 of 1 jobs\), about ", capsys.readouterr().err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_log_that_cannot_be_written_stops_no_build(tmp_path, monkeypatch):
    call = Call()
    call.tell("table", event="run_info", stats={"plot": 1, "total": 1})
    call.display.begin([], Costs(tmp_path), 1)
    full = os.open("/dev/full", os.O_WRONLY)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", io.TextIOWrapper(io.FileIO(full, "w"), write_through=True))
        call.tell("job", event="job_info", jobid=1, **JOB)
        call.tell("done", event="job_finished", job_id=1)
        call.display.succeed()
    assert call.display.jobs[1]["state"] == "done"


def test_the_reason_that_slurm_gives_is_shown_at_once_and_at_the_end(tmp_path, capsys):
    call = Call()
    call.display.begin([], Costs(tmp_path), 2)
    call.tell("job", event="job_info", jobid=1, **JOB)
    told = {"rule_msg": "SLURM status is: 'TIMEOUT'. For further error details see the log", "log": ["a.log", "slurm/7.log"]}
    call.tell("Error in rule plot", logging.ERROR, event="job_error", jobid=1, **told)
    assert capsys.readouterr().err.splitlines()[-1].endswith("] Drawing a: SLURM status is: 'TIMEOUT'.")
    call.display.fail()
    lines = capsys.readouterr().err.splitlines()
    assert "  it ended: SLURM status is: 'TIMEOUT'." in lines
    assert "  log: a.log, slurm/7.log" in lines


def test_jobs_that_ctrl_c_ends_are_not_failures(tmp_path, capsys):
    call, log = Call(), tmp_path / "a.log"
    call.display.begin([], Costs(tmp_path), 2)
    for jobid, logs in ((1, []), (2, [str(log)])):
        call.tell("job", event="job_info", jobid=jobid, **JOB | {"log": logs})
        call.tell("Error in rule plot", logging.ERROR, event="job_error", jobid=jobid)
    call.tell("Terminating processes on user request, this might take some time.")
    log.write_text("step 3 of 9")
    call.display.fail()
    assert "Stopped after 0 of 2 jobs. Repeat the command" in capsys.readouterr().err
    log.write_text("Traceback (most recent call last):\nValueError: a")
    call.display.fail()
    assert "1 of 2 jobs failed" in capsys.readouterr().err


def test_a_job_that_succeeds_on_a_retry_is_not_reported_as_failed(tmp_path, capsys):
    call = Call()
    call.display.begin([], Costs(tmp_path), 2)
    call.tell("job", event="job_info", jobid=1, **JOB)
    call.tell("Error in rule plot", logging.ERROR, event="job_error", jobid=1)
    call.tell("job", event="job_info", jobid=1, **JOB)
    call.tell("done", event="job_finished", job_id=1)
    call.display.fail()
    assert "Stopped after 1 of 1 jobs" in capsys.readouterr().err
