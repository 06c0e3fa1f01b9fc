"""CIFAR-10 (Krizhevsky 2009), the binary version: five files of training images and the first 1,000 of the test images.

Only the first part of the test set is needed, so a mirror without the rest works, too. A task that needs more test images
holds out some of the 50,000 training images.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

HUB = "uoft-cs/cifar10"
REVISION = "0b2714987fa478483af9968de7c934580d0bb9a2"
_RECORD = 1 + 3 * 32 * 32  # a label, then the red, green and blue planes

# sha256 of the uncompressed files. The md5 sums of the training files were once compared with the published ones.
FILES = {
    "data_batch_1.bin": {
        "sha256": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "bytes": 30_730_000,
        "mirror": "cifar10/data_batch_1.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
    "data_batch_2.bin": {
        "sha256": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "bytes": 30_730_000,
        "mirror": "cifar10/data_batch_2.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
    "data_batch_3.bin": {
        "sha256": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "bytes": 30_730_000,
        "mirror": "cifar10/data_batch_3.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
    "data_batch_4.bin": {
        "sha256": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "bytes": 30_730_000,
        "mirror": "cifar10/data_batch_4.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
    "data_batch_5.bin": {
        "sha256": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "bytes": 30_730_000,
        "mirror": "cifar10/data_batch_5.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
    "test_batch_first1000.bin": {
        "sha256": "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5",
        "bytes": 3_073_000,
        "mirror": "cifar10/test_batch_first1000.bin.xz",
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    },
}


def extract(name: str, payload: bytes) -> bytes:
    """One canonical file from the archive at its address."""
    whole = name.replace("_first1000", "")
    with tarfile.open(fileobj=io.BytesIO(payload)) as archive:
        stream = archive.extractfile(f"cifar-10-batches-bin/{whole}")
        if stream is None:
            raise ValueError(f"cifar-10-batches-bin/{whole} is not in the archive")
        content = stream.read(10_000 * _RECORD + 1)  # read no more, whatever size the archive states
    return content if whole == name else content[: 1000 * _RECORD]


def from_hub(name: str) -> bytes:
    """Rebuild one canonical file from the copy on the Hugging Face hub, which keeps the original order."""
    from datasets import load_dataset

    if name.startswith("test"):
        rows = load_dataset(HUB, revision=REVISION, split="test[:1000]")
    else:
        batch = int(name.removesuffix(".bin").rsplit("_", 1)[1]) - 1
        rows = load_dataset(HUB, revision=REVISION, split=f"train[{batch * 10000}:{(batch + 1) * 10000}]")
    planes = [np.asarray(image, dtype=np.uint8).transpose(2, 0, 1).reshape(-1) for image in rows["img"]]
    labels = np.asarray(rows["label"], dtype=np.uint8)
    return np.concatenate([labels[:, None], np.stack(planes)], axis=1).tobytes()


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    records = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, _RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


def load(raw: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Members "train" (50,000) and "test" (1,000): images (n, 3, 32, 32) uint8 and labels (n,) from the folder `raw`."""
    batches = [_read(raw / f"data_batch_{number}.bin") for number in range(1, 6)]
    images, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return {"train": (images, labels), "test": _read(raw / "test_batch_first1000.bin")}
