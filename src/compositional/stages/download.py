"""Raw files from the first source that has them: a mirror folder, the Hugging Face hub, a URL. Checked, always.

A dataset module lists its canonical files in FILES: {name: {"sha256" and "bytes": of the file as stored here, "mirror": path in
a mirror folder, "url": address}}. Instead of "sha256", "git_blob" where only that is published; "sha256": None where nothing is
(task.json then records the checksum that was found); no "bytes" where the size is not known; "url": None where there is no
address; "when": options of a task without which it does not need the file. Sources may hold a file compressed with gzip or xz (by
its ending). For the hub, the module has a function from_hub(name) that rebuilds the canonical bytes; where the address gives an
archive, extract(name, payload) takes the file out of it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path

from compositional import files, plugins
from compositional.datasets import Dataset

MIRROR_VARIABLE = "COMPOSITIONAL_MIRROR"
TIMEOUT_SECONDS = 60  # without a byte
LONGEST_SECONDS = 6 * 3600  # of one file
LARGEST_BYTES = 4 * 2**30  # of an archive, and of a file whose size is not declared; the largest here is below 1 GiB
ATTEMPTS, PAUSE_SECONDS = 3, 2.0


class DownloadError(RuntimeError):
    """No source gave the file; the message says which failed how, and what to do."""


def _described(dataset: str) -> Dataset:
    return plugins.load(Dataset, f"datasets.{dataset}")


def _largest(entry: dict, stored: str = "") -> int:
    """How many bytes a file may have, where it is stored under the name `stored`: compressed, noise grows a little."""
    size = entry.get("bytes", LARGEST_BYTES)
    return size + size // 100 + 1000 if stored.endswith((".gz", ".xz")) else size


def _unpack(payload: bytes, name: str, largest: int) -> bytes:
    """The file itself, where `name` says that it is compressed."""
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


def _from_mirror(entry: dict, mirror: str | None) -> bytes:
    if not mirror:
        raise LookupError(f"no mirror folder configured (key mirror, or environment variable {MIRROR_VARIABLE})")
    path = Path(mirror).expanduser().absolute() / entry["mirror"]
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
        return extract(name, _received(entry["url"], LARGEST_BYTES))
    return _unpack(_received(entry["url"], _largest(entry, entry["url"])), entry["url"], _largest(entry))


def _received(url: str, largest: int, attempts: int = ATTEMPTS) -> bytes:
    """What an address gives, asked again where the network or the server fails."""
    import requests

    try:
        return _asked_once(url, largest)
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError, requests.HTTPError) as error:
        answer = 500 if error.response is None else error.response.status_code
        if attempts == 1 or (answer < 500 and answer != 429):  # what is not there does not come by asking
            raise
    time.sleep(PAUSE_SECONDS)
    return _received(url, largest, attempts - 1)


def _asked_once(url: str, largest: int) -> bytes:
    import requests

    began, parts, size = time.monotonic(), [], 0
    with requests.get(url, timeout=TIMEOUT_SECONDS, stream=True) as response:
        response.raise_for_status()
        _check_size(int(response.headers.get("Content-Length", 0)), largest)
        for part in response.iter_content(2**20):
            parts.append(part)
            size += len(part)
            _check_size(size, largest)
            if time.monotonic() - began > LONGEST_SECONDS:
                raise ValueError(f"too slow: {size} bytes in {LONGEST_SECONDS} s")
    return b"".join(parts)


def _check(payload: bytes, entry: dict) -> None:
    """Raise ValueError unless a file is the one that its entry names, by sha256 or by the identity that git gives a file."""
    if entry.get("sha256", "") is None:
        return
    if "sha256" in entry:
        kind, known, digest = "sha256", entry["sha256"], hashlib.sha256(payload).hexdigest()
    else:
        kind, known = "git blob", entry["git_blob"]
        digest = hashlib.sha1(f"blob {len(payload)}\0".encode() + payload, usedforsecurity=False).hexdigest()
    if digest != known:
        raise ValueError(f"wrong content: {kind} {digest} instead of {known}")


def verify(dataset: str, path: Path) -> None:
    """Check a file that was fetched before.

    Raises:
        ValueError: it is not what was published. It is removed, so that the next call fetches it anew.
    """
    try:
        _check(path.read_bytes(), _described(dataset).FILES[path.name])
    except ValueError as error:
        path.unlink()
        raise ValueError(
            f"{path} was altered or damaged after it was fetched ({error}). Call the same command again: it is fetched anew"
        ) from error


def fetch(dataset: str, name: str, destination: Path, order: list[str], mirror: str | None = None) -> str:
    """Put one canonical file in its place and return the source that gave it.

    Args:
        order: which of "mirror", "hub", "url" to try, in this order.
        mirror: the mirror folder; the environment variable COMPOSITIONAL_MIRROR overrides it.

    Raises:
        DownloadError: every source failed. Nothing is left at `destination`.
    """
    entry = _described(dataset).FILES[name]
    mirror = os.environ.get(MIRROR_VARIABLE) or mirror
    ways: dict[str, Callable[[], bytes]] = {
        "mirror": lambda: _from_mirror(entry, mirror),
        "hub": lambda: _from_hub(dataset, name),
        "url": lambda: _from_url(dataset, name, entry),
    }
    failures = []
    for source in order:
        try:
            payload = ways[source]()
            _check(payload, entry)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else ""
            failures.append(f"  - {source}: {type(error).__name__}: {reason}")
            continue
        with files.replacing(destination) as temporary:
            temporary.write_bytes(payload)
        return source
    raise DownloadError(
        "\n".join(
            [
                f"{dataset}/{name} was unavailable:",
                *failures,
                f"Without network: put the file at <folder>/{entry['mirror']} and set mirror: <folder> in the configuration,",
                f"or {MIRROR_VARIABLE}=<folder> in the environment.",
            ]
        )
    )
