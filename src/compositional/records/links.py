"""Files with the same bytes that take the space of one: they share blocks, or are one file with several names (hard links).

What is written into a hard link changes the file under all its names. This project always replaces files (compositional.files),
which leaves the other names as they are.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from compositional import files

_times: dict[Path, tuple[int, int]] = {}  # of files and folders that jobs of this process may change
_FICLONE = 0x40049409  # Linux: two files share blocks until one of them is written to


def share(source: Path, path: Path) -> None:
    """Make `path` a file with the bytes of `source` that takes as little space as the file system allows.

    The two share blocks if that is possible. Otherwise `path` is a hard link, if a new file would have the same mode and this
    user may write to `source`; systems often forbid links to other users' files. Otherwise it is a copy.
    """
    with files.replacing(path) as temporary:
        try:
            with source.open("rb") as held, temporary.open("rb+") as new:
                fcntl.ioctl(new, _FICLONE, held.fileno())
            return
        except OSError:
            pass
        modes = {stat.S_IMODE(one.stat().st_mode) for one in (source, temporary)}
        if len(modes) == 1 and os.access(source, os.W_OK):
            temporary.unlink()
            try:
                os.link(source, temporary)
                return
            except OSError:  # another file system, too many names, not permitted
                pass
        shutil.copyfile(source, temporary)


def is_linked(path: Path) -> bool:
    """Whether a file has several names."""
    return path.is_file() and path.stat().st_nlink > 1


def keep_backups_apart(persistence: ModuleType) -> None:
    """Change how Snakemake's module `persistence` keeps the old version of what a job updates.

    If the job fails, Snakemake writes the old bytes back into the file, and through a hard link into the store. Such a file now
    becomes a file of its own first. And a folder's copy that a killed call left is removed before a new copy is made, which fails
    otherwise.

    Raises:
        ValueError: this version of Snakemake has no restore_output.
    """
    keepers: list[Any] = [kind for kind in vars(persistence).values() if isinstance(kind, type)]
    keepers = [kind for kind in keepers if "restore_output" in vars(kind)]
    if not keepers:
        raise ValueError("This Snakemake has no persistence.restore_output; use a version from envs/requirements.txt")
    for keeper in keepers:
        if not hasattr(keeper.restore_output, "__wrapped__"):  # another call in this process may have done it
            keeper.restore_output = _parting(keeper.restore_output)
            keeper.backup_output = _anew(keeper.backup_output)


def _anew(backup: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    """The method `backup`, which copies a file or folder, for one that was copied before."""

    @wraps(backup)
    def backup_output(self: Any, path: Path) -> None:
        _times.pop(path, None)
        try:
            self.cleanup_backup(path)
            held = path.stat()
            backup(self, path)
            # The copy has a new time. A damaged file would come back older than its record, and the damage would not be noticed.
            _times[path] = held.st_atime_ns, max(held.st_mtime_ns, held.st_ctime_ns)
        except OSError:
            # Another call (--nolock) makes or copies the same now. A failed job then leaves what it made, which only counts with
            # its record.
            with suppress(OSError):
                self.cleanup_backup(path)

    return backup_output


def _parting(restore: Callable[[Any, Path], bool]) -> Callable[[Any, Path], bool]:
    """The method `restore`, which writes into a file, for files that other names must not share."""

    @wraps(restore)
    def restore_output(self: Any, path: Path) -> bool:
        if is_linked(path):
            with files.replacing(path) as temporary:
                shutil.copyfile(path, temporary)
        try:
            restored = restore(self, path)
        except OSError:  # as above, or a folder that is a link
            return False
        if restored and path in _times:
            os.utime(path, ns=_times.pop(path))
        return restored

    return restore_output
