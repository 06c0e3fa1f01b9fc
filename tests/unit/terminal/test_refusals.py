"""Calls that cannot go on end with a sentence."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm as slurm

from compositional.records import provenance
from compositional.terminal import refusals


def test_an_error_that_the_user_can_fix_ends_the_call_with_a_sentence():
    with pytest.raises(SystemExit, match=r"^no room: make some$"), refusals.in_a_sentence(": make some"):
        raise OSError("no room")
    with pytest.raises(KeyError), refusals.in_a_sentence():
        raise KeyError("a mistake of ours")


def test_a_file_of_another_user_is_named_with_its_owner_and_what_to_do(tmp_path):
    held, owner = tmp_path / "run.json", tmp_path.owner()
    held.touch()
    said = rf"denied: '{held}' \(its owner is {owner}\)\. Make it .* umask 002$"
    with pytest.raises(SystemExit, match=said), refusals.in_a_sentence(": make some room"):
        raise PermissionError(errno.EACCES, "Permission denied", str(held))
    assert refusals.permitting(tmp_path / "missing").startswith(". Make it readable")


def test_an_interrupt_while_a_call_is_planned_ends_it_with_a_sentence():
    with pytest.raises(SystemExit, match="Stopped before anything was made"), refusals.in_a_sentence():
        raise KeyboardInterrupt


def test_another_system_is_refused():
    refusals.another_system("linux")
    with pytest.raises(SystemExit, match=r"^Linux is needed, and this is darwin: use a container"):
        refusals.another_system("darwin")


def test_a_part_that_snakemake_lacks_is_named():
    workflow = SimpleNamespace(dag=SimpleNamespace(forcefiles={"a"}))
    assert refusals.inside(workflow, "dag.forcefiles") == {"a"}
    with pytest.raises(SystemExit, match=r"This Snakemake has no workflow\.dag\.forced; use a version"):
        refusals.inside(workflow, "dag.forced")


@pytest.mark.parametrize(("numbers", "said"), [({"cores": 0}, "--cores 0"), ({"cores": None, "jobs": -1}, "--jobs -1")])
def test_numbers_with_which_nothing_starts_are_refused(numbers, said):
    refusals.below_one(cores=1, jobs=None)
    with pytest.raises(SystemExit, match=f"^{said}: must be at least 1"):
        refusals.below_one(**numbers)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("slurm_partion", "slurm_partition"),
        ("partition", "slurm_partition"),
        ("account", "slurm_account"),
        ("gpus", "gpu"),
        ("gpu_modle", "gpu_model"),
        ("mem_bm", "mem_mb"),
        ("runtme", "runtime"),
    ],
)
def test_a_misspelled_resource_is_refused_with_the_nearest_name(name, meant, monkeypatch):
    monkeypatch.setattr(provenance, "without_commit", lambda: None)
    with pytest.raises(SystemExit, match=rf"^{name}: nothing reads .* did you mean {meant}\?$"):
        refusals.before_a_build("slurm", ["mem_mb", name])
    refusals.before_a_build("cluster-generic", ["mem_mb", name])  # its command may read any


def test_resources_of_the_rules_and_of_other_plug_ins_are_accepted():
    assert refusals.misspelled_resource([*refusals.RESOURCES, "lsf_queue", "lsf_extra", "machine_type"]) is None


def test_all_resources_that_slurm_s_plug_in_reads_are_known():
    sources = "".join(path.read_text() for path in Path(slurm.__file__).parent.glob("*.py"))
    read = {*re.findall(r"""resources\.(?:get\(["'])?(\w+)""", sources)} - {"get", "items", "keys", "threads"}
    assert {"slurm_partition", "mem_mb", "tasks_per_node"} <= read <= {*refusals.RESOURCES}


def test_what_cannot_build_is_refused_and_a_missing_commit_is_said(monkeypatch, capsys):
    monkeypatch.setattr(provenance, "without_commit", lambda: None)
    refusals.before_a_build("local")
    with pytest.raises(SystemExit, match="--touch changes nothing here"):
        refusals.before_a_build("touch")
    monkeypatch.setattr(refusals, "no_slurm", lambda: "Slurm does not answer")
    with pytest.raises(SystemExit, match="Slurm does not answer"):
        refusals.before_a_build("slurm")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(provenance, "without_commit", lambda: "of another owner")
    refusals.before_a_build("local")
    assert "warning: records will name no commit although" in capsys.readouterr().err
