"""A copy of the project that a test builds in and edits."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FIGURE = "results/figures/ablation.pdf"
RUN = "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"


class Project:
    """A copy of the project to build in and to edit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        # With what numba has compiled: copies keep their times, by which it knows them, and are not compiled again.
        compiled = [path.relative_to(ROOT) for path in ROOT.glob("src/compositional/**/__pycache__/*.nb[ci]")]
        for name in (*names.stdout.splitlines(), *compiled):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def command(self, *arguments: str, overlay: str | None = None) -> list[str]:
        files = ["tests/support/tiny.yaml", *([overlay] if overlay else [])]
        return [sys.executable, "-m", "snakemake", "--cores", "2", *arguments, "--configfile", *files]

    def snakemake(self, *arguments: str, overlay: str | None = None, succeeds: bool = True) -> str:
        """Output of a call; fails the test with it if the call does not end as expected."""
        done = subprocess.run(
            self.command(*arguments, overlay=overlay), cwd=self.folder, capture_output=True, text=True, timeout=1800, check=False
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == succeeds, output
        return output

    def jobs(self, *arguments: str, overlay: str | None = None) -> Counter:
        """Jobs that a call would run, by rule; pack rules without their digest."""
        output = self.snakemake("--dry-run", *arguments, overlay=overlay)
        table = output.partition("Job stats:")[2].partition("total")[0]
        found = Counter()
        for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, re.MULTILINE):
            found[re.sub(r"__[0-9a-f]{16}$", "", name)] += int(count)
        return found

    def overlay(self, change: dict) -> str:
        """A configuration overlay, by its path."""
        (self.folder / "overlay.yaml").write_text(yaml.safe_dump(change))
        return "overlay.yaml"

    def read(self, *names: str) -> list[bytes]:
        return [(self.folder / name).read_bytes() for name in names]


def numbers_of(run: str) -> list[str]:
    return [f"{run}/{name}" for name in ("weights.safetensors", "history.csv", "metrics.csv")]
