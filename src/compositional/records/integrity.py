"""Find files that were damaged after they were made, by comparing them with their records (compositional.records.provenance).

A record is written after the files that it describes. A file that is newer than its record was therefore touched later. Every
call checks such files, and makes them again if their content changed. Damage that leaves the modification time unchanged (a
failing disk) is found when a job reads the file, or when the manifest is made.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from compositional import files
from compositional.records import provenance
from compositional.records.places import record_beside


class DamagedFileError(ValueError):
    """A file does not match its record."""


def _altered(file: Path, digest: str) -> bool:
    return not file.is_file() or files.sha256(file) != digest


def damaged(path: Path, record: dict[str, Any], everything: bool = False) -> list[Path]:
    """Files that do not match the record at `path`. A missing file counts only inside an existing folder: others are made again
    when they are needed.

    everything: check all files, not only those that are newer than the record; missing files then count, too.
    """
    found, own = [], path.stat()
    written = own.st_mtime_ns
    everything = everything or written > time.time_ns()  # a clock was set back: nothing is newer than such a record
    # No job reads a figure, and `make reference` copies tables. A file that is moved here keeps its time, but not the time of its
    # change of place.
    final = path.parent.name in ("figures", "tables")
    for name, digest in record["files"].items():
        file = path.parent / name
        try:
            held = file.stat()
            suspect = held.st_mtime_ns > written or (final and held.st_ctime_ns > own.st_ctime_ns)
        except FileNotFoundError:
            suspect = file.parent != path.parent and (path.parent / Path(name).parts[0]).exists()
        if (everything or suspect) and _altered(file, digest):
            found.append(file)
    return found


def verify(path: Path) -> None:
    """Check a file, or all files of a folder, that a job is about to read.

    Raises:
        DamagedFileError: a file does not match its record. The next call then makes it again.
    """
    place = record_beside(path)
    record = provenance.vouched(place)
    if record is None and place.exists():
        raise DamagedFileError(f"{place} is damaged, so nothing vouches for {path}. Call the same command again")
    for name, digest in record["files"].items() if record else ():
        file = place.parent / name
        if (file == path or path in file.parents) and _altered(file, digest):
            with suppress(OSError):  # it is missing, or belongs to another user
                os.utime(file)  # make it newer than its record, so that the next call makes it again
            raise DamagedFileError(
                f"{file} was altered or damaged after it was made: its sha256 is not the one in {place}. "
                "Call the same command again to make it again"
            )
