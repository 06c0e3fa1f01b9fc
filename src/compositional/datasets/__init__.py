"""What tasks are made of: raw files with checksums, or what generates examples. A dataset is a module with what `Dataset` says.

Its other functions are for its tasks: usually load(raw), which reads examples from the folder of its raw files, or functions that
generate them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """What a module here defines; what has a default, where it needs that."""

    # Its raw files by name, what each must be and where it is available (`stages.download`); {} if there is nothing to download.
    FILES: dict[str, dict[str, Any]]
    # "name", "url" and "redistribution", whether an archive may hold its files; without it, none may.
    LICENSE: dict[str, Any] | None = None
    # from_hub(name): the bytes of a file, rebuilt from the Hugging Face hub.
    from_hub: Callable[[str], bytes] | None = None
    # extract(name, payload): the bytes of a file, out of the archive that its address gives.
    extract: Callable[[str, bytes], bytes] | None = None
