"""Damaged files of every stage are found and made again with the same bytes."""

from __future__ import annotations

import copy
import io
import os
import shutil
from pathlib import Path

import pytest
from support import raw
from support.project import Project

from compositional import files
from compositional.plugins import declarations
from compositional.records import provenance
from compositional.records.integrity import DamagedFileError
from compositional.records.places import recipe_in
from compositional.stages import aggregate
from compositional.stages.shared.job import OtherThanPlannedError
from compositional.stages.shared.trained_runs import load_problem, measured

pytestmark = pytest.mark.workflow
RUN = "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"
OTHER = "results/runs/digits_concat/cnn/none/lambda=0/seed=1"
FIGURE = "results/figures/ablation.pdf"
ARROW = "results/splits/digits_concat/test/data-00000-of-00001.arrow"


@pytest.fixture
def project(archived_project, tmp_path):
    """A copy of the build, which a test can damage; tests in other files use the original."""
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
    assert (
        "made again: split digits_concat: results/splits/digits_concat.provenance.json: data-00000-of-00001.arrow was" in output
    )
    assert "made again: 1 run of digits_concat/cnn/none: no valid record belongs to the existing files" in output
    assert project.read(*names) == before
    assert "Nothing to be done" in project.snakemake(FIGURE, overlay="overlay.yaml")


def test_a_figure_or_table_of_another_build_is_noticed_although_it_keeps_its_old_time(project):
    for name, jobs in ((FIGURE, {"plot": 1}), ("results/tables/ablation.csv", {"aggregate": 1, "plot": 1})):
        path, other = project.folder / name, project.folder / "older"
        before = path.read_bytes()
        other.write_bytes(before + b"of another build")
        os.utime(other, (0, 0))
        other.replace(path)
        assert project.jobs(FIGURE, overlay="overlay.yaml") == jobs
        project.snakemake(FIGURE, overlay="overlay.yaml")
        assert path.read_bytes() == before
    assert project.jobs(FIGURE, overlay="overlay.yaml") == {}


def test_a_damaged_file_is_made_again_after_a_failed_repair_too(project):
    """Snakemake then puts the damaged file back. The summary shows an error of an import, and so does the log."""
    code = project.folder / "src/compositional/figures/shared/page.py"
    figure = (project.folder / FIGURE).read_bytes()
    damage(project.folder / FIGURE)
    whole = code.read_text()
    code.write_text(f'{whole}\nraise RuntimeError("broken at its end")\n')
    output = project.snakemake(FIGURE, overlay="overlay.yaml", succeeds=False)
    assert "  RuntimeError: broken at its end" in output.rstrip().splitlines()[-6:]
    assert "broken at its end" in (project.folder / "results/logs/plot/ablation.log").read_text()
    code.write_text(whole)
    assert project.jobs(FIGURE, overlay="overlay.yaml") == {"plot": 1}
    project.snakemake(FIGURE, overlay="overlay.yaml")
    assert (project.folder / FIGURE).read_bytes() == figure
    assert project.jobs(FIGURE, overlay="overlay.yaml") == {}


def test_a_damaged_figure_without_runs_is_found_by_the_targets_all_and_report(tmp_path):
    project, name = Project(tmp_path), "results/figures/pathfinder_samples"
    (tmp_path / "results/figures").mkdir(parents=True)
    provenance.write(tmp_path / f"{name}{provenance.SUFFIX}", {"inputs": {}}, {}, [])
    (tmp_path / f"{name}.pdf").write_text("damaged")
    for target in ("all", "results/report.html"):
        output = project.snakemake("-n", target)
        assert "made again: figure pathfinder_samples: " in output
        assert "Drawing pathfinder_samples" in output


def test_measurements_of_damaged_files_are_repeated_without_training(project):
    """This also holds if the store was deleted to free space."""
    before = project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors")
    shutil.rmtree(project.folder / "results/store")
    damage(project.folder / RUN / "metrics.csv")
    output = project.snakemake(FIGURE, overlay="overlay.yaml")
    assert f"made again: evaluation of 1 run of digits_concat/cnn/entropy: {RUN}/evaluation.json: metrics.csv was" in output
    assert "Evaluating" in output
    assert "Training" not in output
    assert project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors") == before


def test_archive_and_report_notice_changed_inputs(project):
    """It does not matter which call made the inputs again, whether Snakemake remembers it, or what their times are."""
    targets = ("results/archive.zip", "results/report.html")
    archived = project.read(targets[0])
    damage(project.folder / FIGURE)
    expected = {"plot": 1, "manifest": 1, "archive": 1, "report": 1}
    assert project.jobs(*targets, overlay="overlay.yaml") == expected
    project.snakemake(*targets, overlay="overlay.yaml")
    assert project.read(targets[0]) == archived
    assert project.jobs(*targets, overlay="overlay.yaml") == {}
    # Another call has drawn the figure differently, and the folder was copied without Snakemake's own folder.
    style = project.folder / "src/compositional/figures/shared/style.py"
    style.write_text(style.read_text().replace('"font.size": 9', '"font.size": 8'))
    project.snakemake(FIGURE, overlay="overlay.yaml")
    shutil.copytree(project.folder / "results", project.folder / "copied")
    shutil.rmtree(project.folder / "results")
    (project.folder / "copied").rename(project.folder / "results")
    shutil.rmtree(project.folder / ".snakemake")
    expected.pop("plot")
    assert project.jobs(*targets, overlay="overlay.yaml") == expected
    project.snakemake(*targets, overlay="overlay.yaml")
    assert project.jobs(*targets, overlay="overlay.yaml") == {}
    # The report was cut off, and a table in the archive was altered.
    report, archive = (project.folder / target for target in reversed(targets))
    report.write_bytes(report.read_bytes()[:20000])
    damage(archive)
    assert project.jobs(*targets, overlay="overlay.yaml") == {"archive": 1, "report": 1}
    output = project.snakemake(*targets, overlay="overlay.yaml")
    assert output.count("it was altered or damaged after it was made") == 2
    # The manifest has a number from another build, and the page is from another build.
    manifest = project.folder / "results/manifest.json"
    manifest.write_text(manifest.read_text().replace('"done"', '"diverged"', 1))
    assert project.jobs(*targets, overlay="overlay.yaml") == {"manifest": 1, "archive": 1}


def test_runs_whose_folders_were_exchanged_are_made_again(project):
    one, two, aside = (project.folder / name for name in (RUN, RUN.replace("seed=0", "seed=1"), "aside"))
    before = project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    output = project.snakemake(FIGURE, overlay="overlay.yaml")
    name = RUN.removeprefix("results/runs/")
    assert f'made again: 1 run of digits_concat/cnn/entropy: run "{name[:-1]}1" -> "{name}"' in output
    assert project.read(f"{RUN}/metrics.csv", f"{RUN}/weights.safetensors") == before


def test_damage_by_a_failing_disk_is_noticed_on_reading_and_repaired_by_the_next_call(project):
    path = project.folder / f"{RUN}/metrics.csv"
    missing = ("results/tables/ablation.csv", "results/tables/ablation.provenance.json", FIGURE)
    kept = project.read(missing[0], FIGURE)
    before, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    damage(path)
    os.utime(path, ns=times)
    for name in missing:
        (project.folder / name).unlink()
    output = project.snakemake(FIGURE, overlay="overlay.yaml", succeeds=False)
    assert "metrics.csv was altered or damaged after it was made" in output
    assert "Traceback" not in output
    project.snakemake(FIGURE, overlay="overlay.yaml")
    assert path.read_bytes() == before
    # Snakemake alone would not notice that inputs of a forced job are missing.
    assert project.read(missing[0], FIGURE) == kept


def test_a_damaged_recipe_is_written_again_and_not_followed(project):
    (project.folder / FIGURE).unlink()
    project.snakemake(FIGURE, overlay="overlay.yaml")
    (recipe,) = (project.folder / "results/recipes").glob("plot_ablation__*.json")
    whole = recipe.read_bytes()
    for altered in (b"", whole.replace(b"ablation", b"comparison")):
        (project.folder / FIGURE).unlink()
        recipe.write_bytes(altered)
        project.snakemake(FIGURE, overlay="overlay.yaml")
        assert recipe.read_bytes() == whole


def test_a_run_that_is_replaced_while_it_is_measured_gets_no_record(project, monkeypatch):
    """A job of a killed build may still train."""
    folder = project.folder / RUN
    (recipe,) = [
        path
        for path in (project.folder / "results/recipes").glob("evaluate_digits_concat__cnn__entropy__*.json")
        if RUN.removeprefix("results/runs/") in path.read_text()
    ]
    content = recipe_in(recipe)
    (folder / "evaluation.json").unlink()
    monkeypatch.chdir(project.folder)
    problem = load_problem(content, Path("results"), io.StringIO())

    def measure(weights, folders):
        damage(folder / "weights.safetensors")

    with pytest.raises(DamagedFileError, match="was changed while it was measured, perhaps by a job of a build that was killed"):
        measured(content, problem, Path("results"), measure, io.StringIO())
    assert not (folder / "evaluation.json").exists()


def test_a_run_that_is_replaced_while_it_is_collected_gets_in_no_figure(project, monkeypatch):
    """Another call with --nolock may make it with other options; here it is another seed's."""
    monkeypatch.chdir(project.folder)
    (recipe,) = Path("results/recipes").glob("aggregate_ablation__*.json")
    monkeypatch.setattr(aggregate, "aggregate", lambda sources, table: shutil.copyfile(f"{RUN}/run.json", f"{OTHER}/run.json"))
    record = Path("results/tables/ablation.provenance.json")
    before = record.read_bytes()
    with pytest.raises(OtherThanPlannedError, match="seed=1"):
        aggregate.perform(recipe_in(recipe), io.StringIO())
    assert record.read_bytes() == before


def test_a_damaged_raw_file_is_fetched_again_with_a_message(tmp_path, monkeypatch):
    """This happens although its split exists. A raw file that is only missing is not fetched again."""
    (tmp_path / "project").mkdir()
    project, mirror = Project(tmp_path / "project"), tmp_path / "mirror/geoquery"
    raw.write("geoquery", mirror)
    ((name, entry),) = declarations("datasets.geoquery")["FILES"].items()
    source = project.folder / "src/compositional/datasets/geoquery.py"
    source.write_text(source.read_text().replace(entry["sha256"], files.sha256(mirror / name)))
    monkeypatch.setenv("COMPOSITIONAL_MIRROR", str(mirror.parent))
    split, path = "results/splits/geoquery_query", project.folder / "results/raw/geoquery" / name
    project.snakemake(split)
    kept = [path.read_bytes(), *project.read(f"{split}/task.json", f"{split}/train/data-00000-of-00001.arrow")]
    damage(path)
    output = project.snakemake(split)
    assert f"made again: split geoquery_query: raw/geoquery/{name} changed after it was used" in output
    assert f"Fetching geoquery/{name}" in output
    assert [path.read_bytes(), *project.read(f"{split}/task.json", f"{split}/train/data-00000-of-00001.arrow")] == kept
    with monkeypatch.context() as gone:
        gone.setenv("COMPOSITIONAL_MIRROR", str(tmp_path / "gone"))
        project.snakemake(f"results/raw/geoquery/{name}", "--force", succeeds=False)
    assert path.read_bytes() == kept[0]  # a file that cannot be fetched again is kept
    path.unlink()
    assert project.jobs(split) == {}
    shutil.rmtree(project.folder / split)
    assert project.jobs(split) == {"download": 1, "split": 1}
