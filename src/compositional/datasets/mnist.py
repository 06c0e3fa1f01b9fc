"""MNIST (LeCun, Bottou, Bengio, Haffner 1998): the four canonical idx files, with the same bytes from every source."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

HUB = "ylecun/mnist"
REVISION = "77f3279092a1c1579b2250db8eafed0ad422088c"

# sha256 of the uncompressed files. Their md5 sums were once compared with the published ones.
FILES = {
    "train-images-idx3-ubyte": {
        "sha256": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "bytes": 47_040_016,
        "mirror": "mnist/train-images-idx3-ubyte.gz",
        "url": "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
    },
    "train-labels-idx1-ubyte": {
        "sha256": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "bytes": 60_008,
        "mirror": "mnist/train-labels-idx1-ubyte.gz",
        "url": "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
    },
    "t10k-images-idx3-ubyte": {
        "sha256": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "bytes": 7_840_016,
        "mirror": "mnist/t10k-images-idx3-ubyte.gz",
        "url": "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
    },
    "t10k-labels-idx1-ubyte": {
        "sha256": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        "bytes": 10_008,
        "mirror": "mnist/t10k-labels-idx1-ubyte.gz",
        "url": "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
    },
}


def from_hub(name: str) -> bytes:
    """Rebuild one canonical file from the copy on the Hugging Face hub."""
    from datasets import load_dataset

    rows = load_dataset(HUB, revision=REVISION, split="train" if name.startswith("train") else "test")
    if "labels" in name:
        labels = np.asarray(rows["label"], dtype=np.uint8)
        return struct.pack(">II", 0x801, len(labels)) + labels.tobytes()
    images = np.stack([np.asarray(image, dtype=np.uint8) for image in rows["image"]])
    return struct.pack(">IIII", 0x803, *images.shape) + images.tobytes()


def _read(path: Path) -> np.ndarray:
    """An idx file of bytes as an array; its header gives the number of axes and their lengths."""
    payload = path.read_bytes()
    axes = payload[3]
    shape = struct.unpack(f">{axes}I", payload[4 : 4 + 4 * axes])
    return np.frombuffer(payload, np.uint8, offset=4 + 4 * axes).reshape(shape)


def load(raw: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Members "train" (60,000) and "test" (10,000): images (n, 28, 28) uint8 and labels (n,) from the folder `raw`."""
    return {
        member: (
            _read(raw / f"{prefix}-images-idx3-ubyte"),
            _read(raw / f"{prefix}-labels-idx1-ubyte").astype(np.int64),
        )
        for member, prefix in {"train": "train", "test": "t10k"}.items()
    }
