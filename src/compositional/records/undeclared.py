"""A plug-in may not read files whose changes nothing would notice."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compositional.records.provenance import ROOT

# What is imported is noticed (records.fingerprint); the last two are what numba makes of it.
_CODE = (".py", ".pyc", ".so", ".nbi", ".nbc")
_rules: list[tuple[list[Path], str]] = []


def _refuse(event: str, arguments: tuple) -> None:
    """An audit hook: stops what reads another file of the project than those allowed now."""
    if event != "open" or not _rules or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path, mode, flags = Path(os.path.abspath(os.fsdecode(arguments[0]))), arguments[1], arguments[2]
    allowed, why = _rules[-1]
    if any(letter in mode for letter in "wax") if mode else flags & (os.O_WRONLY | os.O_RDWR):
        return
    project = Path.cwd(), ROOT
    # Installed libraries and temporary files may be there, too.
    others = [Path(folder) for folder in (sys.prefix, sys.base_prefix, tempfile.gettempdir())]
    others = [folder for folder in others if _within(folder, project)]
    if not _within(path, project) or _within(path, [*others, *allowed]) or path.suffix in _CODE or "__pycache__" in path.parts:
        return
    raise PermissionError(f"{why}: not {path}")


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder == path or folder in path.parents for folder in folders)


sys.addaudithook(_refuse)


@contextmanager
def refused(allowed: Sequence[Path], why: str) -> Iterator[None]:
    """Within the context, Python can read no files of the working folder and of the sources but those allowed, and code.

    why: the beginning of the error.
    """
    _rules.append(([named for path in allowed for named in (path.absolute(), path.resolve())], why))
    try:
        yield
    finally:
        _rules.pop()
