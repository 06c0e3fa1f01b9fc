"""Finished runs and checkpoints, addressed by everything that they depend on.

A pack job asks the store first and trains only what is missing, so a job that failed, or whose list of runs changed, repeats
nothing. Entries and checkpoints hold the state of a run, from which today's code writes the run's files. Each of them is either
intact (it matches its digest and its name) or counts as absent. Builds may share a store of finished runs: entries are replaced
atomically, and two entries with the same key are equal.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from compositional import files


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
        return self.folders[-1] / "checkpoints" / f"{Path(name).name}.safetensors"

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
                _write(_entry(folder, name), about, tensors)
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

    def save_checkpoint(self, name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Keep the state of a run in training, replacing its previous checkpoint."""
        _write(self._checkpoint(name), about, tensors)

    def load_checkpoint(self, name: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The last checkpoint of a run; None if it is missing or damaged. A damaged one is deleted."""
        found = read(self._checkpoint(name))
        if found is None:
            self._checkpoint(name).unlink(missing_ok=True)
        return found


def _entry(folder: Path, name: str) -> Path:
    return folder / "entries" / f"{name}.safetensors"


def _write(path: Path, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    text = json.dumps(about)
    with files.replacing(path) as temporary:
        # save_file would set its own permissions: no other user could read the file.
        temporary.write_bytes(save(tensors, {"key": path.stem, "state": text, "sha256": _digest(text, tensors)}))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Content of an entry or a checkpoint; None if it is missing or damaged."""
    try:
        with safe_open(path, framework="pt") as stored:
            about = stored.metadata()
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        if "key" in about and about["key"] != path.stem:  # another run's file under this run's name
            return None
        if about["sha256"] != _digest(about["state"], tensors):
            return None
        return json.loads(about["state"]), tensors
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
