"""Names of finished runs in stores. This module needs no tensors, because Snakemake's own process checks whether a run is stored.

An entry is at entries/<plan>/<device>-<key>.json, next to the file of its tensors (records.store). The plan is the digest of what
configuration and code determine of a run before there is any data. The key is the digest of everything that determines the run's
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from compositional import files
from compositional.records import surroundings

PLANNED = ("family", "code", "lambda", "seed")


def stores(shared: str | None, results: Path = Path("results")) -> list[Path]:
    """The stores of a build in search order: the shared one, if there is one, then its own."""
    return [*([surroundings.expanded(shared)] if shared else []), results / "store"]


def plan_of(identity: dict[str, Any]) -> str:
    """Digest of what configuration and code determine of a run."""
    return files.digest({key: identity[key] for key in PLANNED})


def name_of(identity: dict[str, Any]) -> str:
    """Name of a run's entry below entries/."""
    return f"{plan_of(identity)}/{identity['device']}-{files.digest(identity)}"


def entries(folders: Iterable[Path], plan: str = "*", device: str = "auto") -> Iterator[Path]:
    """The entries of several stores, only the first one of each run; of one plan and one device, or of any ("*", "auto")."""
    pattern = f"{plan}/{'[!.]' if device == 'auto' else device + '-'}*.json"
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / "entries").glob(pattern)):
            found.setdefault(path.name, path)
    return iter(found.values())


def stored(folders: Iterable[Path], planned: Iterable[dict[str, Any]], device: str) -> bool:
    """Whether stores seem to have all of these runs, judged by what is known before there is any data."""
    folders = [*folders]
    return all(any(entries(folders, plan_of(of_run), device)) for of_run in planned)
