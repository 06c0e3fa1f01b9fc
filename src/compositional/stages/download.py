"""Raw files from the first source that has them: a mirror folder, the Hugging Face hub, a URL. Checked, always.

A dataset module lists its canonical files in FILES: {name: {"sha256" and "bytes": of the file as stored here, "mirror": path in
a mirror folder, "url": address}}. Instead of "sha256", "git_blob" where only that is published; "sha256": None where nothing is
(then the file must stay what was fetched first, by name.sha256 beside it); no "bytes" where the size is not known; "url": None
where there is no address; "when": options of a task without which it does not need the file. Sources may hold a file compressed
with gzip or xz (by its ending). For the hub, the module has a function from_hub(name) that rebuilds the canonical bytes from a
pinned REVISION; where the address gives an archive, extract(name, payload) takes the file out of it.
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
from typing import Any

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
        return extract(name, received(entry["url"]))
    return _unpack(received(entry["url"], _largest(entry, entry["url"])), entry["url"], _largest(entry))


def received(url: str, largest: int = LARGEST_BYTES) -> bytes:
    """What an address gives. Where the network or the server fails, what is missing is asked for again, a few times in a row.

    Raises:
        requests.RequestException: it gave nothing more.
        ValueError: more than `largest` bytes, or slower than LONGEST_SECONDS.
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
            if failed == ATTEMPTS or (answer < 500 and answer not in (416, 429)):  # what is not there does not come by asking
                raise
        most = max(most, len(content))
        time.sleep(PAUSE_SECONDS)


def _receive(url: str, content: bytearray, about: dict[str, Any], largest: int) -> None:
    """Append to `content` what is missing of a file, or take the file from its beginning where it may be another one by now.

    about: "until" when, and, as far as the server says it, which "version" of the file `content` is of.
    """
    import requests

    if not about.get("version"):
        content.clear()
    rest = {"Range": f"bytes={len(content)}-", "If-Range": about["version"]} if content else {}
    with requests.get(url, headers={"Accept-Encoding": "identity"} | rest, timeout=TIMEOUT_SECONDS, stream=True) as response:
        if response.status_code in (200, 416):  # the whole; or no such part
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
    """Where the checksum of the first fetch is, of a file of which none is published."""
    return path.with_name(f"{path.name}.sha256")


def _check(payload: bytes, entry: dict, path: Path) -> None:
    """Raise ValueError unless a file is the one that its entry names, by sha256 or by the identity that git gives a file.

    Where nothing is published, it must be what was fetched first.
    """
    digest = hashlib.sha256(payload).hexdigest()
    if "git_blob" in entry:
        kind, known = "git blob", entry["git_blob"]
        digest = hashlib.sha1(f"blob {len(payload)}\0".encode() + payload, usedforsecurity=False).hexdigest()
    elif entry["sha256"]:
        kind, known = "sha256", entry["sha256"]
    elif _first(path).exists():
        kind, known = f"by {_first(path)}, sha256", _first(path).read_text(encoding="utf-8").split()[0]
    else:
        return
    if digest != known:
        raise ValueError(f"wrong content: {kind} {digest} instead of {known}")


def verify(dataset: str, path: Path) -> None:
    """Check a file that was fetched before.

    Raises:
        ValueError: it is not what was published, or fetched at first. It is removed, so that the next call fetches it anew.
    """
    try:
        _check(path.read_bytes(), _described(dataset).FILES[path.name], path)
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
            _check(payload, entry, destination)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else ""
            failures.append(f"  - {source}: {type(error).__name__}: {reason}")
            continue
        with files.replacing(destination) as temporary:
            temporary.write_bytes(payload)
        if entry.get("sha256", "") is None and not _first(destination).exists():
            with files.replacing(_first(destination)) as temporary:
                temporary.write_text(f"{hashlib.sha256(payload).hexdigest()}  {name}\n", encoding="utf-8")
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
