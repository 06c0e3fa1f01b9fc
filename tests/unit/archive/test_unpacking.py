"""An archive from a stranger: whatever disagrees with its own manifest is refused before anything is written."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.configurations import ROOT

from compositional import files
from compositional.archive import bundle, unpacking
from compositional.records import surroundings
from compositional.terminal import commands

SNAKEFILE = b"rule all:\n"
TABLE = b"value\n0.5\n"
MADE = {f"figures/ablation.{kind}": kind.encode() for kind in ("pdf", "png", "rst")} | {"tables/ablation.csv": TABLE}
RECORDS = {f"{stage}/ablation.provenance.json": b"{}" for stage in ("tables", "figures")}


def digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def manifest(**changes) -> dict:
    """The manifest of an archive with one source and one figure."""
    built = {
        "format": bundle.FORMAT,
        "source": {"commit": "0" * 40, "files": {"Snakefile": digest(SNAKEFILE)}},
        "config": {"device": "cpu"},
        "figures": ["ablation"],
        "environment": {"python": "3.11.7", "packages": {"numpy": "2.4.6", "scipy": None}},
        "artifacts": {name: {"sha256": digest(payload), "bytes": len(payload)} for name, payload in MADE.items()},
        "records": {name: digest(payload) for name, payload in RECORDS.items()},
        "raw": {},
        "runs": {},
    }
    return built | changes


def members(built: dict | None = None, **more: bytes) -> dict[str, bytes]:
    """The members of such an archive by name; more: additional members, with "/" written as "__"."""
    built = built or manifest()
    found = {f"archived/results/{name}": payload for name, payload in (MADE | RECORDS).items()}
    found |= {"Snakefile": SNAKEFILE, bundle.METADATA: b"{}"}
    found |= {bundle.MANIFEST: files.json_bytes(built), "archived/source.json": files.json_bytes(built["source"])}
    return found | {"archived/config.json": files.json_bytes(built["config"])} | more


def write(path: Path, held: dict[str, bytes], **about) -> Path:
    """A zip file; about: further attributes of its member Snakefile."""
    with zipfile.ZipFile(path, "w") as stored:
        for name, payload in held.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            for key, value in about.items() if name == "Snakefile" else ():
                setattr(entry, key, value)
            stored.writestr(entry, payload)
    return path


def assert_refused(archive: Path, message: str) -> None:
    folder = archive.parent / "new" / "folder"
    with pytest.raises(bundle.ArchiveError, match=message) as caught:
        unpacking.unpack(archive, folder)
    assert str(caught.value).isprintable()
    assert not folder.parent.exists()


def test_an_archive_that_agrees_with_its_manifest_is_unpacked(tmp_path):
    archive = write(tmp_path / "good.zip", members(), external_attr=0o100755 << 16)
    unpacking.unpack(archive, tmp_path / "folder")
    assert unpacking.altered(tmp_path / "folder") == []
    assert os.access(tmp_path / "folder/Snakefile", os.X_OK)
    assert not os.access(tmp_path / "folder/archived/config.json", os.X_OK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "good.zip"]


def test_what_a_rebuild_adds_to_an_unpacked_archive_is_no_alteration(tmp_path):
    """`make env` installs the package in place: pip writes into the sources."""
    unpacking.unpack(write(tmp_path / "good.zip", members()), tmp_path / "folder")
    added = (
        "results/manifest.json",
        ".venv/.complete",
        "src/compositional/__pycache__/a.pyc",
        "src/compositional.egg-info/PKG-INFO",
    )
    for name in (*added, "other.egg-info/PKG-INFO"):
        (tmp_path / "folder" / name).parent.mkdir(parents=True)
        (tmp_path / "folder" / name).touch()
    assert unpacking.altered(tmp_path / "folder") == ["other.egg-info/PKG-INFO is not in the manifest"]


def test_a_mount_point_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    archive = write(tmp_path / "good.zip", members())
    with pytest.raises(bundle.ArchiveError, match=rf"mount point, .* such as {tmp_path}/empty/rebuilt$"):
        unpacking.unpack(archive, tmp_path / "empty")
    unpacking.unpack(archive, tmp_path / "empty/rebuilt")


def test_an_archive_that_is_unpacked_again_leaves_its_rebuild_as_it_is(tmp_path):
    archive, folder = write(tmp_path / "good.zip", members()), tmp_path / "folder"
    unpacking.unpack(archive, folder)
    (folder / "results").mkdir()
    unpacking.unpack(archive, folder)
    assert (folder / "results").is_dir()
    with pytest.raises(bundle.ArchiveError, match="cannot be trusted"):
        unpacking.unpack(write(tmp_path / "bad.zip", members() | {"Snakefile": b"rule any:\n"}), folder)
    other = write(tmp_path / "other.zip", members(manifest(config={"device": "cuda"})))
    with pytest.raises(bundle.ArchiveError, match=r"no rebuild of .*other\.zip can continue there: it is of another archive$"):
        unpacking.unpack(other, folder)
    for name in ("archived/config.json", "Snakefile"):
        (folder / name).write_text("changed")
        with pytest.raises(bundle.ArchiveError, match=f"can continue there: {name} was altered$"):
            unpacking.unpack(archive, folder)
    assert (folder / "results").is_dir()


@pytest.mark.parametrize(
    "name",
    [
        *("results/tables/ablation.csv", "results/manifest.json", ".snakemake/metadata/a", ".venv/.complete"),
        *("src/__pycache__/a.pyc", "src/deep/.venv/bin/python", "a.pyc", ".git/hooks/post-checkout"),
        *("Results/a", ".GIT/config", "src/__PyCache__/a", "a.PYC"),
        *("../outside", "/tmp/outside", "a/../../b", "a//b", "C:\\a", "line\nbreak", "bell\x07", "snakefile"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_additional_results_and_code_are_refused_even_if_the_manifest_names_them(tmp_path, name, named):
    built = manifest()
    if named:
        built["source"]["files"][name] = digest(b"forged")
    write(tmp_path / "bad.zip", members(built) | {name: b"forged"})
    assert_refused(tmp_path / "bad.zip", r"bad.zip cannot be trusted: it holds '")


def test_members_that_the_manifest_does_not_name_or_describes_differently_are_refused(tmp_path):
    cases = {
        "does not name 1 of its files, such as 'extra.py'": members() | {"extra.py": b""},
        "1 files that its manifest names are missing, such as 'Snakefile'": {
            name: own for name, own in members().items() if name != "Snakefile"
        },
        "1 files that its manifest names are missing, such as 'ro-crate-metadata.json'": {
            name: own for name, own in members().items() if name != bundle.METADATA
        },
        "'Snakefile' is not what its manifest says": members() | {"Snakefile": b"rule other:\n"},
        "'archived/results/tables/ablation.csv' is not what": members() | {"archived/results/tables/ablation.csv": b"value\n1\n"},
        "'archived/config.json' is not what its manifest says": members() | {"archived/config.json": b"{}\n"},
        "it has format 99, this program reads": members(manifest(format=99)),
        "it has no archived/manifest.json": {"Snakefile": SNAKEFILE},
        r"its archived/manifest.json cannot be read \(JSONDecodeError": members() | {bundle.MANIFEST: b"{"},
        r"its archived/manifest.json cannot be read \(TypeError": members() | {bundle.MANIFEST: b"[]"},
        r"its archived/manifest.json cannot be read \(KeyError": members()
        | {bundle.MANIFEST: json.dumps({"format": 1}).encode()},
        r"its archived/manifest.json cannot be read \(RecursionError": members() | {bundle.MANIFEST: b"[" * 100_000},
    }
    for number, (message, held) in enumerate(cases.items()):
        assert_refused(write(tmp_path / f"{number}.zip", held), message)


def test_raw_data_in_an_archive_are_checked_but_may_be_left_out(tmp_path):
    built, name = manifest(raw={"letters/a.txt": {"sha256": digest(b"a")}}), "archived/data/letters/a.txt"
    unpacking.unpack(write(tmp_path / "without.zip", members(built)), tmp_path / "without")
    unpacking.unpack(write(tmp_path / "with.zip", members(built) | {name: b"a"}), tmp_path / "with")
    assert unpacking.altered(tmp_path / "without") == unpacking.altered(tmp_path / "with") == []
    (tmp_path / "with" / name).write_bytes(b"b")
    assert unpacking.altered(tmp_path / "with") == [f"{name} was altered"]
    (tmp_path / "with/Snakefile").unlink()
    assert unpacking.altered(tmp_path / "with") == ["Snakefile is missing", f"{name} was altered"]
    assert_refused(write(tmp_path / "bad.zip", members(built) | {name: b"b"}), f"'{name}' is not what its manifest says")


@pytest.mark.parametrize("key", ["figures", "source", "environment", "raw", "runs", "artifacts", "records"])
@pytest.mark.parametrize("value", [None, 3, "x", [3], {"a": 1}, {"a": {}}], ids=str)
def test_a_manifest_of_another_form_stops_before_anything_is_made(tmp_path, key, value):
    """Otherwise the error would come after hours of rebuilding, at the comparison."""
    held = members() | {bundle.MANIFEST: files.json_bytes(manifest(**{key: value}))}
    assert_refused(write(tmp_path / "bad.zip", held), f"its manifest does not fit: its {key} have another form")


def test_a_manifest_without_figures_or_without_one_of_their_files_is_refused(tmp_path):
    cases = [({"figures": []}, "figure")]
    for key, names in (("artifacts", ("figures/ablation.png", "tables/ablation.csv")), ("records", RECORDS)):
        cases += [
            ({key: {name: own for name, own in manifest()[key].items() if name != left_out}}, left_out) for left_out in names
        ]
    for number, (changes, what) in enumerate(cases):
        held = members() | {bundle.MANIFEST: files.json_bytes(manifest(**changes))}
        assert_refused(write(tmp_path / f"{number}.zip", held), f"does not fit: it lists no {what}")


def test_damaged_zip_files_and_zip_bombs_are_refused_with_a_message(tmp_path):
    good = write(tmp_path / "good.zip", members()).read_bytes()
    (tmp_path / "0.zip").write_bytes(b"no zip")
    (tmp_path / "1.zip").write_bytes(good[: len(good) // 2])
    (tmp_path / "2.zip").write_bytes(good[:40] + b"\xff" * 8 + good[48:])
    (tmp_path / "3.zip").write_bytes(b"")
    for number in range(4):
        assert_refused(tmp_path / f"{number}.zip", "can't be unpacked: |cannot be trusted: ")
    assert_refused(tmp_path / "not_there.zip", "can't be unpacked")
    with pytest.raises(bundle.ArchiveError, match="is not an empty folder"):
        unpacking.unpack(tmp_path / "0.zip", tmp_path / "1.zip")
    bomb = {"Snakefile": bytes(10_000_000)}
    assert_refused(write(tmp_path / "bomb.zip", bomb, compress_type=zipfile.ZIP_DEFLATED), "'Snakefile' is compressed")
    assert_refused(write(tmp_path / "link.zip", members(), external_attr=0o120777 << 16), "'Snakefile' is a link")


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("flag_bits", 1, "'Snakefile' is a link or encrypted, not a plain file"),
        ("file_size", 1_000_000, "'Snakefile' is compressed"),
        ("orig_filename", None, "its members are larger than it is"),
    ],
)
def test_a_directory_that_describes_other_members_than_there_are_is_refused(tmp_path, key, change, message):
    with zipfile.ZipFile(write(tmp_path / "bad.zip", members() | {"Snakefile": SNAKEFILE * 1000}), "a") as stored:
        entry = stored.getinfo("Snakefile")
        if change:
            setattr(entry, key, getattr(entry, key) + change)
        else:  # another name for the same bytes
            twin = copy.copy(entry)
            twin.filename = twin.orig_filename = "again"
            stored.filelist.append(twin)
        stored._didModify = True
    assert_refused(tmp_path / "bad.zip", message)


def test_reproduce_has_one_exit_code_for_errors_and_asks_before_it_runs_anything(tmp_path):
    def call(archive: Path, *options: str, answer: str = "") -> subprocess.CompletedProcess:
        command = [
            sys.executable,
            str(ROOT / "workflow/reproduce.py"),
            str(archive),
            "--folder",
            str(tmp_path / "folder"),
            *options,
        ]
        return subprocess.run(command, input=answer, capture_output=True, text=True, check=False)

    (tmp_path / "bad.zip").write_bytes(b"no zip")
    done = call(tmp_path / "bad.zip", "--yes")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "folder").exists()
    for answer in ("", "n\n", "\n"):
        done = call(write(tmp_path / "good.zip", members()), answer=answer)
        assert done.returncode == 2
        assert "installs the packages that the archive names, then runs the archive's code" in done.stdout
        assert f"Nothing was installed or run. The same call with --folder {tmp_path}/folder continues" in done.stderr
        assert ("There is no answer: --yes answers yes" in done.stderr) == (not answer)
        assert not (tmp_path / "folder/.venv").exists()


def test_a_rebuild_that_is_stopped_or_fails_says_how_to_continue_it(tmp_path, monkeypatch, capsys):
    script, folder = runpy.run_path(str(ROOT / "workflow/reproduce.py")), tmp_path / "folder"
    words = [str(write(tmp_path / "good.zip", members())), "--folder", str(folder), "--yes", "--environment", "current"]
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *words])
    for ends, status in ((KeyboardInterrupt, 130), ([1, 1], 1)):
        monkeypatch.setattr(commands, "run", Mock(side_effect=ends))
        assert script["main"]() == status
        assert f"The same call with --folder {folder} continues" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "status"),
    [([0, 0, 0, 0], 0), ([1], 2), ([0, 1, 0, 0], 0), ([0, 0, 1, 0], 1), ([0, 0, 0, 1], 1)],
    ids=["all agree", "no runs", "failed jobs", "another sample", "another table"],
)
def test_a_rebuild_uses_what_the_archive_has_and_nothing_of_this_machine(tmp_path, monkeypatch, ends, status):
    """The programs are those that unpack runs, rebuild, train a sample again and compare."""
    script, folder = runpy.run_path(str(ROOT / "workflow/reproduce.py")), tmp_path / "folder"
    held = members(manifest(raw={"letters/a.txt": {"sha256": digest(b"a")}})) | {"archived/data/letters/a.txt": b"a"}
    words = [str(write(tmp_path / "good.zip", held)), "--folder", str(folder), "--runs", str(tmp_path / "runs.zip"), "--yes"]
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *words, "--environment", "current", "--sample", "3", "--device", "cuda"])
    for name in ("PYTHONPATH", "COMPOSITIONAL_STORE"):
        monkeypatch.setenv(name, "/of/this/machine")
    monkeypatch.delenv(surroundings.MIRROR, raising=False)
    monkeypatch.setattr(commands, "run", Mock(side_effect=ends))
    assert script["main"]() == status
    assert commands.run.call_count == len(ends)
    for command, environment, place in (call.args for call in commands.run.call_args_list[:3]):
        assert place == folder
        assert "PYTHONPATH" not in environment
        assert environment["COMPOSITIONAL_STORE"] == ""
        assert environment[surroundings.MIRROR] == str(folder / "archived/data")
        assert "--configfile archived/config.json results/device.json" in " ".join(command)
    assert json.loads((folder / "results/device.json").read_text()) == {"device": "cuda"}


def test_a_python_without_the_packages_is_no_difference(tmp_path, monkeypatch, capsys):
    script, archive = runpy.run_path(str(ROOT / "workflow/reproduce.py")), write(tmp_path / "good.zip", members())
    words = [str(archive), "--folder", str(tmp_path / "folder"), "--yes", "--environment", "current"]
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *words])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else name)
    assert script["main"]() == 2
    assert f"{sys.executable} has no pandas. Use the Python of an environment" in capsys.readouterr().err
