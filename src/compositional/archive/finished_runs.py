"""Finished runs in one file: entries of a store, packed for others and added to their store.

The file is a zip of entries (compositional.records.store), uncompressed, and of runs.json with the sha256 of each. From an entry
the workflow writes a run's weights, history and record without training. Nothing in the file is executed, no member's name is
used as a path, and an entry that is there already is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from compositional import files
from compositional.archive.bundle import ArchiveError
from compositional.archive.unpacking import members_of
from compositional.records.entries import PLANNED, name_of
from compositional.records.store import read

FORMAT = 1
INDEX = "runs.json"
# What an entry holds as JSON (stages.train, training.state).
_STATE = {"seed": int, "strength": int | float, "step": int, "diverged_at": int | None, "history": list, "seconds": int | float}
_FACTS = {"device_name", "versions", "source", "wall_seconds", "finished"}


def identity_of(path: Path) -> dict[str, Any] | None:
    """What the run of an entry depends on; None if the entry is damaged, or another one than its name says."""
    found = read(path)
    identity = found[0].get("identity") if found and isinstance(found[0], dict) else None
    if not isinstance(identity, dict) or not {*PLANNED, "data", "device"} <= identity.keys():
        return None
    return identity if Path(name_of(identity)).name == path.stem else None


def pack(destination: Path, paths: Iterable[Path], figures: list[str]) -> None:
    """Write entries into one file; the same entries give the same bytes. figures: which they are of."""
    by_name = {path.name: path for path in paths}
    with files.replacing(destination) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as stored:
        digests = {name: files.sha256(path) for name, path in sorted(by_name.items())}
        index = files.json_bytes({"format": FORMAT, "figures": figures, "entries": digests})
        for name, payload in ((INDEX, index), *((name, by_name[name].read_bytes()) for name in digests)):
            member = zipfile.ZipInfo(name)  # of 1980, whenever it is packed
            member.external_attr = 0o100644 << 16
            stored.writestr(member, payload)


def _is_run(path: Path) -> bool:
    """Whether an entry with an identity is one from which a run's files can be written."""
    about, tensors = read(path) or ({}, {})
    try:
        state = about["state"]
        return (
            {*about} == {"state", "facts", "identity"}
            and {*about["facts"]} == _FACTS
            and {*state} == {*_STATE}
            and all(isinstance(state[key], kind) for key, kind in _STATE.items())
            and {*tensors} == {"weights"}
            and (tensors["weights"].ndim, tensors["weights"].dtype) == (1, torch.float32)
            and (state["seed"], state["strength"]) == (about["identity"]["seed"], about["identity"]["lambda"])
            and all([*map(type, row)][:3] == [int, str, str] and isinstance(row[3], int | float) for row in state["history"])
        )
    except (LookupError, TypeError):
        return False


def _digests(stored: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    """The sha256 of each entry by the index of the file.

    Raises:
        ArchiveError: there is no index that this program reads, or it does not name exactly what is there.
    """
    if INDEX not in members:
        raise ArchiveError(f"it holds no finished runs: it has no {INDEX}")
    try:
        index = json.loads(stored.read(members[INDEX]))
        version, digests = index["format"], dict(index["entries"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ArchiveError(f"its {INDEX} is none ({type(error).__name__})") from error
    if version != FORMAT:
        raise ArchiveError(f"it has format {version!r}, this program reads {FORMAT}")
    if strange := [name for name in members if name != INDEX and not re.fullmatch(r"(cpu|cuda)-[0-9a-f]{64}\.safetensors", name)]:
        raise ArchiveError(f"it holds {strange[0]!a}, which is no entry of a store")
    if differing := sorted(digests.keys() ^ (members.keys() - {INDEX})):
        raise ArchiveError(f"{differing[0]!a} is not in both the file and its {INDEX}")
    return digests


def unpack(source: Path, folder: Path) -> tuple[int, int]:
    """Add the entries of a file to a store. All are checked first: none is added if one is not as it should be.

    Returns:
        How many were added, and how many were there already.

    Raises:
        ArchiveError: the file is none of ours, or something in it is not what its digests say. Nothing was added.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(source) as stored, tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temporary:
            members = members_of(stored, source.stat().st_size)
            checked: dict[Path, Path] = {}
            for name, digest in _digests(stored, members).items():
                payload = stored.read(members[name])
                if hashlib.sha256(payload).hexdigest() != digest:
                    raise ArchiveError(f"{name!a} is not what its {INDEX} says")
                path = Path(temporary) / name
                path.write_bytes(payload)
                identity = identity_of(path)
                if identity is None or not _is_run(path):
                    raise ArchiveError(f"{name!a} is no finished run, or another one than its name says")
                checked[path] = folder / "entries" / f"{name_of(identity)}.safetensors"
            added = 0
            for path, place in checked.items():
                if read(place) is None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(path, place)
                    added += 1
            return added, len(checked) - added
    except ArchiveError as error:
        raise ArchiveError(f"{source} is not to be trusted: {error}. Nothing was added") from error
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise ArchiveError(f"{source} can't be unpacked to {folder}: {str(error)!a}") from error
