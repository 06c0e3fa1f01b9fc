"""Datasets: raw files with checksums, or code that generates examples. A dataset is a module that defines what `Dataset` lists.

Its other functions are for its tasks: usually load(raw), which reads examples from the folder of its raw files, or functions that
generate examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """The contract of a module in this folder. Names with a default are optional."""

    # Its raw files by name, with their checksums and sources (`stages.download`); {} if there is nothing to download.
    FILES: dict[str, dict[str, Any]]
    # "name", "url", and "redistribution": whether an archive may contain its files. Without LICENSE, it may not.
    LICENSE: dict[str, Any] | None = None
    # from_hub(name): the bytes of a file, rebuilt from the Hugging Face hub.
    from_hub: Callable[[str], bytes] | None = None
    # extract(name, payload): the bytes of a file, extracted from the archive at its address.
    extract: Callable[[str, bytes], bytes] | None = None
