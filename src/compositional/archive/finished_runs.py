"""Finished runs in one file: entries of a store, packed so that others can add them to their store.

The file is an uncompressed zip with the two files of each entry (compositional.records.store), and runs.json with the sha256 of
every file. From an entry the workflow writes a run's weights, history and record without training. Nothing in the file is
executed, no member's name is used as a path, and existing entries are left unchanged.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from compositional import files
from compositional.archive.layout import ArchiveError
from compositional.archive.unpacking import members_of
from compositional.records.entries import PLANNED, name_of
from compositional.records.store import FACTS, adopt, read, tensors_of

FORMAT = 2
UNPACKING = ".unpacking-"  # how a folder's name begins in which a file is unpacked
INDEX = "runs.json"
MEMBER = r"(cpu|cuda)-[0-9a-f]{64}\.json|weights-[0-9a-f]{64}\.safetensors"
# What an entry holds as JSON of a run's state (training.state).
_STATE = {"seed": int, "strength": int | float, "step": int, "diverged_at": int | None, "history": list, "seconds": int | float}


def identity_of(path: Path) -> dict[str, Any] | None:
    """Everything that the run of an entry depends on; None if the entry is damaged or does not match its name."""
    found = read(path)
    identity = found[0].get("identity") if found and isinstance(found[0], dict) else None
    if not isinstance(identity, dict) or not {*PLANNED, "data", "device"} <= identity.keys():
        return None
    return identity if Path(name_of(identity)).name == path.stem else None


def pack(destination: Path, paths: Iterable[Path], figures: list[str]) -> None:
    """Write entries into one file; the same entries give the same bytes. figures: names of the figures that need them."""
    by_name = {path.name: path for entry in paths for path in (entry, tensors_of(entry)) if path}
    with files.replacing(destination) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as stored:

        def add(name: str, payload: bytes) -> str:
            member = zipfile.ZipInfo(name)  # its default date is 1980, so the bytes do not depend on the time
            member.external_attr = 0o100644 << 16
            stored.writestr(member, payload)
            return hashlib.sha256(payload).hexdigest()

        # Each file is read once, because another build may write it again meanwhile.
        digests = {name: add(name, path.read_bytes()) for name, path in sorted(by_name.items())}
        add(INDEX, files.json_bytes({"format": FORMAT, "figures": figures, "entries": digests}))


def _is_run(path: Path) -> bool:
    """Whether a run's files can be written from an entry that has an identity."""
    about, tensors = read(path) or ({}, {})
    try:
        state = about["state"]
        return (
            {*about} == {"state", "facts", "identity"}
            and {*about["facts"]} == {*FACTS}
            and {*state} == {*_STATE}
            and all(isinstance(state[key], kind) for key, kind in _STATE.items())
            and torch.float32 in (kinds := {tensor.dtype for tensor in tensors.values()})
            and not any(kind.is_floating_point for kind in kinds - {torch.float32})
            and (state["seed"], state["strength"]) == (about["identity"]["seed"], about["identity"]["lambda"])
            and all([*map(type, row)][:3] == [int, str, str] and isinstance(row[3], int | float) for row in state["history"])
        )
    except (LookupError, TypeError):
        return False


def _digests(stored: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    """The sha256 of each entry according to the index of the file.

    Raises:
        ArchiveError: the index is missing, has an unknown format, or does not list exactly the members of the file.
    """
    if INDEX not in members:
        raise ArchiveError(f"it holds no finished runs: it has no {INDEX}")
    try:
        index = json.loads(stored.read(members[INDEX]))
        version, digests = index["format"], dict(index["entries"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ArchiveError(f"its {INDEX} cannot be read ({type(error).__name__})") from error
    if version != FORMAT:
        raise ArchiveError(f"it has format {version!r}, this program reads {FORMAT}")
    if strange := [name for name in members if name != INDEX and not re.fullmatch(MEMBER, name)]:
        raise ArchiveError(f"it holds {strange[0]!a}, which is not a store entry")
    if differing := sorted(digests.keys() ^ (members.keys() - {INDEX})):
        raise ArchiveError(f"{differing[0]!a} is missing in the file or in its {INDEX}")
    return digests


def unpack(source: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Add the entries of a file to a store. All are checked first; if one is wrong, none is added.

    Returns:
        The plans of the entries that were added, and of those that already existed.

    Raises:
        ArchiveError: the file is not one of ours, or a member does not match its digest. Nothing was added.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(source) as stored, tempfile.TemporaryDirectory(dir=folder, prefix=UNPACKING) as temporary:
            members = members_of(stored, source.stat().st_size)
            digests = _digests(stored, members)
            for name, digest in digests.items():
                payload = stored.read(members[name])
                if hashlib.sha256(payload).hexdigest() != digest:
                    raise ArchiveError(f"{name!a} is not what its {INDEX} says")
                (Path(temporary) / name).write_bytes(payload)
            checked: dict[Path, Path] = {}
            for path in sorted(Path(temporary).glob("*.json")):
                identity = identity_of(path)
                if identity is None or not _is_run(path):
                    raise ArchiveError(f"{path.name!a} is not a finished run, or not the one in its name")
                checked[path] = folder / "entries" / f"{name_of(identity)}.json"
            named = {*(path.name for path in checked), *(place.name for path in checked if (place := tensors_of(path)))}
            if unused := sorted(digests.keys() - named):
                raise ArchiveError(f"{unused[0]!a} belongs to no run")
            new = {path: place for path, place in checked.items() if read(place) is None}
            for path, place in new.items():
                adopt(path, place)
            there = [place.parent.name for path, place in checked.items() if path not in new]
            return [place.parent.name for place in new.values()], there
    except ArchiveError as error:
        raise ArchiveError(f"{source} cannot be trusted: {error}. Nothing was added") from error
    except Exception as error:  # a damaged zip file may raise almost any exception
        raise ArchiveError(f"{source} can't be unpacked to {folder}: {str(error) or type(error).__name__!a}") from error
