"""Files that have the same bytes and take the room of one: they share blocks, or are one file with several names.

Under one name of such a file must not be written what is not to be read under the others. All that this project writes replaces
files (compositional.files), so it parts them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from pathlib import Path

from compositional import files

_FICLONE = 0x40049409  # Linux: two files share blocks until one of them is written to


def share(source: Path, path: Path) -> None:
    """Make `path` a file with the bytes of `source` that takes as little room as the file system allows.

    It shares blocks, where that is possible. Otherwise it is one file with two names, if a new file here would have the same mode
    and this user may write to it: then nothing depends on what the system allows with files of others. Otherwise it is a copy.
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
