"""Files of the library that changed after this process read them: it computes with other code than they contain."""

from __future__ import annotations

import sys
from pathlib import Path

from compositional.files import sha256

_known: dict[Path, str] = {}  # the digest of each file when it was first seen


def check() -> None:
    """Look at every module of the library that is imported now.

    Raises:
        RuntimeError: the files of some changed since the last time.
    """
    places = [module.__file__ for name, module in [*sys.modules.items()] if name.split(".")[0] == "compositional"]
    now = {path: sha256(path) for path in map(Path, filter(None, places)) if path.exists()}
    if changed := [str(path) for path, digest in now.items() if _known.setdefault(path, digest) != digest]:
        raise RuntimeError(f"{', '.join(changed)}: changed after this process imported it. Restart the kernel to use it")
