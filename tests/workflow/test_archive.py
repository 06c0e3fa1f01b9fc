"""The archive of a tiny build is complete, valid and always has the same bytes, and every deviation of a rebuild is found."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml
from support.project import call

from compositional import files
from compositional.archive import bundle, comparison, unpacking
from compositional.files import sha256
from compositional.records import provenance
from compositional.stages.shared.trained_runs import device_name

ROOT = Path(__file__).parents[2]
RUN = "digits_concat/cnn/entropy/lambda=0.1/seed=0"
pytestmark = pytest.mark.workflow


def reproduce(source: Path, folder: Path, *more: str) -> subprocess.CompletedProcess:
    """Run `make reproduce` without a new environment."""
    command = [sys.executable, str(ROOT / "workflow/reproduce.py"), str(source), "--folder", str(folder)]
    environment = {key: value for key, value in os.environ.items() if key != "COMPOSITIONAL_MIRROR"}
    options = ["--environment", "current", "--cores", "2", "--yes", *more]
    return subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=400, check=False)


@pytest.fixture(scope="module")
def rebuilt(archived_project, tmp_path_factory) -> tuple[Path, str]:
    """The archive, rebuilt in a new folder, and the output of the rebuild."""
    folder = tmp_path_factory.mktemp("reproduced") / "project"
    done = reproduce(archived_project.folder / "results/archive.zip", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


@pytest.fixture
def changeable(rebuilt, tmp_path) -> Path:
    """A copy of the rebuild, which a test can damage."""
    shutil.copytree(rebuilt[0], tmp_path / "copy", ignore=shutil.ignore_patterns(".snakemake", "store", "__pycache__"))
    return tmp_path / "copy"


def test_every_result_records_its_origin(archived_project):
    results = archived_project.folder / "results"
    run = results / "runs" / RUN
    records = [results / f"{name}{provenance.SUFFIX}" for name in ("splits/digits_concat", "tables/ablation", "figures/ablation")]
    for path in [*records, run / "run.json", run / "evaluation.json"]:
        record = provenance.read(path)
        assert record["source"]["dirty"] is False
        assert len(record["source"]["commit"]) == 40
        assert record["versions"]["torch"] == provenance.versions()["torch"]
        assert record["wall_seconds"] >= 0
        assert record["device_name"] == (device_name("cpu") if path.parent == run else provenance.processor())
        assert record["code"]
        assert record["files"]
        for name, digest in record["files"].items():
            assert sha256(path.parent / name) == digest
    trained = provenance.read(run / "run.json")
    assert (trained["lambda"], trained["seed"], trained["family"]["settings"]["steps"]) == (0.1, 0, 12)
    figure = provenance.read(records[2])["made_from"]
    assert (figure["runs"], figure["seeds"], figure["device"]) == (6, [0, 1], ["cpu"])
    assert figure["diverged"] == [f"digits_concat/cnn/additivity/lambda=1e+38/seed={seed}" for seed in (0, 1)]
    assert {family["regularizer"] for family in figure["families"]} == {"none", "entropy", "additivity"}


def test_the_manifest_lists_every_artifact(archived_project):
    results = archived_project.folder / "results"
    listed = json.loads((results / "manifest.json").read_text())
    there = {
        path.relative_to(results).as_posix()
        for stage in ("raw", "splits", "runs", "tables", "figures")
        for path in (results / stage).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert there == listed["artifacts"].keys() | listed["records"].keys()
    for name, about in listed["artifacts"].items():
        assert (sha256(results / name), (results / name).stat().st_size) == (about["sha256"], about["bytes"])
    assert listed["runs"][RUN] == "done"
    assert len(listed["runs"]) == 6
    assert listed["environment"]["packages"]["snakemake"]
    assert listed["config"]["mirror"] is None


def test_an_altered_archive_and_a_table_altered_before_it_is_packed_are_made_again(archived_project, tmp_path):
    project = copy.copy(archived_project)
    project.folder = tmp_path / "copy"
    subprocess.run(["cp", "-a", archived_project.folder, project.folder], check=True)
    archive, table = project.folder / "results/archive.zip", project.folder / "results/tables/ablation.csv"
    before = archive.read_bytes()
    with zipfile.ZipFile(archive) as stored:
        members = {entry: stored.read(entry) for entry in stored.infolist()}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as stored:
        for entry, content in members.items():
            stored.writestr(
                entry, content.replace(b"0.", b"1.", 1) if entry.filename.endswith("tables/ablation.csv") else content
            )
    assert archive.read_bytes() != before
    shown = project.snakemake("-n", "results/archive.zip", overlay="overlay.yaml")
    assert "made again: archive: it was altered or damaged after it was made" in shown
    text = table.read_text()
    times = {path: path.stat().st_mtime_ns for path in (table, table.with_name("ablation.provenance.json"))}
    table.write_text(text.replace("0.", "1.", 1))
    for path, made in times.items():  # as after damage by a disk: the table is not newer than its record in any way
        os.utime(path, ns=(made, made))
    refused = project.snakemake("results/archive.zip", overlay="overlay.yaml", succeeds=False)
    assert "tables/ablation.csv was altered or damaged after it was made" in refused
    project.snakemake("results/archive.zip", overlay="overlay.yaml")
    assert archive.read_bytes() == before
    assert table.read_text() == text


def test_the_archive_contains_sources_results_and_citation(archived_project):
    with zipfile.ZipFile(archived_project.folder / "results/archive.zip") as stored:
        names = stored.namelist()
        assert json.loads(stored.read("archived/config.json"))["tasks"]["digits_concat"]["train_pairs"] == 200
        assert stored.getinfo(".ci/run").external_attr >> 16 & 0o777 == 0o755
        citation = yaml.safe_load(stored.read("CITATION.cff"))
    tracked = subprocess.run(["git", "ls-files"], cwd=archived_project.folder, capture_output=True, text=True, check=True)
    assert set(tracked.stdout.split()) <= set(names)
    assert {"archived/results/tables/ablation.csv", "archived/results/figures/ablation.pdf", "LICENSE"} <= set(names)
    # The keys that the Citation File Format 1.2.0 requires.
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == "MIT"


# The terms that the description uses, as mapped by the RO-Crate 1.1 context, whose own file would have to be downloaded.
TERMS = {
    "CreateAction": "http://schema.org/CreateAction",
    "CompletedActionStatus": "http://schema.org/CompletedActionStatus",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "ComputerLanguage": "http://schema.org/ComputerLanguage",
    "CreativeWork": "http://schema.org/CreativeWork",
    "Dataset": "http://schema.org/Dataset",
    "File": "http://schema.org/MediaObject",
    "Organization": "http://schema.org/Organization",
    "SoftwareSourceCode": "http://schema.org/SoftwareSourceCode",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
} | {
    name: f"http://schema.org/{name}"
    for name in (
        *("about", "actionStatus", "agent", "author", "contentSize", "datePublished", "description", "encodingFormat", "hasPart"),
        *("identifier", "instrument", "license", "mainEntity", "mentions", "name", "object", "programmingLanguage", "publisher"),
        *("result", "url", "version"),
    )
}


def test_the_archive_is_a_workflow_run_crate(rebuilt, archived_project, tmp_path, monkeypatch):
    from rocrate_validator import models, services
    from rocrate_validator.utils import http

    class Context:
        status_code = 200
        headers = {"Content-Type": "application/ld+json"}  # noqa: RUF012
        text = json.dumps({"@context": TERMS})

        def json(self):
            return json.loads(self.text)

    asked = []

    def get(self, url, **options):
        asked.append(url)
        return Context()

    monkeypatch.setattr(http.HttpRequester, "get", get, raising=False)
    unpacking.unpack(archived_project.folder / "results/archive.zip", tmp_path / "crate")
    described = json.loads((tmp_path / "crate" / bundle.METADATA).read_text())
    used = {key for entity in described["@graph"] for key in entity} - {"@id", "@type"}
    kinds = {
        kind
        for entity in described["@graph"]
        for kind in ([entity["@type"]] if isinstance(entity["@type"], str) else entity["@type"])
    }
    assert used | kinds <= TERMS.keys()
    settings = services.ValidationSettings(
        rocrate_uri=str(tmp_path / "crate"),
        profile_identifier="workflow-run-crate-0.5",
        requirement_severity=models.Severity.RECOMMENDED,
    )
    issues = services.validate(settings).get_issues()
    assert [issue.message for issue in issues if issue.severity == models.Severity.REQUIRED] == []
    # Recommendations that are not followed: times would make equal builds differ, authors and workflow have no pages of their
    # own, and one check of the profile mistakes the classes themselves for software.
    assert {issue.message for issue in issues} == {
        "The Action SHOULD have an endTime in ISO 8601 format",
        "The Application SHOULD have a url",
        "The organization SHOULD have a URL.",
        "The SoftwareApplication id SHOULD be an absolute URI",
    }
    assert set(asked) == {"https://w3id.org/ro/crate/1.1/context"}


def test_a_rebuild_has_the_same_bytes_and_so_has_its_archive(rebuilt, archived_project):
    folder, output = rebuilt
    assert "Reproduced: 10 of 10 to the byte." in output
    call(["results/archive.zip", "--cores", "1", "--configfile", "archived/config.json"], folder).check_returncode()
    assert (folder / "results/archive.zip").read_bytes() == (archived_project.folder / "results/archive.zip").read_bytes()


def findings(folder: Path) -> dict[str, comparison.Finding]:
    """The findings of the comparison by name, without those that agree."""
    return {finding.what: finding for finding in comparison.compare(folder) if not finding.good}


def rewrite(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_bytes(files.json_bytes(value))


def forge(folder: Path, *names: str) -> None:
    """Make the manifest of an archive agree with altered files, like a careful forger would."""

    def change(manifest: dict) -> None:
        for name in names:
            digest = hashlib.sha256((folder / "archived/results" / name).read_bytes()).hexdigest()
            if name in manifest["artifacts"]:
                manifest["artifacts"][name]["sha256"] = digest
            else:
                manifest["records"][name] = digest

    rewrite(folder / "archived/manifest.json", change)


def alter_number(folder: Path, by: float) -> None:
    path = folder / "archived/results/tables/ablation.csv"
    table = pd.read_csv(path)
    row = table[(table.metric == "loss") & (table.regularizer == "entropy")].index[0]
    table.loc[row, "value"] += by
    table.to_csv(path, index=False, lineterminator="\n")


def test_a_tampered_number_is_caught(changeable):
    alter_number(changeable, 0.001)
    bad = findings(changeable)
    assert bad["archive"].detail == "archived/results/tables/ablation.csv was altered"
    assert re.match(r"1 of \d+ numbers, such as task digits_concat", bad["table ablation"].detail)
    forge(changeable, "tables/ablation.csv")
    assert findings(changeable).keys() == {"table ablation"}


def test_a_missing_run_is_caught(changeable):
    shutil.rmtree(changeable / "results/runs" / RUN)
    bad = findings(changeable)
    assert bad["runs digits_concat/cnn/entropy"].verdict == "MISSING"
    assert RUN in bad["runs digits_concat/cnn/entropy"].detail


def test_an_additional_run_that_the_archive_does_not_list_is_caught(changeable):
    def silence(record: dict) -> None:
        record["files"] = {}

    rewrite(changeable / f"archived/results/runs/{RUN}/run.json", silence)
    bad = findings(changeable)["runs digits_concat/cnn/entropy"]
    assert (bad.verdict, RUN in bad.detail) == ("DIFFERS", True)


def test_a_run_left_out_of_the_archive_is_caught(changeable):
    table = changeable / "archived/results/tables/ablation.csv"
    rows = pd.read_csv(table)
    rows[(rows.regularizer != "entropy") | (rows["lambda"] != 0.1) | (rows.seed != 0)].to_csv(
        table, index=False, lineterminator="\n"
    )
    shutil.rmtree(changeable / "archived/results/runs" / RUN)

    def change(manifest: dict) -> None:
        del manifest["runs"][RUN]
        for kind in ("artifacts", "records"):
            manifest[kind] = {name: about for name, about in manifest[kind].items() if RUN not in name}

    rewrite(changeable / "archived/manifest.json", change)
    forge(changeable, "tables/ablation.csv")
    bad = findings(changeable)
    assert "not in the archive" in bad["runs digits_concat/cnn/entropy"].detail
    assert "rows are not in the archived table" in bad["table ablation"].detail


def test_other_raw_data_is_caught(changeable):
    def declare(manifest: dict) -> None:
        manifest["raw"]["mnist/images"] = {"sha256": hashlib.sha256(b"true").hexdigest(), "bytes": 4, "license": {}}

    rewrite(changeable / "archived/manifest.json", declare)
    assert findings(changeable)["raw data mnist/images"].verdict == "MISSING"
    (changeable / "results/raw/mnist").mkdir(parents=True)
    (changeable / "results/raw/mnist/images").write_bytes(b"other")
    assert findings(changeable)["raw data mnist/images"].verdict == "DIFFERS"
    (changeable / "results/raw/mnist/images").write_bytes(b"true")
    assert findings(changeable) == {}
    # For data that is part of a package or generated, other examples are found.
    record = f"splits/digits_concat{provenance.SUFFIX}"
    rewrite(changeable / "archived/results" / record, lambda known: known.update(content_sha256="0" * 64))
    forge(changeable, record)
    assert findings(changeable).keys() == {"data of digits_concat"}


def test_altered_sources_figures_and_statuses_of_runs_are_caught(changeable):
    (changeable / "rules/plot.smk").write_text("")
    (changeable / "src/extra.py").write_text("")
    details = [finding.detail for finding in comparison.compare(changeable) if finding.what == "archive"]
    assert details == ["rules/plot.smk was altered", "src/extra.py is not in the manifest"]
    (changeable / "results/figures/ablation.png").write_bytes(b"drawn otherwise")
    rewrite(changeable / "archived/manifest.json", lambda manifest: manifest["runs"].update({RUN: "diverged"}))
    bad = findings(changeable)
    assert "the same table" in bad["figure ablation.png"].detail
    assert "done instead of diverged" in bad["runs digits_concat/cnn/entropy"].detail


def test_on_another_device_numbers_agree_within_the_spread_of_seeds(changeable):
    records = [*(changeable / "archived/results").rglob("*.json")]

    def elsewhere(record: dict) -> None:
        if "device_name" in record:
            record["device_name"] = "another processor"
        if "device_name" in record.get("made_from", {}):
            record["made_from"]["device_name"] = ["another processor"]

    for path in records:
        rewrite(path, elsewhere)
    forge(changeable, *(path.relative_to(changeable / "archived/results").as_posix() for path in records))
    alter_number(changeable, 0.001)
    forge(changeable, "tables/ablation.csv")
    assert findings(changeable) == {}
    (verdict,) = [finding.verdict for finding in comparison.compare(changeable) if finding.what == "table ablation"]
    assert verdict == "agrees"
    alter_number(changeable, 1000)
    forge(changeable, "tables/ablation.csv")
    assert "table ablation" in findings(changeable)


def test_an_archive_of_a_build_on_a_gpu_is_rebuilt_without_one(archived_project, tmp_path):
    """All overlays of paper scale have `device: cuda`, and the archive's own configuration must not be edited."""
    source = tmp_path / "cuda.zip"
    with zipfile.ZipFile(archived_project.folder / "results/archive.zip") as made, zipfile.ZipFile(source, "w") as changed:
        for entry in made.infolist():
            content = made.read(entry)
            if entry.filename in ("archived/config.json", bundle.MANIFEST):
                known = json.loads(content)
                known.get("config", known)["device"] = "cuda"
                content = json.dumps(known).encode()
            changed.writestr(entry, content)
    done = reproduce(source, tmp_path / "project", "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("^archive +identical", done.stdout, re.MULTILINE)


def test_the_archive_s_python_is_named_if_its_pins_cannot_be_installed(archived_project, tmp_path, monkeypatch):
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\nexit 1\n")
    make.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    done = reproduce(archived_project.folder / "results/archive.zip", tmp_path / "project", "--environment", "pinned")
    assert done.returncode == 2
    assert f"The archive was made with Python {platform.python_version()}, this is" in done.stderr


@pytest.mark.parametrize("allowed", [True, False])
def test_raw_data_goes_into_the_archive_if_its_license_allows_it(archived_project, tmp_path, monkeypatch, allowed):
    monkeypatch.chdir(archived_project.folder)
    monkeypatch.setattr(provenance, "ROOT", archived_project.folder)
    built = json.loads(Path("results/manifest.json").read_text())
    results = tmp_path / "results"
    for kind in ("tables", "figures", "splits", "runs"):
        shutil.copytree(Path("results") / kind, results / kind)
    (results / "raw/letters").mkdir(parents=True)
    (results / "raw/letters/a.txt").write_text("a")
    about = {"sha256": sha256(results / "raw/letters/a.txt"), "bytes": 1, "license": {"name": "L", "redistribution": allowed}}
    built["raw"]["letters/a.txt"] = about
    bundle.write(tmp_path / "archive.zip", results, built, data=True)
    unpacking.unpack(tmp_path / "archive.zip", tmp_path / "unpacked")
    assert (tmp_path / "unpacked/archived/data/letters/a.txt").exists() == allowed
    assert unpacking.altered(tmp_path / "unpacked") == []
    bundle.write(tmp_path / "without.zip", results, built, data=False)
    assert not any(name.startswith("archived/data/") for name in zipfile.ZipFile(tmp_path / "without.zip").namelist())
