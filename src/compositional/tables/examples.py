"""Examples of image tasks as rows of a table, for figures that show the data."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compositional import plugins
from compositional.kinds import Kind

SOURCE = "split"
COLUMNS = ("split", "example", "label", "image", "about")
EXAMPLES = 8  # per label and split


def encode(pixels: np.ndarray) -> str:
    """An image (channels, height, width) uint8 as a PNG in base64."""
    from PIL import Image

    planes = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    stream = io.BytesIO()
    Image.fromarray(planes).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def decode(text: str) -> np.ndarray:
    """The inverse of `encode`, as (height, width) or (height, width, 3)."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))


def collect(sources: dict[str, Path]) -> Iterator[tuple]:
    """The first examples of each label and split of an image task, as a model sees them except for the scaling of the values.

    In a task's first row, the column `about` holds, as JSON, the number of items and what was verified when the task was made.
    """
    import torch

    for task, folder in sources.items():
        about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        told = json.dumps({key: about[key] for key in ("items", "verification", "canvas") if key in about}, sort_keys=True)
        splits: dict[str, Any] = plugins.load(Kind, f"kinds.{about['kind']}").load(folder, "cpu")
        for name, split in splits.items():
            for label in split.labels.unique().tolist():
                chosen = torch.nonzero(split.labels == label)[:EXAMPLES, 0]
                pictures = split.batch(chosen.unsqueeze(0)).images[0]
                if split.moments:
                    pictures = pictures * split.moments[1] + split.moments[0]
                pixels = (pictures * 255).round().clamp(0, 255).to(torch.uint8).numpy()
                for example, picture in zip(chosen.tolist(), pixels, strict=True):
                    yield task, name, example, label, encode(picture), told
                    told = ""
