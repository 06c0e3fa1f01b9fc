"""The last lines of the output of a failed build."""

from __future__ import annotations

import time

import pytest

from compositional.terminal.failures import error_in, error_of, no_slurm, options_of, reason, summary

CURE = "Run this on a host of your cluster (docs/slurm.md), or leave out the profile"

LOG = """\
computing on cpu
Traceback (most recent call last):
  File "train.py", line 1, in <module>
    raise ValueError("a")
ValueError: a

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 3, in <module>
    ~~^^~~
compositional.bad.WrongError: the width is 3
    it must be 4
call again
"""


def test_the_error_is_the_text_after_the_last_traceback(tmp_path):
    log = tmp_path / "job.log"
    log.write_text(LOG)
    assert error_in(log) == "WrongError: the width is 3\n    it must be 4\ncall again"


def test_a_killed_job_has_no_error_of_its_own(tmp_path):
    log = tmp_path / "job.log"
    assert error_in(log).startswith("it ended before it wrote a log;")
    log.write_text("task step 3/9 loss 0.5\n")
    assert error_in(log).endswith("killed or out of memory; its last line is: task step 3/9 loss 0.5")


REFUSED = "SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: gpu'."


def test_what_slurm_says_is_shown_if_the_log_has_no_error(tmp_path):
    said = f"{REFUSED}\n    sbatch call:\n        sbatch --parsable\nFor further error details see the cluster/cloud log"
    assert reason(said) == REFUSED
    assert reason("For further error details see the cluster/cloud log") == reason(None) == ""
    log = tmp_path / "job.log"
    job = {"log": [str(log), "slurm/7.log"], "since": 0, "reason": REFUSED}
    assert error_of(job) == f"it ended: {REFUSED}"
    log.write_text("task step 3/9 loss 0.5\n")
    assert error_of(job) == f"it ended: {REFUSED}"
    log.write_text(LOG)
    assert error_of(job).startswith("WrongError")
    listed = summary([job | {"rule_name": "train_a__1f", "rule_msg": "", "wildcards": {}, "output": ["x"]}], 0, 1, "")
    assert f"  log: {log}, slurm/7.log" in listed.splitlines()


def test_a_printed_command_works_where_it_is_printed(tmp_path, monkeypatch):
    (tmp_path / "my files").mkdir()
    overlay = tmp_path / "my files" / "a.yaml"
    monkeypatch.chdir(tmp_path)
    assert options_of([], tmp_path) == ""
    assert options_of([overlay], tmp_path) == "--configfile 'my files/a.yaml'"
    monkeypatch.chdir(overlay.parent)
    assert options_of([overlay], tmp_path) == (
        f"--snakefile {tmp_path}/Snakefile --directory '{tmp_path}/my files' --configfile '{tmp_path}/my files/a.yaml'"
    )


def test_each_failed_job_is_listed_with_its_error_log_and_command(tmp_path):
    log = tmp_path / "job.log"
    log.write_text(LOG)
    pack = {
        "rule_name": "train_a__1f",
        "rule_msg": "Training 2 runs of a",
        "wildcards": {},
        "output": ["x"],
        "log": [str(log)],
        "since": 0,
    }
    figure = {
        "rule_name": "plot",
        "rule_msg": "Drawing b",
        "wildcards": {"figure": "b"},
        "output": ["b.pdf (update)", "b.png (update)"],
        "log": [],
        "since": 0,
    }
    assert summary([pack, figure], 3, 9, "--configfile my.yaml").splitlines() == [
        "2 of 9 jobs failed, 3 succeeded.",
        "",
        "Training 2 runs of a",
        "  WrongError: the width is 3",
        "      it must be 4",
        "  call again",
        f"  log: {log}",
        "  alone: snakemake train_a__1f --configfile my.yaml",
        "",
        "Drawing b",
        "  it ended before it wrote a log; Snakemake's log is the latest file in .snakemake/log",
        "  log: none",
        "  alone: snakemake b.pdf --configfile my.yaml",
        "",
        "Repeat the command to resume: finished results are kept.",
    ]


def test_an_interrupted_build_lists_no_failures():
    assert summary([], 3, 9, "") == "Stopped after 3 of 9 jobs. Repeat the command to resume: finished results are kept."


def test_the_log_of_an_earlier_job_is_ignored(tmp_path):
    log = tmp_path / "job.log"
    log.write_text(LOG)
    assert error_in(log, time.time()).startswith("WrongError")
    assert error_in(log, time.time() + 3600).startswith("it ended before it wrote a log;")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "there is no sinfo on the PATH"),
        ("echo 'sinfo: error: no controller' >&2; exit 1", "sinfo: error: no controller"),
        ("exit 0", None),
    ],
)
def test_slurm_is_checked_before_jobs_are_submitted(tmp_path, monkeypatch, script, said):
    if script:
        (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = no_slurm()
    assert found == (said and f"The profile submits jobs to Slurm, which does not answer here: {said}. {CURE}")
