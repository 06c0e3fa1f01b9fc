"""Versions have a single source, and what is kept in two places is equal: pins, locks, the conda file, the default profile."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from compositional.plugins import available, declarations

ENVS = Path(__file__).parents[2] / "envs"


def pins(name: str) -> dict[str, str]:
    lines = [line.strip() for line in (ENVS / name).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {package.lower().replace("_", "-"): version for package, version in (line.split("==") for line in lines)}


LISTS = ("requirements", "optional", "development")


def locked(name: str) -> list[tuple[str, str, list[str]]]:
    """Package, version and hashes of each entry of a lock. Systems or versions of Python may need several entries."""
    found = []
    for entry in re.split(r"\n(?! )", (ENVS / f"{name}.lock").read_text().strip()):
        head, *hashes = (line.strip().rstrip("\\").strip() for line in entry.splitlines())
        assert hashes, head
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in hashes), head  # and no address of an index
        package, version = head.partition(";")[0].strip().split("==")
        found.append((package, version, hashes))
    return found


def test_the_default_profile_is_the_same_next_to_both_snakefiles():
    both = [ENVS.parent / folder / "profiles/default/config.yaml" for folder in ("", "workflow")]
    assert both[0].read_bytes() == both[1].read_bytes(), "copy profiles/default/config.yaml to workflow/profiles/default"


def test_pins_without_hashes_and_the_conda_file_follow_from_the_locks():
    """`make lock` writes all of them."""
    writing = runpy.run_path(str(ENVS / "lock.py"))
    assert {name: (ENVS / f"{name}.txt").read_text() for name in LISTS} == {name: writing["pins"](name) for name in LISTS}
    assert (ENVS / "environment.yaml").read_text() == writing["environment"]()


@pytest.mark.parametrize("name", ["requirements", "development"])
def test_the_lock_contains_the_required_packages_and_equals_the_installed_ones(name):
    asked, locked = pins(f"{name}.in"), pins(f"{name}.txt")
    assert asked.items() <= locked.items()
    installed = {package: metadata.version(package).split("+")[0] for package in asked}
    assert installed == asked


@pytest.mark.parametrize("name", LISTS)
def test_a_lock_with_hashes_has_the_same_pins(name):
    """It also has what other systems and PyTorch's builds for CUDA need."""
    own, asked = locked(name), pins(f"{name}.txt")
    assert asked.items() <= {(package, version) for package, version, hashes in own}
    other = {"httpx2-jsfetch", "pyreadline3", "setuptools", *asked}
    assert {package for package, *_ in own if not package.startswith(("nvidia", "triton", "cuda"))} <= other
    if name != "requirements":
        assert not {package for package, *_ in own} & {package for package, *_ in locked("requirements")}


def test_recipes_of_containers_install_the_lock_with_hashes():
    for name in ("Dockerfile", "apptainer.def"):
        text = (ENVS / name).read_text()
        assert re.search(r"--no-deps --requirement (envs/)?requirements\.lock\n", text)
        assert "development" not in text
        assert "python:3.11-slim" in text
    # `docker run --user` gives a number without a name, and Snakemake reads a name.
    assert re.search(r"^ENV .*\bUSER=", (ENVS / "Dockerfile").read_text(), re.MULTILINE)


def test_commands_of_continuous_integration_exist():
    workflows = {path.stem: yaml.safe_load(path.read_text())["jobs"] for path in (ENVS.parent / ".github/workflows").iterdir()}
    assert workflows["tests"].keys() >= {"lint", "build", "test", "ends"}
    jobs = [job for of_one in workflows.values() for job in of_one.values()]
    runs = [re.sub(r"\$\{\{.*?\}\}", "9", step["run"]) for job in jobs for step in job["steps"] if "run" in step]
    for target, rest in re.findall(r"^make (\S+)(.*)", "\n".join(runs), re.MULTILINE):
        done = subprocess.run(["make", "-n", target, *rest.split()], cwd=ENVS.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for name in re.findall(r"[\w/]+\.(?:yaml|lock)", "\n".join(runs)):
        assert (ENVS.parent / name).is_file(), name


def test_tools_for_development_are_not_in_the_user_s_environment():
    assert not pins("development.txt").keys() & pins("requirements.txt").keys()
    assert "playwright" in pins("development.txt")  # the browser of the report's tests


def test_packages_of_single_models_are_compatible_with_the_environment():
    asked, locked = pins("optional.in"), pins("optional.txt")
    assert asked.items() <= locked.items()
    assert not locked.keys() & pins("requirements.txt").keys()
    tools = pins("development.txt")
    assert {name: tools[name] for name in locked.keys() & tools} == {name: locked[name] for name in locked.keys() & tools}
    assert {name for model in available("models") for name in declarations(f"models.{model}").get("PACKAGES", ())} == set(asked)


def test_installing_does_not_clear_the_folder_behind_a_link(tmp_path):
    """`python -m venv --clear` would, for an environment that several clones share."""
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "kept").touch()
    (tmp_path / ".venv").symlink_to(shared)
    done = subprocess.run(["make", "env"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert ".venv is a link" in done.stdout
    assert [path.name for path in shared.iterdir()] == ["kept"]


def test_pins_with_another_time_install_nothing(tmp_path):
    """`git checkout` gives files new times, and installing would clear the environment of a running build."""
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    (tmp_path / ".venv").mkdir()
    marker = tmp_path / ".venv" / ".complete"
    shutil.copy(tmp_path / "envs" / "requirements.txt", marker)
    os.utime(marker, (0, 0))
    subprocess.run(["make", "env", "PYTHON=false"], cwd=tmp_path, check=True)
    assert marker.stat().st_mtime > 0
    with marker.open("a") as pins:
        pins.write("another==1")
    os.utime(marker, (0, 0))
    assert subprocess.run(["make", "env", "PYTHON=false"], cwd=tmp_path, capture_output=True, check=False).returncode


def test_pins_that_cannot_be_installed_name_what_they_need(tmp_path):
    """In some years, python3 is a version for which the index has no files of these pins."""
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    python = tmp_path / "python3.15"  # it makes an environment in which pip fails
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && exit; [ "$1" = --version ] && exec echo Python 3.15.0; [ "$2" = pip ] && exit 1\n'
        'mkdir -p .venv/bin && cp "$0" .venv/bin/python\n'
    )
    python.chmod(0o755)
    done = subprocess.run(["make", "env", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "and Python 3.11 to 3.13. This is Python 3.15.0: make PYTHON=python3.13 uses another one" in done.stdout
    assert not (tmp_path / ".venv" / ".complete").exists()


def test_packages_of_the_user_do_not_count_as_installed(tmp_path):
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "searches <$PYTHONPATH>"\nexit 1\n')
    python.chmod(0o755)
    command, environment = ["make", "env", f"PYTHON={python}"], os.environ | {"PYTHONPATH": "/theirs"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "searches <>" in done.stdout


def test_another_system_is_refused_before_anything_is_installed(tmp_path):
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "uname").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["make", "env"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "Linux is needed, and this is Darwin: use a container" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_too_old_is_named_before_an_archive_is_opened(tmp_path):
    """The python3 of many clusters is older. Without the check, an import fails with a traceback."""
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    old = tmp_path / "python3.10"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = (3, 10); $2"\n')
    old.chmod(0o755)
    command = ["make", "reproduce", "ARCHIVE=none.zip", f"PYTHON={old}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "reproduce.py" not in done.stdout


def test_the_archive_of_this_folder_is_reproduced_if_none_is_named(tmp_path):
    """An empty name would be the current folder."""
    shutil.copy(ENVS.parent / "Makefile", tmp_path)
    command = ["make", "--dry-run", "reproduce"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'workflow/reproduce.py "results/archive.zip"' in done.stdout
