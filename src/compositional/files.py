"""Write files that are either complete or absent."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

TEMPORARY = r"\..+\.[0-9a-f]{16}"  # the names that `_beside` gives


def _beside(path: Path) -> Path:
    """A new hidden name next to a path."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` when the block succeeds and is deleted when it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    temporary.touch(exist_ok=False)  # with the permissions of the umask and of a setgid folder
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Like `replacing`, for a folder and everything in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, earlier = _beside(path), _beside(path)
    temporary.mkdir()
    try:
        yield temporary
        with suppress(FileNotFoundError):
            os.replace(path, earlier)
        os.replace(temporary, path)
    finally:
        for folder in (temporary, earlier):
            if folder.is_symlink():  # only the link: what it pointed to is not ours
                folder.unlink()
            shutil.rmtree(folder, ignore_errors=True)


def json_bytes(value: Any) -> bytes:
    """Indented JSON with sorted keys: the same value gives the same bytes."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Write a value as `json_bytes`."""
    with replacing(path) as temporary:
        temporary.write_bytes(json_bytes(value))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file. Floats are written such that reading them gives the same numbers back."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def digest(value: Any) -> str:
    """Hexadecimal sha256 of a value that JSON can represent; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
