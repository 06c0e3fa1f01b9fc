"""The handwritten digits that scikit-learn includes: 1,797 gray images of 8 x 8 pixels (UCI, Alpaydin and Kaynak 1998)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILES: dict = {}


def load(raw: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Members "train" (first two thirds) and "test": images (n, 8, 8) uint8 in 0..255 and labels (n,). Reads no file."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * 255 / 16).astype(np.uint8)
    labels = digits.target.astype(np.int64)
    cut = len(labels) * 2 // 3
    return {"train": (images[:cut], labels[:cut]), "test": (images[cut:], labels[cut:])}
