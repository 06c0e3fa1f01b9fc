"""Types are correct in the complete library, and every kind of task has the splits that the contract requires."""

from __future__ import annotations

from pathlib import Path

from mypy import api

from compositional.plugins import available

ROOT = Path(__file__).parents[2]


def checked(*arguments: str) -> str:
    """The output of mypy; empty if it finds no error."""
    said, failed, code = api.run(
        ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), *arguments]
    )
    return "" if code == 0 else said + failed


def contract(kind: str) -> str:
    return f"""
from collections.abc import Mapping
from pathlib import Path

from compositional.kinds import Split, {kind}


def splits(folder: Path) -> Mapping[str, Split]:
    return {kind}.load(folder, "cpu")
"""


def test_types_are_correct_and_kinds_fulfil_their_contract(monkeypatch, tmp_path):
    """One run of mypy checks both, because reading the libraries takes most of its time."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    for kind in available("kinds"):
        (tmp_path / f"{kind}_keeps_the_contract.py").write_text(contract(kind))
    assert not checked(str(ROOT / "src" / "compositional"), *map(str, sorted(tmp_path.glob("*.py"))))
    # A split that does not fulfil the contract is found.
    broken = tmp_path / "broken.py"
    broken.write_text("from compositional.kinds import Batch, Split\n\n\nclass Own:\n    pass\n\n\nsplit: Split = Own()\n")
    assert 'variable has type "Split"' in checked(str(broken))


def test_every_file_is_checked():
    """No file is exempt, and every `type: ignore` names its error."""
    settings = (ROOT / "pyproject.toml").read_text().partition("[tool.mypy]")[2]
    assert "ignore_errors" not in settings
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text().splitlines():
            assert "type: ignore" not in line or "type: ignore[" in line, f"{path}: {line}"
            assert "mypy:" not in line, f"{path}: {line}"
