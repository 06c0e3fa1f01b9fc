"""Downloads from every source, and every way in which they can fail."""

from __future__ import annotations

import gzip
import hashlib
import random
import struct
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from compositional.datasets import mnist
from compositional.records import surroundings
from compositional.stages import download

NAME = "t10k-labels-idx1-ubyte"
PAYLOAD = struct.pack(">II", 0x801, 5) + bytes([1, 2, 3, 4, 5])


@pytest.fixture(autouse=True)
def no_mirror(monkeypatch):
    monkeypatch.delenv(surroundings.MIRROR, raising=False)
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0)


@pytest.fixture
def entry(monkeypatch):
    """MNIST's label file, replaced by five labels."""
    entry = dict(mnist.FILES[NAME], sha256=hashlib.sha256(PAYLOAD).hexdigest(), bytes=len(PAYLOAD))
    monkeypatch.setitem(mnist.FILES, NAME, entry)
    return entry


@pytest.fixture
def server(tmp_path, entry):
    """A web server on this machine; entry["url"] points to it."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    entry["url"] = f"http://127.0.0.1:{web.server_port}/file.gz"
    yield folder
    web.shutdown()


def fetch(tmp_path, order, mirror=None):
    return download.fetch("mnist", NAME, tmp_path / "raw" / NAME, order, mirror)


def left_over(tmp_path):
    return [path for path in (tmp_path / "raw").glob("**/*") if path.is_file()]


def put_in_mirror(tmp_path, payload: bytes):
    (tmp_path / "mirror/mnist").mkdir(parents=True)
    (tmp_path / "mirror/mnist" / f"{NAME}.gz").write_bytes(payload)
    return str(tmp_path / "mirror")


def test_the_mirror_folder_can_be_set_by_key_and_by_environment(tmp_path, entry, monkeypatch):
    mirror = put_in_mirror(tmp_path, gzip.compress(PAYLOAD))
    assert fetch(tmp_path, ["mirror"], mirror) == "mirror"
    assert (tmp_path / "raw" / NAME).read_bytes() == PAYLOAD
    monkeypatch.setenv(surroundings.MIRROR, mirror)
    for key in (None, str(tmp_path / "nowhere")):  # the environment has priority
        (tmp_path / "raw" / NAME).unlink()
        assert fetch(tmp_path, ["mirror"], key) == "mirror"


def test_a_file_is_downloaded_from_its_url(tmp_path, server):
    (server / "file.gz").write_bytes(gzip.compress(PAYLOAD))
    assert fetch(tmp_path, ["mirror", "url"]) == "url"
    assert (tmp_path / "raw" / NAME).read_bytes() == PAYLOAD


def test_hub_rebuilds_the_canonical_bytes(tmp_path, entry, monkeypatch):
    """A local folder with parquet files replaces the hub."""
    from datasets import ClassLabel, Dataset, Features, Image

    rows = {"image": [np.full((2, 2), digit, np.uint8) for digit in (1, 2, 3, 4, 5)], "label": [1, 2, 3, 4, 5]}
    features = Features({"image": Image(), "label": ClassLabel(10)})
    (tmp_path / "hub").mkdir()
    Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "hub" / "test-00000.parquet")
    monkeypatch.setattr(mnist, "HUB", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    assert fetch(tmp_path, ["hub"]) == "hub"
    assert (tmp_path / "raw" / NAME).read_bytes() == PAYLOAD
    images = mnist.from_hub("t10k-images-idx3-ubyte")
    assert images == struct.pack(">IIII", 0x803, 5, 2, 2) + b"".join(bytes([digit] * 4) for digit in (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(PAYLOAD[:-1] + b"x"), "wrong content: sha256"),
        (gzip.compress(PAYLOAD)[:-6], "damaged or cut off"),
        (b"<html>not a file</html>", "damaged or cut off"),
        (gzip.compress(PAYLOAD + b"x"), "too large"),
        (gzip.compress(PAYLOAD) + bytes(2000), "too large"),
    ],
    ids=["other content", "cut off", "another file", "larger when unpacked", "larger"],
)
def test_wrong_or_cut_off_files_leave_nothing_behind(tmp_path, entry, content, reason):
    mirror = put_in_mirror(tmp_path, content)
    with pytest.raises(download.DownloadError, match=reason):
        fetch(tmp_path, ["mirror"], mirror)
    assert left_over(tmp_path) == []


def test_the_error_without_a_working_source_states_each_failure_and_what_to_do(tmp_path, entry):
    entry["url"] = "http://127.0.0.1:9/none"
    with pytest.raises(download.DownloadError) as caught:
        fetch(tmp_path, ["mirror", "url"])
    message = str(caught.value)
    for part in ("mirror: LookupError: no mirror folder", "url: ConnectionError", "Without network", entry["mirror"]):
        assert part in message
    assert left_over(tmp_path) == []


def test_the_next_source_is_tried_after_a_bad_one(tmp_path, server):
    mirror = put_in_mirror(tmp_path, b"rubbish")
    (server / "file.gz").write_bytes(gzip.compress(PAYLOAD))
    assert fetch(tmp_path, ["mirror", "url"], mirror) == "url"


def test_idx_files_are_read_as_arrays(tmp_path):
    (tmp_path / "x-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 2, 1, 3) + bytes(range(6)))
    assert mnist._read(tmp_path / "x-images-idx3-ubyte").tolist() == [[[0, 1, 2]], [[3, 4, 5]]]


def test_a_file_that_has_changed_since_the_download_is_removed_and_named(tmp_path, entry):
    path = tmp_path / NAME
    path.write_bytes(PAYLOAD)
    download.verify("mnist", path)
    path.write_bytes(PAYLOAD[:-1])
    with pytest.raises(ValueError, match=r"was altered or damaged after it was fetched .*wrong content: sha256"):
        download.verify("mnist", path)
    assert not path.exists()


@pytest.fixture
def answers(entry):
    """Start a web server with a list of answers, of which it repeats the last; the headers of requests are recorded.

    An answer consists of its status, its bytes, the length that it declares, and further headers.
    """
    given, asked = [], []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(dict(self.headers))
            status, payload, declared, *further = given.pop(0) if len(given) > 1 else given[0]
            self.send_response(status)
            for name, value in [("Content-Length", declared), *(further[0] if further else {}).items()]:
                if value is not None:
                    self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *arguments):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    entry["url"] = f"http://127.0.0.1:{web.server_port}/file.gz"
    yield given, asked
    web.shutdown()


GOOD = gzip.compress(PAYLOAD)
NOISE = random.Random(0).randbytes(2**16)


@pytest.mark.parametrize(
    "first", [(503, b"", 0), (429, b"", 0), (200, GOOD[:-3], len(GOOD))], ids=["busy", "too often", "cut off"]
)
def test_a_server_or_network_that_fails_is_asked_again(tmp_path, answers, first):
    given, asked = answers
    given += [first, (200, GOOD, len(GOOD))]
    assert fetch(tmp_path, ["url"]) == "url"
    assert len(asked) == 2


@pytest.mark.parametrize(("status", "times"), [(404, 1), (403, 1), (500, download.ATTEMPTS)])
def test_a_missing_file_is_requested_once_and_a_failing_one_a_few_times(tmp_path, answers, status, times):
    given, asked = answers
    given += [(status, b"", 0)]
    with pytest.raises(download.DownloadError, match=f"{status}"):
        fetch(tmp_path, ["url"])
    assert len(asked) == times


@pytest.mark.parametrize(
    ("answer", "limit", "reason"),
    [
        ((200, NOISE, None), ("LARGEST_BYTES", len(NOISE) // 2), "too large"),
        ((200, gzip.compress(bytes(2**20)), None), ("LARGEST_BYTES", 2**16), "too large"),
        ((200, GOOD, None), ("LONGEST_SECONDS", -1), "too slow"),
        ((200, b"", None), ("LARGEST_BYTES", 2**16), "damaged or cut off|wrong content"),
    ],
    ids=["more than allowed", "more than allowed when unpacked", "slow", "empty"],
)
def test_size_and_time_of_a_download_have_limits(tmp_path, answers, entry, monkeypatch, answer, limit, reason):
    answers[0].append(answer)
    del entry["bytes"]
    monkeypatch.setattr(download, *limit)
    with pytest.raises(download.DownloadError, match=reason):
        fetch(tmp_path, ["url"])
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    "answer",
    [
        (200, NOISE, None),
        (200, b"", 10 * 2**30),  # it is refused before any byte arrives
        (200, gzip.compress(PAYLOAD + b"x"), None),
        (200, gzip.compress(bytes(2**20)), None),
    ],
    ids=["larger", "said to be larger", "larger when unpacked", "much larger when unpacked"],
)
def test_a_download_larger_than_declared_is_refused_by_its_size(tmp_path, answers, answer):
    given, asked = answers
    given.append(answer)
    with pytest.raises(download.DownloadError, match=r"url: ValueError: too large: more than \d+ bytes"):
        fetch(tmp_path, ["url"])
    assert len(asked) == 1
    assert left_over(tmp_path) == []


def test_incompressible_data_is_not_refused_as_too_large(tmp_path, answers, entry):
    entry.update(sha256=hashlib.sha256(NOISE).hexdigest(), bytes=len(NOISE))
    answers[0].append((200, gzip.compress(NOISE), None))
    assert fetch(tmp_path, ["url"]) == "url"


WHOLE = random.Random(1).randbytes(5 * 2**16)
HALF, ONE, OTHER = 3 * 2**16, {"ETag": '"one"'}, {"ETag": '"other"'}
CUT = (200, WHOLE[:HALF], len(WHOLE), ONE)
REST = (206, WHOLE[HALF:], len(WHOLE) - HALF, ONE)


@pytest.fixture
def uncompressed(answers, entry):
    entry.update(sha256=hashlib.sha256(WHOLE).hexdigest(), bytes=len(WHOLE), url=entry["url"].removesuffix(".gz"))
    return answers


def test_a_download_that_is_cut_off_resumes(tmp_path, uncompressed):
    """It resumes as often as necessary, as long as every attempt brings new bytes."""
    given, asked = uncompressed
    steps = range(2**16, len(WHOLE), 2**16)
    given += [(200, WHOLE[: 2**16], len(WHOLE), ONE)]
    given += [(206, WHOLE[at : at + 2**16], len(WHOLE) - at, ONE) for at in steps]
    assert len(given) > download.ATTEMPTS
    assert fetch(tmp_path, ["url"]) == "url"
    assert (tmp_path / "raw" / NAME).read_bytes() == WHOLE
    assert [headers.get("Range") for headers in asked] == [None, *(f"bytes={at}-" for at in steps)]
    assert [headers.get("If-Range") for headers in asked] == [None, *('"one"' for at in steps)]


@pytest.mark.parametrize(
    ("between", "ranges"),
    [
        ([(503, b"", 0)], [None, HALF, HALF]),
        ([(200, WHOLE, len(WHOLE), OTHER)], [None, HALF]),
        ([(416, b"", 0), (200, WHOLE, len(WHOLE), OTHER)], [None, HALF, None]),
    ],
    ids=["busy in between", "changed", "changed and shorter"],
)
def test_a_download_resumes_only_if_the_servers_file_is_unchanged(tmp_path, uncompressed, between, ranges):
    given, asked = uncompressed
    given += [CUT, *between, REST]
    assert fetch(tmp_path, ["url"]) == "url"
    assert (tmp_path / "raw" / NAME).read_bytes() == WHOLE
    assert [headers.get("Range") for headers in asked] == [at and f"bytes={at}-" for at in ranges]


@pytest.mark.parametrize(
    ("version", "sent"),
    [
        ({}, None),
        ({"ETag": 'W/"one"'}, None),
        ({"ETag": 'W/"one"', "Last-Modified": "Wed, 25 Nov 2026 00:00:00 GMT"}, "Wed, 25 Nov 2026 00:00:00 GMT"),
    ],
)
def test_a_file_without_a_version_is_fetched_again_from_the_start(tmp_path, uncompressed, version, sent):
    given, asked = uncompressed
    given += [(200, WHOLE[:HALF], len(WHOLE), version), (206 if sent else 200, WHOLE[HALF if sent else 0 :], None, version)]
    assert fetch(tmp_path, ["url"]) == "url"
    assert asked[1].get("If-Range") == sent
    assert ("Range" in asked[1]) == bool(sent)


def test_a_download_fails_after_attempts_without_new_bytes(tmp_path, uncompressed):
    given, asked = uncompressed
    given += [CUT, (200, WHOLE[:HALF], len(WHOLE), OTHER)]
    with pytest.raises(download.DownloadError, match=r"url: (ChunkedEncodingError|ConnectionError)"):
        fetch(tmp_path, ["url"])
    assert len(asked) == download.ATTEMPTS
    assert left_over(tmp_path) == []


def test_a_file_without_published_checksum_must_equal_the_first_download(tmp_path, entry):
    entry["sha256"] = None
    mirror = put_in_mirror(tmp_path, gzip.compress(PAYLOAD))
    fetch(tmp_path, ["mirror"], mirror)
    path, first = tmp_path / "raw" / NAME, tmp_path / "raw" / f"{NAME}.sha256"
    assert first.read_text() == f"{hashlib.sha256(PAYLOAD).hexdigest()}  {NAME}\n"
    download.verify("mnist", path)
    path.write_bytes(PAYLOAD[:-1])
    with pytest.raises(ValueError, match=f"wrong content: by {first}, sha256"):
        download.verify("mnist", path)
    assert not path.exists()
    fetch(tmp_path, ["mirror"], mirror)
    (tmp_path / "mirror/mnist" / f"{NAME}.gz").write_bytes(gzip.compress(PAYLOAD[:-1] + b"x"))
    with pytest.raises(download.DownloadError, match=f"wrong content: by {first}, sha256"):
        fetch(tmp_path, ["mirror"], mirror)
    first.unlink()  # deleting the checksum accepts the new file
    fetch(tmp_path, ["mirror"], mirror)
    download.verify("mnist", path)


@pytest.mark.parametrize("damaged", [b"", b"abc  file", b"\xff\x00"], ids=["empty", "cut", "noise"])
def test_a_file_is_kept_if_the_checksum_of_its_first_download_is_damaged(tmp_path, entry, damaged):
    entry["sha256"] = None
    mirror = put_in_mirror(tmp_path, gzip.compress(PAYLOAD))
    fetch(tmp_path, ["mirror"], mirror)
    path, first = tmp_path / "raw" / NAME, tmp_path / "raw" / f"{NAME}.sha256"
    first.write_bytes(damaged)
    message = f"{first} begins with .*, must begin with the checksum of {NAME}: it is damaged. Restore it, or delete it"
    with pytest.raises(LookupError, match=message):
        download.verify("mnist", path)
    assert path.read_bytes() == PAYLOAD
    with pytest.raises(download.DownloadError, match=message):
        fetch(tmp_path, ["mirror"], mirror)
    first.unlink()
    download.verify("mnist", path)
