"""Rebuild an archive from raw data and report what agrees: make reproduce ARCHIVE=results/archive.zip

Needs Python 3.11 and make, but no package. The archive's files are checked against its manifest and unpacked, and its own pinned
environment is installed. Then the archived build is made again from raw data with the archive's own sources, and everything is
compared. With --runs, trained runs are taken from a file (make pack-runs), and only a random sample of them is trained again.
This runs the archive's code, so it asks first: only reproduce archives from people you trust. With --folder, a call continues
where an earlier one ended.

Exit status: 0 everything agrees, 1 something does not, 2 the archive cannot be used, 130 it was stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCES))

from compositional.archive import unpacking
from compositional.archive.layout import FOLDER, MANIFEST, ArchiveError
from compositional.records import surroundings
from compositional.terminal import commands

CONFIGURATION = f"{FOLDER}/config.json"
NEEDED = ("snakemake", "pandas", "torch")  # without these packages, nothing is built and nothing is compared
DEVICE = "results/device.json"  # an overlay, in a folder that only a rebuild has: files of the archive must not change


def surrounding(folder: Path, python: Path) -> dict[str, str]:
    """The environment of programs in the unpacked archive: with its sources and raw data, and its own store."""
    environment = dict(os.environ)
    data = folder / FOLDER / "data"
    environment[surroundings.MIRROR] = surroundings.mirror(environment, str(data) if data.is_dir() else None)
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment.get('PATH', '')}"
    environment.pop("PYTHONPATH", None)  # use the archive's sources, not ours
    environment["COMPOSITIONAL_STORE"] = ""  # and no runs of this machine's stores
    return environment


def configuration(folder: Path, device: str | None) -> list[str]:
    """The options that name the archive's configuration and, if another device is asked for, an overlay with that device."""
    if device is None:
        return ["--configfile", CONFIGURATION]
    (folder / DEVICE).parent.mkdir(exist_ok=True)
    (folder / DEVICE).write_text(json.dumps({"device": device}), encoding="utf-8")
    return ["--configfile", CONFIGURATION, DEVICE]


def rebuild(folder: Path, python: Path, cores: int, configured: list[str]) -> None:
    """Make everything that the archive lists from raw data. Failed results are reported as missing by the comparison."""
    command = [str(python), "-m", "snakemake", "results/manifest.json", "--cores", str(cores), "--keep-going"]
    if commands.run([*command, *configured], surrounding(folder, python), folder):
        print(f"The rebuild failed; missing results are shown below. {_continuing(folder)}", file=sys.stderr)


def _continuing(folder: Path) -> str:
    """How to go on with a rebuild that ended too early."""
    return f'The same call with --folder {folder} continues (make reproduce: OPTIONS="--folder {folder}").'


def _agreed(environment: str) -> bool:
    """Whether the user agrees to run the archive's code; no, if nobody can be asked."""
    installs = "installs the packages that the archive names, then " if environment == "pinned" else ""
    print(f"The rebuild {installs}runs the archive's code with your rights: only do so if you trust its authors.")
    return commands.agreed("Continue?")


def main() -> int:
    """Check and unpack an archive, and reproduce it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path, help="the archive, such as results/archive.zip")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to unpack: new, empty, or that of an earlier call, which continues (default: a new temporary folder)",
    )
    parser.add_argument(
        "--environment", choices=["pinned", "current"], default="pinned", help="install the archive's pins, or use this Python"
    )
    parser.add_argument("--runs", help="take trained runs from this file or address of `make pack-runs`")
    parser.add_argument("--sample", type=int, default=5, help="number of these runs to train again (default: 5)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], help="where runs train (default: as in the archive)")
    parser.add_argument("--cores", type=int, default=surroundings.cores(), help="cores of the rebuild (default: all)")
    parser.add_argument("--yes", action="store_true", help="do not ask before the archive's code runs")
    arguments = parser.parse_args()
    if arguments.sample < 0:
        parser.error(f"--sample {arguments.sample}: 0 trains none of the runs again")
    folder = (arguments.folder or Path(tempfile.mkdtemp(prefix="reproduce-"))).resolve()
    try:
        unpacking.unpack(arguments.archive, folder)
        print(f"Unpacked in {folder}; all files match the manifest", flush=True)
        return reproduced(folder, arguments)
    except ArchiveError as error:
        if arguments.folder is None:
            folder.rmdir()
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"Stopped. {_continuing(folder)}", file=sys.stderr)
        return commands.STOPPED


def reproduced(folder: Path, arguments: argparse.Namespace) -> int:
    """Ask, install, rebuild, compare. Returns the exit status."""
    if not (arguments.yes or _agreed(arguments.environment)):
        print(f"Nothing was installed or run. {_continuing(folder)}", file=sys.stderr)
        return 2
    python = Path(sys.executable)
    if arguments.environment == "current":
        if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
            print(
                f"{python} has no {missing[0]}. Use the Python of an environment that has the archive's packages "
                f"({folder}/envs/requirements.txt), or leave out --environment current, which installs them.",
                file=sys.stderr,
            )
            return 2
    else:
        failed = commands.run(["make", "env", f"PYTHON={sys.executable}"], os.environ, folder)
        python = folder / ".venv" / "bin" / "python"
        if failed:
            made = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["environment"]["python"]
            print(
                f"The pinned environment could not be installed (make env, see above). The archive was made with Python {made}, "
                f"this is {platform.python_version()}. Name another one (make reproduce PYTHON=...), or use this one's packages "
                '(OPTIONS="--environment current").',
                file=sys.stderr,
            )
            return 2
    checked, configured = 0, configuration(folder, arguments.device)
    runs = [str(python), "workflow/runs.py"]
    if arguments.runs:
        place = arguments.runs if "://" in arguments.runs else str(Path(arguments.runs).resolve())
        if commands.run([*runs, "unpack", place, *configured], surrounding(folder, python), folder):
            return 2
    rebuild(folder, python, arguments.cores, configured)
    if arguments.runs and arguments.sample:
        figures = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["figures"]
        command = [*runs, "check", "--figures", *figures, "--sample", str(arguments.sample), *configured]
        checked = commands.run(command, surrounding(folder, python), folder)
    print(flush=True)
    # This program's own comparison, not the archive's.
    command = [str(python), "-m", "compositional.archive.comparison", str(folder)]
    return max(checked, commands.run(command, os.environ | {"PYTHONPATH": str(SOURCES)}))


if __name__ == "__main__":
    sys.exit(main())
