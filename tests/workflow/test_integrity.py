"""Damaged files are found and made again, with the same bytes, whatever stage they are from."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess

import pytest
from support.project import Project

from compositional import files
from compositional.archive import bundle
from compositional.records import integrity, provenance

pytestmark = pytest.mark.workflow
RUN = "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"
OTHER = "results/runs/digits_concat/cnn/none/lambda=0/seed=1"
FIGURE = "results/figures/ablation.pdf"
ARROW = "results/splits/digits_concat/test/data-00000-of-00001.arrow"


@pytest.fixture
def project(archived_project, tmp_path):
    """A copy of the build, to spoil: other files' tests look at it, too."""
    copied = copy.copy(archived_project)
    copied.folder = shutil.copytree(archived_project.folder, tmp_path / "copy", symlinks=True)
    return copied


def damage(path) -> None:
    payload = bytearray(path.read_bytes())
    payload[len(payload) // 2] ^= 1
    path.write_bytes(payload)


def test_a_damaged_file_of_each_stage_is_made_again(project):
    names = [ARROW, f"{RUN}/weights.safetensors", f"{OTHER}/history.csv", f"{RUN}/metrics.csv", "results/tables/ablation.csv"]
    names += [FIGURE, "results/figures/ablation.png"]
    before = project.read(*names)
    for name in names:
        damage(project.folder / name)
    (project.folder / OTHER / "run.json").write_text("no record")
    output = project.snakemake(FIGURE, overlay="overlay.yaml")
    for name in [*names, f"{OTHER}/run.json"]:
        if name != f"{OTHER}/history.csv":  # its record could not be read
            assert f"damaged, made again: {name}" in output
    assert project.read(*names) == before
    assert "Nothing to be done" in project.snakemake(FIGURE, overlay="overlay.yaml")


@pytest.mark.parametrize("target", ["all", "results/report.html"])
def test_a_damaged_figure_without_runs_is_found_by_whoever_asks_for_all(tmp_path, target):
    project, name = Project(tmp_path), "results/figures/pathfinder_samples"
    files.write_json(tmp_path / f"{name}{provenance.SUFFIX}", {"files": {"pathfinder_samples.pdf": "digest of another"}})
    (tmp_path / f"{name}.pdf").write_text("damaged")
    assert f"damaged, made again: {name}.pdf" in project.snakemake("--list-rules", target)


def test_what_is_measured_on_damaged_runs_is_measured_again_without_training(project):
    """Also when the store was deleted, as the README suggests for room."""
    before = project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors")
    shutil.rmtree(project.folder / "results/store")
    damage(project.folder / RUN / "metrics.csv")
    output = project.snakemake(FIGURE, overlay="overlay.yaml")
    assert f"damaged, made again: {RUN}/metrics.csv" in output
    assert "Evaluating" in output
    assert "Training" not in output
    assert project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors") == before


def test_predictions_that_were_deleted_are_made_again(tmp_path):
    """No rule asks for them, and the archive needs them."""
    record = tmp_path / "evaluation.json"
    for name in ("metrics.csv", "predictions.csv"):
        (tmp_path / name).write_text(name)
    files.write_json(record, {"files": {name: files.sha256(tmp_path / name) for name in ("metrics.csv", "predictions.csv")}})
    assert integrity.damaged(record) == []
    (tmp_path / "metrics.csv").unlink()
    assert integrity.damaged(record) == []  # figures ask for these
    (tmp_path / "predictions.csv").unlink()
    assert integrity.damaged(record) == [tmp_path / "predictions.csv"]


def test_a_failing_disk_is_noticed_by_whoever_reads_and_repaired_by_the_next_call(project):
    path = project.folder / f"{RUN}/metrics.csv"
    before, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    damage(path)
    os.utime(path, ns=times)
    for name in ("results/tables/ablation.csv", FIGURE):
        (project.folder / name).unlink()
    output = project.snakemake(FIGURE, overlay="overlay.yaml", succeeds=False)
    assert "metrics.csv was altered or damaged after it was made" in output
    assert "Traceback" not in output
    project.snakemake(FIGURE, overlay="overlay.yaml")
    assert path.read_bytes() == before


def test_damage_is_found_by_record(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    record = tmp_path / f"data{provenance.SUFFIX}"
    with provenance.recording(record, [tmp_path / "data"], code="c"):
        pass
    assert integrity.damaged(record) == []
    integrity.verify(tmp_path / "data")
    later = record.stat().st_mtime_ns + 10**9
    os.utime(tmp_path / "data/a.txt", ns=(later, later))
    assert integrity.damaged(record) == []  # touched, not changed
    (tmp_path / "data/a.txt").write_text("b")
    os.utime(tmp_path / "data/a.txt", ns=(0, 0))
    assert integrity.damaged(record) == []
    assert integrity.damaged(record, everything=True) == [tmp_path / "data/a.txt"]
    with pytest.raises(integrity.DamagedFileError, match="Call the same command again"):
        integrity.verify(tmp_path / "data")
    assert integrity.damaged(record) == [tmp_path / "data/a.txt"]  # verify marked it
    (tmp_path / "data/a.txt").unlink()
    assert integrity.damaged(record) == [tmp_path / "data/a.txt"]
    for text in ("{", "[]", '{"files": null}'):
        record.write_text(text)
        assert integrity.damaged(record) == [record], text
    assert integrity.damaged(tmp_path / "none.json") == []


def test_a_failed_job_leaves_no_record(tmp_path):
    with pytest.raises(OSError, match="full"), provenance.recording(tmp_path / "r.json", [], code="c"):
        raise OSError("disk full")
    assert list(tmp_path.iterdir()) == []


def test_the_commit_of_another_repository_around_is_not_ours(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "inner").mkdir()
    monkeypatch.setattr(provenance, "ROOT", tmp_path / "inner")
    provenance.source.cache_clear()
    assert provenance.source() == {}
    (tmp_path / "inner/archived").mkdir()
    (tmp_path / "inner/a.txt").write_text("a")
    about = {"commit": "c", "date": "d", "dirty": False, "files": {"a.txt": files.sha256(tmp_path / "inner/a.txt")}}
    files.write_json(tmp_path / "inner/archived/source.json", about)
    provenance.source.cache_clear()
    assert provenance.source() == {"commit": "c", "date": "d", "dirty": False}
    (tmp_path / "inner/a.txt").write_text("b")
    provenance.source.cache_clear()
    assert provenance.source() == {"commit": "c", "date": "d", "dirty": True}
    provenance.source.cache_clear()


def test_the_commit_is_that_of_the_sources_wherever_results_are(tmp_path, monkeypatch):
    assert (provenance.ROOT / "Snakefile").is_file()
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "a.txt").write_text("a")
    commit = ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "t"]
    for words in (["init", "-q"], ["add", "-A"], commit):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    provenance.source.cache_clear()
    assert len(provenance.source()["commit"]) == 40
    assert bundle.sources()["files"] == {"a.txt": files.sha256(tmp_path / "a.txt")}
    provenance.source.cache_clear()
