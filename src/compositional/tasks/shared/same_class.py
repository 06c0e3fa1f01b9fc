"""IsSameClass: do two images on an empty canvas show the same class? The distance between them makes the task hard.

Razin, Maman, Cohen, "Implicit Regularization in Hierarchical Tensor Factorization and Deep Convolutional Neural Networks" (ICML
2022), section 7 and appendix. A split stores the pairs; the canvas is made together with the batches (`kinds.image`).
"""

from __future__ import annotations

import numpy as np
from datasets import Array3D, Dataset, DatasetDict, Features, Value

from compositional import randomness

PARAMETERS = {
    "distance": {"type": "integer", "minimum": 0, "default": 0, "description": "pixels between the two images"},
    "canvas_height": {"type": "integer", "minimum": 1, "default": 224, "description": "pixels"},
    "canvas_width": {"type": "integer", "minimum": 1, "default": 224, "description": "pixels"},
    "train_pairs": {"type": "integer", "minimum": 1, "default": 5000, "description": "training pairs"},
    "test_pairs": {"type": "integer", "minimum": 1, "default": 10000, "description": "test pairs"},
}


def _member(images: np.ndarray, labels: np.ndarray, pairs: int, key: int) -> Dataset:
    """Pairs, with the same class with probability one half. Both images are uniform in their class and may be the same image."""
    source = randomness.generator(key)
    classes = np.unique(labels)
    by_class = [np.flatnonzero(labels == value) for value in classes]
    others = [np.flatnonzero(labels != value) for value in classes]
    same = source.random(pairs) < 0.5
    chosen = source.integers(len(classes), size=pairs)
    left = np.array([source.choice(by_class[index]) for index in chosen])
    right = np.array([source.choice((by_class if alike else others)[index]) for index, alike in zip(chosen, same, strict=True)])
    content = np.concatenate([images[left], images[right]], axis=3)
    columns = {"image": content, "label": same.astype(np.int64), "left_index": left, "right_index": right}
    features = Features({name: Value("int64") for name in columns} | {"image": Array3D(content.shape[1:], "uint8")})
    return Dataset.from_dict(columns, features=features)


def build(
    sources: dict[str, tuple[np.ndarray, np.ndarray]], moments: tuple[list[float], list[float]], parameters: dict
) -> tuple[DatasetDict, dict]:
    """Members train and test, whose images have nothing in common.

    Args:
        sources: members "train" and "test" of (images (n, channels, height, width) uint8, labels (n,)).
        moments: mean and standard deviation of each channel; the empty canvas has the mean.
        parameters: as in PARAMETERS.

    Returns:
        Columns image (channels, height, 2 width), label (1: same class) and the numbers of both source images in their member.

    Raises:
        ValueError: two images at this distance do not fit on the canvas.
    """
    channels, height, width = sources["train"][0].shape[1:]
    canvas = {"height": parameters["canvas_height"], "width": parameters["canvas_width"], "distance": parameters["distance"]}
    if 2 * width + canvas["distance"] > canvas["width"] or height > canvas["height"]:
        raise ValueError(
            f"two images of {height} x {width} pixels, {canvas['distance']} apart, do not fit on a canvas of "
            f"{canvas['height']} x {canvas['width']}: distance may be up to {canvas['width'] - 2 * width}"
        )
    members = DatasetDict(
        {
            name: _member(*sources[name], parameters[f"{name}_pairs"], randomness.derive("same_class", name))
            for name in ("train", "test")
        }
    )
    about = {
        "in_distribution": "train",
        "image_shape": [channels, canvas["height"], canvas["width"]],
        "classes": 2,
        "component_width": None,
        "canvas": canvas,
        "mean": moments[0],
        "std": moments[1],
        "disjoint": [{"columns": ["image"], "members": ["test"]}],
    }
    return members, about
