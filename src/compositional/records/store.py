"""Finished runs and checkpoints, addressed by all that they depend on.

A pack job asks the store first and trains only what is missing, so a job that failed, or whose list of runs changed, repeats
nothing. An entry or a checkpoint is either whole (it matches its digests) or counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file
from torch import Tensor

from compositional import files


def key_of(identity: dict[str, Any]) -> str:
    """Digest of everything that determines a run's bytes."""
    return files.digest(identity)


def _digest(state: str, tensors: dict[str, Tensor]) -> str:
    """Of all that a checkpoint holds: what was altered on disk would be trained on."""
    return hashlib.sha256(save(tensors, {"state": state})).hexdigest()


class Store:
    """A folder of finished runs (entries/) and of runs in training (checkpoints/)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _entry(self, key: str) -> Path:
        return self.folder / "entries" / key[:2] / key

    def _checkpoint(self, key: str) -> Path:
        return self.folder / "checkpoints" / f"{key}.safetensors"

    def has(self, key: str) -> bool:
        """Whether the run is there, complete and unaltered."""
        entry = self._entry(key)
        try:
            digests = json.loads((entry / "entry.json").read_text())
            return bool(digests) and all(files.sha256(entry / name) == digest for name, digest in digests.items())
        except (OSError, ValueError, AttributeError):  # the last: JSON, and no digests
            return False

    def add(self, key: str, contents: Path) -> None:
        """Keep copies of all files in the folder `contents` and drop the run's checkpoint.

        A run that is there already stays: a job left over from a killed build may have finished it meanwhile.
        """
        if self.has(key):
            self._checkpoint(key).unlink(missing_ok=True)
            return
        with files.replacing_folder(self._entry(key)) as temporary:
            digests = {}
            for path in sorted(contents.iterdir()):
                shutil.copy2(path, temporary / path.name)
                digests[path.name] = files.sha256(path)
            (temporary / "entry.json").write_text(json.dumps(digests, indent=2, sort_keys=True))
        self._checkpoint(key).unlink(missing_ok=True)

    def restore(self, key: str, folder: Path) -> None:
        """Copy a finished run's files into `folder`, each of them whole or not at all, the record (run.json) last."""
        for path in sorted(self._entry(key).iterdir(), key=lambda path: (path.name == "run.json", path.name)):
            if path.name != "entry.json":
                with files.replacing(folder / path.name) as temporary:
                    shutil.copyfile(path, temporary)

    def save_checkpoint(self, key: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Keep a run in training, what JSON holds of it and its tensors, replacing what was kept before."""
        text = json.dumps(about)
        with files.replacing(self._checkpoint(key)) as temporary:
            save_file(tensors, temporary, {"state": text, "sha256": _digest(text, tensors)})

    def load_checkpoint(self, key: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The run as last kept; None if there is none, or it is not what was kept."""
        path = self._checkpoint(key)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as stored:
                about = stored.metadata()
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            if about["sha256"] != _digest(about["state"], tensors):
                raise ValueError("altered")
            return json.loads(about["state"]), tensors
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            path.unlink(missing_ok=True)
            return None
