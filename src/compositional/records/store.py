"""Finished runs and checkpoints, addressed by everything that they depend on.

A pack job asks the store first and trains only what is missing, so a job that failed, or whose list of runs changed, repeats
nothing. Entries and checkpoints hold the state of a run, from which today's code writes the run's files. Each of them is either
intact (it matches its digest and its name) or counts as absent. Builds may share a store of finished runs: entries are replaced
atomically, and two entries with the same key are equal.

An entry is a JSON file and a file with the run's tensors, which is named by its sha256. A run's own weights are a hard link to
that file or share its blocks, if the file system supports either. Files are therefore replaced and never changed in place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from compositional import files
from compositional.records.links import share

# What an entry holds about how its run was made. With the run's state it is all that is needed to write the run's record.
FACTS = ("device_name", "versions", "source", "wall_seconds", "finished")


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    """Digest of everything in a file. Without it, training would continue from data that were altered on disk."""
    return hashlib.sha256(save(tensors, {"state": text})).hexdigest()


class Store:
    """Folders of finished runs (entries/), addressed by name (records.entries), and of runs in training (checkpoints/).

    Finished runs are searched for in all folders in order, and kept in the first one that can be written. The last folder belongs
    to the build; only this one holds runs in training.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders

    def _checkpoint(self, name: str) -> Path:
        # The plan is part of the name, so that it is known whether a configured run has it.
        return self.folders[-1] / "checkpoints" / f"{name.replace('/', '-')}.safetensors"

    def add(self, name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> OSError | None:
        """Keep a finished run, its JSON data and its tensors, and delete its checkpoint.

        Returns:
            Why the run is in a later folder instead of the first one; None if it is in the first.

        Raises:
            OSError: no folder can be written.
        """
        refused = None
        for folder in self.folders:
            try:
                write(_entry(folder, name), about, save(tensors))
                break
            except OSError as error:
                if folder == self.folders[-1]:
                    raise
                refused = error
        self._checkpoint(name).unlink(missing_ok=True)
        return refused

    def load(self, name: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """A finished run; None if it is missing or damaged."""
        return next((found for folder in self.folders if (found := read(_entry(folder, name)))), None)

    def discard(self, name: str) -> list[Path]:
        """Delete the damaged entries of a run; returns their paths, also of those that this user may not delete."""
        found = [path for folder in self.folders if os.path.exists(path := _entry(folder, name))]
        for path in found:
            with suppress(OSError):
                path.unlink()
        return found

    def write_tensors(self, name: str, tensors: dict[str, Tensor], path: Path) -> None:
        """Write a finished run's tensors to a file, which takes no extra space if the store has the same bytes."""
        payload = save(tensors)
        places = [tensors_beside(_entry(folder, name), hashlib.sha256(payload).hexdigest()) for folder in self.folders]
        if place := next((place for place in places if _holds(place, payload)), None):
            share(place, path)
        else:
            with files.replacing(path) as temporary:
                temporary.write_bytes(payload)

    def save_checkpoint(self, name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Keep the state of a run in training, replacing its previous checkpoint."""
        path, text = self._checkpoint(name), json.dumps(about)
        with files.replacing(path) as temporary:
            # save_file would set its own permissions: no other user could read the file.
            temporary.write_bytes(save(tensors, {"key": path.stem, "state": text, "sha256": _digest(text, tensors)}))

    def load_checkpoint(self, name: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The last checkpoint of a run; None if it is missing or damaged. A damaged one is deleted."""
        path = self._checkpoint(name)
        try:
            with safe_open(path, framework="pt") as stored:
                about = stored.metadata()
                tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
            if about["key"] == path.stem and about["sha256"] == _digest(about["state"], tensors):
                return json.loads(about["state"]), tensors
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            pass
        path.unlink(missing_ok=True)
        return None


def _entry(folder: Path, name: str) -> Path:
    return folder / "entries" / f"{name}.json"


def tensors_beside(entry: Path, sha256: str) -> Path:
    """The file of an entry's tensors."""
    return entry.with_name(f"weights-{sha256}.safetensors")


def _holds(path: Path, payload: bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() == payload
    except OSError:  # such as the file of another user of a shared store, who does not let others read it
        return False


def write(entry: Path, about: dict[str, Any], payload: bytes) -> None:
    """Write an entry, whose tensors are a safetensors file of these bytes."""
    sha256 = hashlib.sha256(payload).hexdigest()
    if not _holds(place := tensors_beside(entry, sha256), payload):  # replacing equal bytes would break their links
        with files.replacing(place) as temporary:
            temporary.write_bytes(payload)
    held = {"key": entry.stem, "about": about, "weights": sha256}
    files.write_json(entry, held | {"sha256": files.digest(held)})


def adopt(source: Path, entry: Path) -> None:
    """Move an intact entry and its tensors to the place of another one."""
    tensors = tensors_of(source)
    if tensors and not _holds(place := entry.with_name(tensors.name), tensors.read_bytes()):
        share(tensors, place)
    os.replace(source, entry)


def _held(entry: Path) -> dict[str, Any] | None:
    """The JSON data of an entry; None if they are missing or damaged."""
    try:
        held = json.loads(entry.read_bytes())
        whole = held.pop("sha256") == files.digest(held) and held["key"] == entry.stem
        return held if whole and re.fullmatch("[0-9a-f]{64}", held["weights"]) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def tensors_of(entry: Path) -> Path | None:
    """The file with an entry's tensors, which may be missing; None if the entry is missing or damaged."""
    held = _held(entry)
    return tensors_beside(entry, held["weights"]) if held else None


def read(entry: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Content of an entry; None if it is missing or damaged."""
    if not (held := _held(entry)):
        return None
    try:
        payload = tensors_beside(entry, held["weights"]).read_bytes()
        whole = hashlib.sha256(payload).hexdigest() == held["weights"]
        return (held["about"], safetensors.torch.load(payload)) if whole else None
    except (OSError, ValueError, SafetensorError):
        return None
