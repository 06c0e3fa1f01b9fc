"""Rebuild an archive from raw data and say what agrees: make reproduce ARCHIVE=results/archive.zip

Needs Python 3.11 and make, no package. The archive is unpacked, its files are checked against its manifest, its own pinned
environment is installed, the archived build is made again from raw data with the archive's own sources, and everything is
compared. This runs the archive's code: only reproduce archives from people you trust.

Exit status: 0 all agrees, 1 something does not, 2 the archive can't be used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCES))

from compositional.archive import bundle

MIRROR = "COMPOSITIONAL_MIRROR"


def rebuild(folder: Path, python: Path, cores: int) -> None:
    """Make everything that the archive lists, from raw data; what fails is missing in the comparison."""
    environment = dict(os.environ)
    data = folder / bundle.FOLDER / "data"
    if data.is_dir() and MIRROR not in environment:
        environment[MIRROR] = str(data)
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment.get('PATH', '')}"
    environment.pop("PYTHONPATH", None)  # the archive's sources, not ours
    command = [str(python), "-m", "snakemake", "results/manifest.json", "--cores", str(cores), "--keep-going"]
    done = subprocess.run([*command, "--configfile", f"{bundle.FOLDER}/config.json"], cwd=folder, env=environment, check=False)
    if done.returncode:
        print("The rebuild did not succeed; what is missing is shown below.", file=sys.stderr)


def main() -> int:
    """Unpack, check, install, rebuild, compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--folder", type=Path, help="where to unpack, new or empty (default: a new temporary folder)")
    parser.add_argument(
        "--environment", choices=["pinned", "current"], default="pinned", help="install the archive's pins, or use this Python"
    )
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    folder = (arguments.folder or Path(tempfile.mkdtemp(prefix="reproduce-"))).resolve()
    try:
        bundle.unpack(arguments.archive, folder)
        changes = bundle.altered(folder)
    except (bundle.ArchiveError, OSError, ValueError, KeyError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(f"Unpacked in {folder}", flush=True)
    for change in changes:
        print(f"The archive is not as it was made: {change}", file=sys.stderr, flush=True)
    python = Path(sys.executable)
    if arguments.environment == "pinned":
        installed = subprocess.run(["make", "env", f"PYTHON={sys.executable}"], cwd=folder, check=False)
        python = folder / ".venv" / "bin" / "python"
        if installed.returncode:
            print("The pinned environment could not be installed (make env, see above).", file=sys.stderr)
            return 2
    rebuild(folder, python, arguments.cores)
    print(flush=True)
    # This program's own comparison, not the archive's.
    command = [str(python), "-m", "compositional.archive.comparison", str(folder)]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": str(SOURCES)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
