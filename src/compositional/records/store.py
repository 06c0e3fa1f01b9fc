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


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    """Of all that a file holds: what was altered on disk would be trained on."""
    return hashlib.sha256(save(tensors, {"state": text})).hexdigest()


class Store:
    """Folders of finished runs (entries/), by their names (records.entries), and of runs in training (checkpoints/).

    Finished runs are looked for in every folder, the first one first, and kept in the first one that can be written. The last
    folder is the build's own: only there are runs in training.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders

    def _checkpoint(self, name: str) -> Path:
        return self.folders[-1] / "checkpoints" / f"{Path(name).name}.safetensors"

    def add(self, name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> OSError | None:
        """Keep a finished run, what JSON holds of it and its tensors, and drop its checkpoint.

        Returns:
            Why it is not in the first folder but in a later one.

        Raises:
            OSError: none can be written.
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
        """A finished run; None if it is not there, or not what was kept."""
        return next((found for folder in self.folders if (found := read(_entry(folder, name)))), None)

    def save_checkpoint(self, name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Keep a run in training, replacing what was kept before."""
        _write(self._checkpoint(name), about, tensors)

    def load_checkpoint(self, name: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The run as last kept; None if there is none, or it is not what was kept: then it is removed."""
        found = read(self._checkpoint(name))
        if found is None:
            self._checkpoint(name).unlink(missing_ok=True)
        return found


def _entry(folder: Path, name: str) -> Path:
    return folder / "entries" / f"{name}.safetensors"


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
