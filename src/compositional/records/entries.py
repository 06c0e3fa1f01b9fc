"""Where stores keep finished runs, by what these depend on. Without tensors: Snakemake's own process asks whether a run is there.

An entry is at entries/<plan>/<device>-<key>.safetensors. The plan is what configuration and code say of a run before there is any
data; the key is the digest of all that determines its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from compositional import files

PLANNED = ("family", "code", "lambda", "seed")


def stores(shared: str | None, results: Path = Path("results")) -> list[Path]:
    """The stores of a build in the order in which they are asked: the shared one, if there is one, and its own."""
    return [*([Path(shared).expanduser()] if shared else []), results / "store"]


def plan_of(identity: dict[str, Any]) -> str:
    """Digest of what configuration and code say of a run."""
    return files.digest({key: identity[key] for key in PLANNED})


def name_of(identity: dict[str, Any]) -> str:
    """Of the entry of a run, below entries/."""
    return f"{plan_of(identity)}/{identity['device']}-{files.digest(identity)}"


def entries(folders: Iterable[Path], plan: str = "*", device: str = "auto") -> Iterator[Path]:
    """The entries of stores, each run's first alone; of a plan, and made on a device, or on any (auto)."""
    pattern = f"{plan}/{'[!.]' if device == 'auto' else device + '-'}*.safetensors"
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / "entries").glob(pattern)):
            found.setdefault(path.name, path)
    return iter(found.values())


def stored(folders: Iterable[Path], planned: Iterable[dict[str, Any]], device: str) -> bool:
    """Whether stores seem to have all of these runs, by what is known of them before there is any data."""
    folders = [*folders]
    return all(any(entries(folders, plan_of(of_run), device)) for of_run in planned)
