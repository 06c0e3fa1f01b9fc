"""Finished runs and checkpoints, addressed by all that they depend on.

A pack job asks the store first and trains only what is missing, so a job that failed, or whose list of runs changed, repeats
nothing. Both are states of a run, from which today's code writes its files. An entry or a checkpoint is either whole (it matches
its digest and its name) or counts as absent. Builds may share a store of finished runs: entries replace each other whole, and two
that are made of one key are equal.
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


def key_of(identity: dict[str, Any]) -> str:
    """Digest of everything that determines a run's bytes."""
    return files.digest(identity)


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    """Of all that a file holds: what was altered on disk would be trained on."""
    return hashlib.sha256(save(tensors, {"state": text})).hexdigest()


def entry_of(folder: Path, key: str) -> Path:
    """Where a store has a finished run."""
    return folder / "entries" / key[:2] / f"{key}.safetensors"


class Store:
    """A folder of finished runs (entries/) and of runs in training (checkpoints/).

    shared: another such folder, which several builds use. Finished runs are looked for there first, and kept there if it can be
    written; runs in training are this build's own.
    """

    def __init__(self, folder: Path, shared: Path | None = None) -> None:
        self.folder = folder
        self.folders = [shared, folder] if shared else [folder]

    def _checkpoint(self, key: str) -> Path:
        return self.folder / "checkpoints" / f"{key}.safetensors"

    def add(self, key: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> OSError | None:
        """Keep a finished run, what JSON holds of it and its tensors, and drop its checkpoint.

        Returns:
            Why it is not in the shared store but in the build's own.

        Raises:
            OSError: it can be written to neither.
        """
        refused = None
        for folder in self.folders:
            try:
                _write(entry_of(folder, key), about, tensors)
                break
            except OSError as error:
                if folder == self.folder:
                    raise
                refused = error
        self._checkpoint(key).unlink(missing_ok=True)
        return refused

    def load(self, key: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """A finished run; None if it is not there, or not what was kept."""
        return next((found for folder in self.folders if (found := read(entry_of(folder, key)))), None)

    def save_checkpoint(self, key: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Keep a run in training, replacing what was kept before."""
        _write(self._checkpoint(key), about, tensors)

    def load_checkpoint(self, key: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The run as last kept; None if there is none, or it is not what was kept: then it is removed."""
        found = read(self._checkpoint(key))
        if found is None:
            self._checkpoint(key).unlink(missing_ok=True)
        return found


def _write(path: Path, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    text = json.dumps(about)
    with files.replacing(path) as temporary:
        # save_file would give it a mode of its own: nobody else could read it.
        temporary.write_bytes(save(tensors, {"key": path.stem, "state": text, "sha256": _digest(text, tensors)}))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """What an entry or a checkpoint holds; None if it is not there, or not what was kept."""
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
