"""The hooks that check each commit find the faults that they are meant to find, without network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
WRONG = {
    "ruff-format": ("src/a.py", "x  =  1\n"),
    "ruff-check": ("src/b.py", "import os\n"),
    "snakefmt": ("rules/c.smk", "rule c:\n  output: 'c'\n"),
    "codespell": ("d.md", f"We {'RETREIVE'.lower()} it.\n"),
    "large-files": ("e.csv", "0123456789\n" * 120_000),
    "floors": ("src/f.py", "Y = 1\n"),
}


def test_hooks_use_the_programs_of_the_environment():
    assert [repository["repo"] for repository in HOOKS] == ["local"]
    assert {hook["language"] for hook in HOOKS[0]["hooks"]} == {"system"}
    assert {hook["id"] for hook in HOOKS[0]["hooks"]} == WRONG.keys()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "docs").mkdir()
    # Replaces the real script, which draws the complete library.
    script = 'from pathlib import Path\n\nwith Path("docs/drawn.svg").open("a") as drawing:\n    drawing.write("a box")\n'
    (folder / "docs" / "architecture.py").write_text(script)
    (folder / "docs" / "drawn.svg").write_text("")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def run(folder: Path, hook: str) -> subprocess.CompletedProcess:
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    environment = os.environ | {"PRE_COMMIT_HOME": str(folder.parent / "cache")}
    command = ["pre-commit", "run", "--all-files", hook]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("hook", WRONG)
def test_a_hook_finds_its_fault_and_nothing_else(repository, hook):
    untouched = run(repository, hook)
    assert untouched.returncode == 0, untouched.stdout
    name, text = WRONG[hook]
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text(text)
    found = run(repository, hook)
    assert found.returncode == 1, found.stdout
    assert "Failed" in found.stdout
