"""Records: a JSON file next to each result that says what it was made from and how.

A run has run.json (training), evaluation.json and, if a figure needs it, representation.json. Splits, tables and figures have
<name>.provenance.json. A record holds the parameters, the code's fingerprint, the digests of the inputs, versions, machine and
commit, and the sha256 of each file that it describes. It also contains the recipe (compositional.planning.recipes) of its result,
and vouches for itself: `self` is the digest of everything else in it. Most of a record is the same whenever the same result is
made again. The rest (VOLATILE) is left out of everything that must have the same bytes.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from compositional import files
from compositional.records import surroundings

# Keys that may differ between two records of the same bytes: time, speed, the other runs in the process, and the commit, which
# may change without changing this code.
VOLATILE = ("finished", "pack", "self", "source", "wall_seconds")
SUFFIX = ".provenance.json"
# The records in a run's folder, and the files that each describes.
RUN_RECORDS = {
    "run.json": ("weights.safetensors", "history.csv"),
    "evaluation.json": ("metrics.csv", "predictions.csv"),
    "representation.json": ("representations.csv", "activations.safetensors", "vectors.csv"),
}
PACKAGES = ("datasets", "matplotlib", "numba", "numpy", "pandas", "safetensors", "scikit-learn", "scipy", "torch")
SOURCE = "archived/source.json"  # in an unpacked archive: the commit of its sources
ROOT = Path(__file__).parents[3]  # folder of the sources; results may be elsewhere


@cache
def installed(distribution: str) -> str | None:
    """The installed version without the name of its build ("+cpu"); None if there is none."""
    try:
        return metadata.version(distribution).split("+")[0]
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {name: installed(name) for name in PACKAGES}


@cache
def processor() -> str:
    """The CPU's name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@cache
def _asked() -> tuple[dict[str, Any], str]:
    """What git reports about the sources, and why it reports nothing."""
    try:
        if not Path(surroundings.git(ROOT, "rev-parse", "--show-toplevel").rstrip("\n")).samefile(ROOT):
            return {}, "the folder is a part of another repository"
        commit, date = surroundings.git(ROOT, "log", "-1", "--format=%H %cI").split()
        return {"commit": commit, "date": date, "dirty": bool(surroundings.git(ROOT, "status", "--porcelain"))}, ""
    except subprocess.CalledProcessError as error:
        return {}, f"git says: {error.stderr.strip()}"
    except (OSError, ValueError) as error:
        return {}, str(error)


def without_commit() -> str | None:
    """Why records name no commit although the sources' folder has a .git; None if they name one, or if it has none."""
    return None if source() or not (ROOT / ".git").exists() else _asked()[1]


@cache
def source() -> dict[str, Any]:
    """The commit of the sources, its date, and whether files were altered; empty if this is unknown.

    In an unpacked archive: the commit that the archive was made from.
    """
    if asked := _asked()[0]:
        return asked
    try:
        about = json.loads((ROOT / SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    altered = any(not (ROOT / name).is_file() or files.sha256(ROOT / name) != digest for name, digest in about["files"].items())
    return {"commit": about["commit"], "date": about["date"], "dirty": about["dirty"] or altered}


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the keys that differ each time the same result is made."""
    return {key: value for key, value in record.items() if key not in VOLATILE}


def digests(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """sha256 of files, and of all files in folders, by path below `folder`. Hidden files are ignored: the project makes none."""
    found = {}
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file() and not file.name.startswith("."):
                found[str(file.relative_to(folder))] = files.sha256(file)
    return found


def circumstances(seconds: float) -> dict[str, Any]:
    """The part about versions, machine, commit and time that every record has."""
    return {
        "versions": versions(),
        "source": source(),
        "wall_seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write(path: Path, record: dict[str, Any], recipe: dict[str, Any], outputs: Iterable[Path]) -> None:
    """Write the record of `outputs`, which are files or folders next to it that were made by `recipe`."""
    whole = record | {"recipe": recipe, "recipe_digest": files.digest(recipe), "files": digests(path.parent, outputs)}
    whole.pop("self", None)
    files.write_json(path, whole | {"self": files.digest(whole)})


@contextmanager
def recording(path: Path, outputs: list[Path], recipe: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the record of what the block makes: `outputs`, which are files or folders next to the record.

    The block may add to the dictionary that it gets. If the block fails, no record is written.
    """
    began = time.monotonic()
    record = {"code": recipe["code"]["fingerprint"]}
    yield record
    record |= circumstances(time.monotonic() - began)
    write(path, {"device_name": processor()} | record, recipe, outputs)


def read(path: Path) -> dict[str, Any]:
    """A record, or {} if there is none.

    Raises:
        ValueError: the file is not a record.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(record, dict):
        raise ValueError(f"{path} is no record")
    return record


def vouched(path: Path) -> dict[str, Any] | None:
    """A record that vouches for itself; None if it is missing, was damaged or edited, or has an older format.

    Raises:
        PermissionError: this user may not read it, so what it says is unknown.
    """
    try:
        record = read(path)
        own = record.pop("self")
        return record if own == files.digest(record) and {"recipe", "recipe_digest", "inputs", "files"} <= record.keys() else None
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError):
        return None


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The records of many runs in summary, for the record of a table that is made from them."""

    def distinct(key: str) -> list:
        values = {json.dumps(record[key], sort_keys=True): record[key] for record in records if key in record}
        return [values[text] for text in sorted(values)]

    return {
        "runs": len(records),
        "diverged": sorted(record["run"] for record in records if record.get("status") == "diverged"),
        "seeds": distinct("seed"),
        "families": distinct("family"),
        "code": distinct("code"),
        "data": distinct("data"),
        "raw_sha256": {name: digest for record in records for name, digest in record.get("raw_sha256", {}).items()},
        "device": distinct("device"),
        "device_name": distinct("device_name"),
        "versions": distinct("versions"),
    }


def environment(lock: Path) -> dict[str, Any]:
    """The installed versions of Python and of each package of a lock file (null: not installed)."""
    names = [line.partition("==")[0] for line in lock.read_text(encoding="utf-8").split()]
    return {"python": platform.python_version(), "packages": {name: installed(name) for name in names}}
