"""mini-ImageNet (Vinyals et al., NeurIPS 2016) as `timm/mini-imagenet` on the Hugging Face hub: 100 classes, color images.

The canonical file of a member holds "images" (n, 3, 84, 84) uint8, resized to a shorter side of 84 and center-cropped, and
"labels" (n,) int64. Its checksum is not published, so it must stay equal to the file that was fetched first.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

HUB = "timm/mini-imagenet"
REVISION = "bd8779f9d33c061ea6e75fdd3bce4e43dd679060"
SIDE = 84
FILES = {
    "train.npz": {"sha256": None, "mirror": "mini_imagenet/train.npz", "url": None},
    "validation.npz": {"sha256": None, "mirror": "mini_imagenet/validation.npz", "url": None},
    "test.npz": {"sha256": None, "mirror": "mini_imagenet/test.npz", "url": None},
}


def shrink(image) -> np.ndarray:
    """A PIL image, resized and cropped: (3, SIDE, SIDE) uint8."""
    from PIL import ImageOps

    return np.asarray(ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))).transpose(2, 0, 1)


def pack(rows) -> bytes:
    """The canonical file for rows {"image": a PIL image, "label": its class}."""
    labels = np.asarray([row["label"] for row in rows], dtype=np.int64)
    images = np.empty((len(labels), 3, SIDE, SIDE), dtype=np.uint8)
    for index, row in enumerate(rows):
        images[index] = shrink(row["image"])
    stream = io.BytesIO()
    np.savez(stream, images=images, labels=labels)
    return stream.getvalue()


def from_hub(name: str) -> bytes:
    """The canonical file of one member, made from the hub's images."""
    from datasets import load_dataset

    return pack(load_dataset(HUB, revision=REVISION, split=name.removesuffix(".npz")))


def load(raw: Path, member: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, SIDE, SIDE) uint8 and labels (n,) of a member.

    Raises:
        ValueError: the file does not have this form.
    """
    path = raw / f"{member}.npz"
    with np.load(path, allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    if images.dtype != np.uint8 or images.shape != (len(labels), 3, SIDE, SIDE):
        raise ValueError(f"{path}: images must be (n, 3, {SIDE}, {SIDE}) bytes for n labels, not {images.shape} {images.dtype}")
    return images, labels
