"""The manifest lists only files that agree with their records."""

from __future__ import annotations

import os
import subprocess

import pytest
from support.commit import forget
from support.project import ROOT

from compositional import files
from compositional.archive import bundle
from compositional.records import integrity, provenance

LOCK = ROOT / "envs" / "requirements.txt"
RUN = "runs/t/m/none/lambda=0/seed=0"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A raw file, a split made from it and a run trained on the split, with their records."""
    monkeypatch.setattr(bundle, "sources", dict)
    for name in ("raw/mnist/labels", "splits/t/test/data.arrow", f"{RUN}/weights.safetensors", f"{RUN}/history.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    raw = {"labels": files.sha256(tmp_path / "raw/mnist/labels")}
    split = {"task": "t", "dataset": "mnist", "raw_sha256": raw, "inputs": {}}
    provenance.write(tmp_path / f"splits/t{provenance.SUFFIX}", split, {}, [tmp_path / "splits/t"])
    made = [tmp_path / RUN / name for name in provenance.RUN_RECORDS["run.json"]]
    provenance.write(tmp_path / RUN / "run.json", {"run": RUN, "status": "done", "inputs": {}}, {}, made)
    return tmp_path


def manifest(results):
    records = [results / f"splits/t{provenance.SUFFIX}", results / RUN / "run.json"]
    return bundle.manifest(results, records, [results / "raw/mnist/labels"], figures=[], config={}, lock=LOCK)


def test_the_manifest_lists_every_result(results):
    listed = manifest(results)
    assert {*listed["artifacts"]} == {"splits/t/test/data.arrow", f"{RUN}/weights.safetensors", f"{RUN}/history.csv"}
    assert listed["raw"]["mnist/labels"]["sha256"] == files.sha256(results / "raw/mnist/labels")


@pytest.mark.parametrize(
    "name", ["splits/t/test/data.arrow", f"{RUN}/weights.safetensors", f"{RUN}/history.csv", "raw/mnist/labels"]
)
def test_a_file_of_any_stage_that_was_altered_stops_the_manifest_and_is_named(results, name):
    before = (results / name).stat().st_mtime_ns
    (results / name).write_text("altered")
    os.utime(results / name, ns=(before, before))  # like a failing disk, which leaves the time as it was
    with pytest.raises(integrity.DamagedFileError, match=f"{name} was altered or damaged .*Call the same command again"):
        manifest(results)
    assert (results / name).exists() == (not name.startswith("raw"))  # a missing raw file is fetched again


@pytest.mark.parametrize("name", ["splits/t/test/data.arrow", f"{RUN}/weights.safetensors", f"{RUN}/run.json"])
def test_the_manifest_lists_no_missing_file(results, name):
    (results / name).unlink()
    with pytest.raises((integrity.DamagedFileError, FileNotFoundError), match=name):
        manifest(results)


def test_committed_results_are_no_sources_and_a_name_that_nobody_can_unpack_is_refused(tmp_path, monkeypatch):
    for name in ("CITATION.cff", "Snakefile", "docs/Figures.md", "results/figures/ablation.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{title: t, abstract: a}")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setattr("compositional.archive.ro_crate.describe", lambda members, built: {})
    forget()

    def write() -> None:
        built = {"source": bundle.sources(), "config": {}, "order": None, "artifacts": {}, "records": {}}
        bundle.write(tmp_path / "results/archive.zip", tmp_path / "results", built, data=False)

    write()
    assert {*bundle.sources()["files"]} == {"CITATION.cff", "Snakefile", "docs/Figures.md"}
    before = (tmp_path / "results/archive.zip").read_bytes()
    (tmp_path / "docs/figures.md").write_text("other")
    with pytest.raises(bundle.ArchiveError, match=r"this archive could not be unpacked: .*figures\.md' twice"):
        write()
    assert (tmp_path / "results/archive.zip").read_bytes() == before
    forget()
