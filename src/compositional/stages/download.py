"""Get raw files from the first source that has them: a mirror folder, the Hugging Face hub, or a URL. They are always checked.

A dataset module lists its canonical files in FILES: {name: {"sha256" and "bytes": of the file as stored here, "mirror": path in
a mirror folder, "url": address}}. There are these variants: "git_blob" instead of "sha256" if only that is published; "sha256":
None if no checksum is published (then the file must stay what was fetched first, which name.sha256 next to it records); no
"bytes" if the size is unknown; "url": None if there is no address; "when": options of a task without which it does not need the
file. Sources may hold a file that is compressed with gzip or xz, as its suffix shows. If the hub has the data, the module has a
function from_hub(name) that rebuilds the canonical bytes from a pinned REVISION. If the address gives an archive, extract(name,
payload) extracts the file from it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compositional import files, plugins
from compositional.datasets import Dataset
from compositional.records import surroundings

TIMEOUT_SECONDS = 60  # without receiving a byte
LONGEST_SECONDS = 6 * 3600  # for one file
LARGEST_BYTES = 4 * 2**30  # for an archive, and for a file of undeclared size; the largest file here is smaller than 1 GiB
ATTEMPTS, PAUSE_SECONDS = 3, 2.0


class DownloadError(RuntimeError):
    """No source gave the file; the message says how each one failed, and what to do."""


def _described(dataset: str) -> Dataset:
    return plugins.load(Dataset, f"datasets.{dataset}")


def _largest(entry: dict, stored: str = "") -> int:
    """The largest size that a file stored as `stored` may have. Compressing noise makes it slightly larger."""
    size = entry.get("bytes", LARGEST_BYTES)
    return size + size // 100 + 1000 if stored.endswith((".gz", ".xz")) else size


def _unpack(payload: bytes, name: str, largest: int) -> bytes:
    """The file itself, decompressed if the suffix of `name` requires it."""
    try:
        if name.endswith(".gz"):
            with gzip.GzipFile(fileobj=io.BytesIO(payload)) as packed:
                payload = packed.read(largest + 1)
        elif name.endswith(".xz"):
            with lzma.LZMAFile(io.BytesIO(payload)) as stream:
                payload = stream.read(largest + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"damaged or cut off: {error}") from error
    _check_size(len(payload), largest)
    return payload


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise ValueError(f"too large: more than {largest} bytes")


def _from_mirror(entry: dict, mirror: str) -> bytes:
    if not mirror:
        raise LookupError(f"no mirror folder configured (key mirror, or environment variable {surroundings.MIRROR})")
    path = Path(mirror) / entry["mirror"]
    _check_size(path.stat().st_size, _largest(entry, path.name))
    return _unpack(path.read_bytes(), path.name, _largest(entry))


def _from_hub(dataset: str, name: str) -> bytes:
    rebuild = _described(dataset).from_hub
    if rebuild is None:
        raise LookupError(f"{dataset} is not read from the hub")
    return rebuild(name)


def _from_url(dataset: str, name: str, entry: dict) -> bytes:
    if entry["url"] is None:
        raise LookupError("there is no address of the file itself")
    if extract := _described(dataset).extract:
        return extract(name, received(entry["url"]))
    return _unpack(received(entry["url"], _largest(entry, entry["url"])), entry["url"], _largest(entry))


def received(url: str, largest: int = LARGEST_BYTES) -> bytes:
    """Download an address. If the network or the server fails, the missing part is requested again, a few times in a row.

    Raises:
        requests.RequestException: the last attempts brought nothing more.
        ValueError: more than `largest` bytes, or longer than LONGEST_SECONDS.
    """
    import requests

    content, about, failed, most = bytearray(), {"until": time.monotonic() + LONGEST_SECONDS}, 0, 0
    while True:
        try:
            _receive(url, content, about, largest)
            return bytes(content)
        except (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
            requests.HTTPError,
        ) as error:
            answer = 500 if error.response is None else error.response.status_code
            failed = 1 if len(content) > most else failed + 1
            if failed == ATTEMPTS or (answer < 500 and answer not in (416, 429)):  # trying again would not help
                raise
        most = max(most, len(content))
        time.sleep(PAUSE_SECONDS)


def _receive(url: str, content: bytearray, about: dict[str, Any], largest: int) -> None:
    """Append the missing part of a file to `content`, or fetch the file from its start if it may have changed on the server.

    about: the deadline ("until") and, if the server gives one, the "version" of the file that `content` belongs to.
    """
    import requests

    if not about.get("version"):
        content.clear()
    rest = {"Range": f"bytes={len(content)}-", "If-Range": about["version"]} if content else {}
    with requests.get(url, headers={"Accept-Encoding": "identity"} | rest, timeout=TIMEOUT_SECONDS, stream=True) as response:
        if response.status_code in (200, 416):  # the complete file, or no such range
            content.clear()
        response.raise_for_status()
        tag = response.headers.get("ETag", "W/")
        about["version"] = response.headers.get("Last-Modified") if tag.startswith("W/") else tag
        _check_size(len(content) + int(response.headers.get("Content-Length", 0)), largest)
        for part in response.iter_content(2**16):
            content += part
            _check_size(len(content), largest)
            if time.monotonic() > about["until"]:
                raise ValueError(f"too slow: {len(content)} bytes in {LONGEST_SECONDS} s")


def _first(path: Path) -> Path:
    """The file that keeps the checksum of the first fetch, for a download without a published checksum."""
    return path.with_name(f"{path.name}.sha256")


def _first_digest(path: Path) -> str:
    """The checksum of the first fetch. Without it, nothing is known about the file, which must therefore stay where it is."""
    said = _first(path).read_text(encoding="utf-8", errors="replace").partition(" ")[0]
    if not re.fullmatch("[0-9a-f]{64}", said):
        raise LookupError(
            f"{_first(path)} begins with {said[:64]!r}, must begin with the checksum of {path.name}: it is damaged. "
            "Restore it, or delete it to accept the file as it is"
        )
    return said


def _check(payload: bytes, entry: dict, path: Path) -> None:
    """Raise ValueError unless a file matches the sha256 or git blob digest of its entry.

    Without a published digest, the file must be the one that was fetched first.

    Raises:
        LookupError: the checksum of the first fetch is damaged.
    """
    digest = hashlib.sha256(payload).hexdigest()
    if "git_blob" in entry:
        kind, known = "git blob", entry["git_blob"]
        digest = hashlib.sha1(f"blob {len(payload)}\0".encode() + payload, usedforsecurity=False).hexdigest()
    elif entry["sha256"]:
        kind, known = "sha256", entry["sha256"]
    elif _first(path).exists():
        kind, known = f"by {_first(path)}, sha256", _first_digest(path)
    else:
        return
    if digest != known:
        raise ValueError(f"wrong content: {kind} {digest} instead of {known}")


def verify(dataset: str, path: Path) -> None:
    """Check a file that was fetched before.

    Raises:
        ValueError: it is not the published file, or not the one fetched first. It is removed, so the next call fetches it again.
        LookupError: the checksum of the first fetch is damaged.
    """
    try:
        _check(path.read_bytes(), _described(dataset).FILES[path.name], path)
    except ValueError as error:
        path.unlink()
        raise ValueError(
            f"{path} was altered or damaged after it was fetched ({error}). Call the same command again to fetch it again"
        ) from error


def fetch(dataset: str, name: str, destination: Path, order: list[str], mirror: str | None = None) -> str:
    """Put one canonical file in its place and return the name of the source that gave it.

    Args:
        order: which of "mirror", "hub" and "url" to try, in this order.
        mirror: the mirror folder; the environment variable COMPOSITIONAL_MIRROR overrides it.

    Raises:
        DownloadError: every source failed. Nothing is left at `destination`.
    """
    entry = _described(dataset).FILES[name]
    mirror = surroundings.mirror(os.environ, mirror)
    ways: dict[str, Callable[[], bytes]] = {
        "mirror": lambda: _from_mirror(entry, mirror),
        "hub": lambda: _from_hub(dataset, name),
        "url": lambda: _from_url(dataset, name, entry),
    }
    failures = []
    for source in order:
        try:
            payload = ways[source]()
            _check(payload, entry, destination)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else ""
            failures.append(f"  - {source}: {type(error).__name__}: {reason}")
            continue
        if entry.get("sha256", "") is None and not _first(destination).exists():
            with files.replacing(_first(destination)) as temporary:
                temporary.write_text(f"{hashlib.sha256(payload).hexdigest()}  {name}\n", encoding="utf-8")
        with files.replacing(destination) as temporary:
            temporary.write_bytes(payload)
        return source
    raise DownloadError(
        "\n".join(
            [
                f"{dataset}/{name} was unavailable:",
                *failures,
                f"Without network: put the file at <folder>/{entry['mirror']} and set mirror: <folder> in the configuration,",
                f"or {surroundings.MIRROR}=<folder> in the environment.",
            ]
        )
    )
