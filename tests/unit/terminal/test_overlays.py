"""A wrong --configfile stops with a clear message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import snakemake.cli  # noqa: F401  its function says which file a profile is

from compositional.terminal.overlays import check, named, refused


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("-n results/a.pdf --configfile a.yaml b.yaml", ["a.yaml", "b.yaml"]),
        ("--configfiles a.yaml --cores 1 a.pdf", ["a.yaml"]),
        ("--configfile=a.yaml a.pdf", ["a.yaml"]),
        ("a.pdf --config seeds=1", []),
    ],
)
def test_the_files_after_configfile_are_found(words, files):
    assert [str(path) for path in named(["snakemake", *words.split()])] == files


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("papr.yaml", None, "papr.yaml: there is no such file; did you mean paper.yaml?"),
        ("elsewhere/mine.yml", None, "elsewhere/mine.yml: there is no such file; did you mean config/mine.yaml?"),
        ("nothing", None, "nothing: there is no such file"),
        ("config", None, "config: this is a folder, not a file; did you mean config/config.yaml?"),
        (
            "broken.yaml",
            "a: [1\n",
            "broken.yaml, line 2, column 1: did not find expected ',' or ']' (YAML: check the indentation",
        ),
        ("list.yaml", "- 1\n", "list.yaml has no keys at its top level: write some (config/README.md)"),
        ("results/figures/ablation.pdf", None, "results/figures/ablation.pdf: this is a target. Every word after --configfile"),
        ("paper.yaml", None, "None"),
    ],
)
def test_files_that_are_no_overlays_are_refused_with_the_nearest_match(tmp_path, monkeypatch, name, content, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    for known in ("config/config.yaml", "config/mine.yaml", "paper.yaml"):
        (tmp_path / known).write_text("seeds: 2\n")
    if content:
        (tmp_path / name).write_text(content)
    assert str(refused(Path(name))).startswith(said)


def test_a_file_without_read_permission_is_named(tmp_path, monkeypatch):
    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")  # root can read everything

    monkeypatch.setattr(Path, "read_bytes", denied)
    (tmp_path / "a.yaml").write_text("seeds: 2\n")
    assert refused(tmp_path / "a.yaml") == f"{tmp_path}/a.yaml: it cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("configfile: mine.yaml", None),
        ("configfiles: [mine.yaml, q.json]", "own/config.yaml: --configfile q.json: there is no such file"),
        ("configfile: mine.yml", "own/config.yaml: --configfile mine.yml: there is no such file; did you mean mine.yaml?"),
        ('configfile: "?config"', None),
        ("cores: 1", None),
        ("[", None),
    ],
)
def test_a_profile_names_files_that_exist(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("steps: 1\n")
    Path("own").mkdir()
    Path("own/config.yaml").write_text(line)
    command = ["snakemake", "--profile", "own", "all"]
    if said is None:
        check(command)
    else:
        with pytest.raises(SystemExit) as stop:
            check(command)
        assert stop.value.code == said
        check([*command, "--configfile", "mine.yaml"])


def test_only_the_file_of_a_profile_that_snakemake_reads_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    Path("own/config.yaml").write_text("configfile: q.json")
    Path("own/config.v9+.yaml").write_text("cores: 1")
    check(["snakemake", "--profile=own", "all"])
    check(["snakemake", "--profile", "missing", "all"])  # Snakemake reports it


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("README.md").touch()
    check(["snakemake", "--directory", "new/folder", "README.md"])  # a target
    for asked in ("README.md", "README.md/new"):
        with pytest.raises(SystemExit) as stop:
            check(["snakemake", "all", "--directory", asked])
        assert stop.value.code == f"--directory {asked}: {tmp_path / 'README.md'} is a file, not a folder"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(SystemExit) as stop:
        check(["snakemake", f"--directory={tmp_path}/new"])
    assert stop.value.code == f"--directory {tmp_path}/new: it cannot be made, because {tmp_path} is not writable"
    with pytest.raises(SystemExit, match=f"{tmp_path} is not writable. Snakemake writes there even if it only looks"):
        check(["snakemake", "-n", "--directory", str(tmp_path)])


def test_the_folder_after_the_short_option_is_the_one_that_is_checked(tmp_path, monkeypatch):
    """The sources may be in a folder that this user cannot write to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    Path("own").mkdir()
    check(["snakemake", "all", "-d", "own"])
    with pytest.raises(SystemExit, match=f"{tmp_path} is not writable"):
        check(["snakemake", "all"])


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
def test_a_home_that_cannot_be_written_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(name, str(tmp_path / "home" / "me"))
    check(["snakemake", "all"])
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    with pytest.raises(
        SystemExit, match=rf"^{tmp_path} is not writable\. Snakemake needs {tmp_path}/home/me.*: set XDG_CACHE_HOME"
    ):
        check(["snakemake", "all"])


def test_results_that_cannot_be_a_folder_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("gone")
    with pytest.raises(SystemExit, match=f"{tmp_path}/results is a link to gone, which does not exist: make that folder"):
        check(["snakemake", "-n"])
    Path("results").unlink()
    Path("results").touch()
    with pytest.raises(SystemExit, match=f"{tmp_path}/results is a file, must be a folder: move it away"):
        check(["snakemake", "all"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("b\udcff", "b\\udcff': Snakemake cannot write a path that is not UTF-8"),
        ("{1}", "{1}: Snakemake reads braces"),
        ("größer 1", None),
    ],
)
def test_a_folder_whose_name_snakemake_cannot_use_is_refused(name, said, tmp_path):
    command = ["snakemake", "all", "--directory", str(tmp_path / name)]
    if said is None:
        check(command)
    else:
        with pytest.raises(SystemExit, match=re.escape(f"{tmp_path}/{said}")):
            check(command)


def test_a_lock_that_may_not_be_read_is_refused_with_its_owner(tmp_path, monkeypatch):
    """Snakemake reads all locks, also if it only looks; removing them needs no permission to read."""
    lock, command = tmp_path / ".snakemake/locks/0.input.lock", ["snakemake", "-n", "--directory", str(tmp_path)]
    lock.parent.mkdir(parents=True)
    lock.touch()
    check(command)
    monkeypatch.setattr("os.access", lambda path, mode: path != lock)
    with pytest.raises(
        SystemExit, match=rf"^{lock} is the lock of another call, .*its owner is {lock.owner()}.* with --unlock first$"
    ):
        check(command)
    check([*command, "--unlock"])


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("-n a.pdf --config device=cpu store=~/a=b --cores 1", None),
        ("-n a.pdf --config=device=", None),
        ("-n a.pdf --config device", "device"),
        ("-n a.pdf -C device = cpu", "device"),
        ("-n --config device=cpu results/figures/ablation.pdf", "results/figures/ablation.pdf"),
        ("-n a.pdf --config tasks.scan_jump.training.steps=5 -c 1", "tasks.scan_jump.training.steps=5"),
    ],
)
def test_a_word_that_is_no_setting_is_named(words, wrong):
    if wrong is None:
        check(["snakemake", *words.split()])
    else:
        with pytest.raises(SystemExit, match=f"^--config {re.escape(wrong)}: write <key>=<value> without spaces"):
            check(["snakemake", *words.split()])


def test_a_key_that_is_set_twice_is_refused():
    with pytest.raises(SystemExit, match=r"^--config device=cuda: device is set twice, write it once$"):
        check(["snakemake", "a.pdf", "--config", "device=cpu", "store=here", "device=cuda"])


@pytest.mark.parametrize(
    "words",
    [
        "--configfile a.yaml --configfile b.yaml",
        "--configfile=a.yaml --configfiles b.yaml",
        "--config a=1 -C b=2",
    ],
)
def test_an_option_of_which_snakemake_forgets_the_first_is_refused(words):
    with pytest.raises(SystemExit, match="is given twice"):
        check(["snakemake", *words.split()])
