"""A copy of the project in which a test builds and edits."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FIGURE = "results/figures/ablation.pdf"
RUN = "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"
COMPILED = {".pyc", ".json", ".nbi", ".nbc"}  # what Python, fingerprints and numba keep in __pycache__; not their temporary files
# Importing Snakemake takes half of the time of a call that has nothing to do. Calls are therefore forks of a process that has
# imported Snakemake and nothing of this project.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["snakemake.api", "snakemake.cli", "snakemake.report.html_reporter", "snakemake.storage", "jsonschema", "smart_open", "tqdm"]
)


def _main(words: list[str], folder: Path, environment: dict[str, str], streams: list[str]) -> None:
    """Do the same as `python -m snakemake` in a folder and an environment."""
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # As at Python's start, the path contains sources of the copy, not of this checkout. The environment may be in the checkout.
    own = [path for path in sys.path if path and Path(path) not in (ROOT, ROOT / "src", ROOT / "tests")]
    sys.path[:] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *own]
    from snakemake import cli

    sys.argv = [str(Path(cli.__file__).with_name("__main__.py")), *words]
    cli.main()


@cache
def jobs_as_forks() -> dict[str, str]:
    """Additions to a call's environment that make its jobs forks of one process for all calls, as in a large build."""
    from compositional.records import surroundings
    from compositional.stages.shared import forks

    environment = dict(os.environ)
    surroundings.settle(environment, ROOT)
    forks.start(environment)
    return {forks.SOCKET: environment[forks.SOCKET]}


def call(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """The finished process of `snakemake` with these words in a folder, with additions to the environment."""
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
        made = (words, folder, os.environ | jobs_as_forks() | environment, [output.name, errors.name])
        process = FORKS.Process(target=_main, args=made)
        process.start()
        process.join(1800)
        code = process.exitcode
        process.kill()
        return subprocess.CompletedProcess(words, code, output.read(), errors.read())


class Project:
    """A copy of the project to build in and to edit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        # What Python and numba compiled is copied, too. Sources keep their times, by which it is recognized, so nothing is
        # compiled again.
        found = ROOT.glob("src/compositional/**/__pycache__/*")
        compiled = [path.relative_to(ROOT) for path in found if path.suffix in COMPILED]
        for name in (*names.stdout.splitlines(), *compiled):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    @classmethod
    def there(cls, folder: Path) -> Project:
        """A copy that exists already."""
        project = cls.__new__(cls)
        project.folder = folder
        return project

    def keep_studies(self, *names: str) -> None:
        """Remove all other studies: checking them takes a third of each call."""
        for path in (self.folder / "config/studies").glob("*.yaml"):
            if path.stem not in names:
                path.unlink()

    def command(self, *arguments: str, overlay: str | None = None) -> list[str]:
        files = ["tests/support/tiny.yaml", *([overlay] if overlay else [])]
        return [sys.executable, "-m", "snakemake", "--cores", "2", *arguments, "--configfile", *files]

    def call(self, *arguments: str, overlay: str | None = None, **environment: str) -> subprocess.CompletedProcess:
        """The finished process of a call, with additions to the environment."""
        _, _, _, *words = self.command(*arguments, overlay=overlay)
        return call(words, self.folder, **environment)

    def snakemake(self, *arguments: str, overlay: str | None = None, succeeds: bool = True, **environment: str) -> str:
        """The output of a call; the test fails with this output if the call does not end as expected."""
        done = self.call(*arguments, overlay=overlay, **environment)
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == succeeds, output
        return output

    def jobs(self, *arguments: str, overlay: str | None = None) -> Counter:
        """The number of jobs that a call would run, by rule; rules of packs are counted without their digests."""
        output = self.snakemake("--dry-run", *arguments, overlay=overlay)
        table = output.partition("Job stats:")[2].partition("total")[0]
        found = Counter()
        for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, re.MULTILINE):
            found[re.sub(r"__[0-9a-f]{16}$", "", name)] += int(count)
        return found

    def overlay(self, change: dict) -> str:
        """Write a configuration overlay and return its path."""
        (self.folder / "overlay.yaml").write_text(yaml.safe_dump(change))
        return "overlay.yaml"

    def read(self, *names: str) -> list[bytes]:
        return [(self.folder / name).read_bytes() for name in names]


def numbers_of(run: str) -> list[str]:
    return [f"{run}/{name}" for name in ("weights.safetensors", "history.csv", "metrics.csv")]
