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


def stored(folders: Iterable[Path], planned: Iterable[dict[str, Any]], device: str, data: str | None = None) -> bool:
    """Whether stores seem to have all of these runs, judged by what is known before training.

    data: what the runs were trained on, by its digest; None if that is not known: entries of any data count.
    """
    folders = [*folders]
    return all(any(_is_of(path, of_run, data) for path in entries(folders, plan_of(of_run), device)) for of_run in planned)


def _is_of(entry: Path, of_run: dict[str, Any], data: str | None) -> bool:
    """Whether the run of an entry was trained on these data."""
    if data is None or entry.stem == name_of(of_run | {"data": data, "device": entry.name.partition("-")[0]}).partition("/")[2]:
        return True
    try:  # the names of runs with buffers depend on these, too
        return data in entry.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
