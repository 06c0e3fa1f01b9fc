"""Check the time left that a build shows: python benchmarks/time_left.py [folder] [target].

Builds the target, by default the main figure, in a new folder, by default a temporary one, and compares the times left that were
shown with the true ones. Exit status 1: after the first minute, the error was more than 30 % of the time left.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from arguments import parser_of

ROOT = Path(__file__).resolve().parent.parent
FIRST, ALLOWED = 60.0, 0.3
UNITS = {"s": 1, "min": 60, "h": 3600}


def said(lines: Iterable[tuple[float, str]]) -> Iterator[tuple[float, float]]:
    """Times and the seconds left that were shown at these times, from pairs (seconds since the beginning, line)."""
    for moment, line in lines:
        if found := re.search(r"% done .*about ([\d.]+) (s|min|h) left", line):
            yield moment, float(found[1]) * UNITS[found[2]]


def wrong(found: list[tuple[float, float]], end: float) -> list[tuple[float, float, float, float]]:
    """For each time left that was shown: when, the shown value, the true value, and the error as a share of the true value."""
    return [(moment, left, end - moment, left / (end - moment) - 1) for moment, left in found]


def build(folder: Path, target: str) -> Iterator[tuple[float, str]]:
    """The lines of a build, each with the seconds since its beginning; the last one is its end."""
    (folder / "results").mkdir(parents=True)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), target]
    environment = os.environ | {"COMPOSITIONAL_STORE": str(folder / "results" / "store")}
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            yield time.monotonic() - began, line
    if process.returncode:
        sys.exit("the build failed")
    yield time.monotonic() - began, ""


def main() -> None:
    """Build the target, and print every time left that was shown next to the true one."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a new one; without it, a temporary one")
    parser.add_argument("target", nargs="?", default="results/figures/ablation.pdf", help="what is built")
    options = parser.parse_args()
    if options.folder and options.folder.exists():
        parser.error(f"folder: {options.folder} exists already: name a new one")
    with tempfile.TemporaryDirectory() as temporary:
        lines = list(build(options.folder or Path(temporary) / "build", options.target))
    end = lines[-1][0]
    rows = wrong(list(said(lines)), end)
    for moment, left, truth, error in rows:
        print(f"after {moment:4.0f} s: {left:5.0f} s left were shown, {truth:5.0f} s were true: {error:+.0%}")
    judged = next((row for row in rows if row[0] >= FIRST), None)
    if judged is None:
        sys.exit(f"the build took {end:.0f} s: too short to judge")
    holds = abs(judged[3]) <= ALLOWED
    print(f"after the first minute: {judged[3]:+.0%}, {'within' if holds else 'NOT WITHIN'} {ALLOWED:.0%}")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
