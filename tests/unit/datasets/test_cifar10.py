"""CIFAR-10's files have the same bytes from every source, and are read as images and labels."""

from __future__ import annotations

import hashlib
import io
import tarfile

import numpy as np
import pytest

from compositional.datasets import cifar10
from compositional.records.surroundings import MIRROR
from compositional.stages import download
from compositional.stages.download import DownloadError, fetch

RECORDS = np.random.default_rng(0).integers(256, size=(1200, 3073), dtype=np.uint8) % np.array([10] + [256] * 3072)
RECORDS = RECORDS.astype(np.uint8)


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Replaces the published digests by those of small files with the same format."""
    monkeypatch.delenv(MIRROR, raising=False)
    for name, entry in cifar10.FILES.items():
        content = RECORDS[:1000] if name.startswith("test") else RECORDS
        monkeypatch.setitem(cifar10.FILES, name, entry | {"sha256": hashlib.sha256(content.tobytes()).hexdigest()})


def archive() -> bytes:
    """A small archive with the layout of the original one."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
            about = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            about.size = RECORDS.nbytes
            packed.addfile(about, io.BytesIO(RECORDS.tobytes()))
    return stream.getvalue()


def test_files_are_extracted_from_the_archive_and_read(tmp_path, monkeypatch):
    payload = archive()
    monkeypatch.setattr(download, "received", lambda url: payload)
    for name in cifar10.FILES:
        assert fetch("cifar10", name, tmp_path / name, ["mirror", "url"]) == "url"
    members = cifar10.load(tmp_path)
    images, labels = members["train"]
    assert images.shape == (6000, 3, 32, 32)
    assert images[1201, 2, 31, 30] == RECORDS[1, -2]  # blue is the last plane, rows run along the image
    assert labels.tolist() == RECORDS[:, 0].tolist() * 5
    assert [len(part) for part in members["test"]] == [1000, 1000]


def test_the_hub_rebuilds_the_same_bytes(monkeypatch):
    asked = []

    def load_dataset(name, revision, split):
        asked.append((name, revision, split))
        rows = RECORDS[:1000] if split.startswith("test") else RECORDS
        return {"img": [row[1:].reshape(3, 32, 32).transpose(1, 2, 0) for row in rows], "label": rows[:, 0]}

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert cifar10.from_hub("test_batch_first1000.bin") == RECORDS[:1000].tobytes()
    assert cifar10.from_hub("data_batch_2.bin") == RECORDS.tobytes()
    assert asked == [("uoft-cs/cifar10", cifar10.REVISION, part) for part in ("test[:1000]", "train[10000:20000]")]


def test_another_archive_is_refused(tmp_path, monkeypatch):
    payload = b"<html>moved</html>"
    monkeypatch.setattr(download, "received", lambda url: payload)
    with pytest.raises(DownloadError, match="url: ReadError"):
        fetch("cifar10", "data_batch_1.bin", tmp_path / "file", ["url"])
    assert list(tmp_path.iterdir()) == []
