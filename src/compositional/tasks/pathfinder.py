"""Are two marks joined by a path of dashes? The longer the path, the farther apart what must be put together.

Images are generated in chunks, in parallel, each chunk a file that is whole or absent: a killed build resumes where it stood.
Every image is read by a tracer that knows nothing of its making (tasks.shared.pathfinder_solver); a data set is refused if it
agrees with less than 99 % of the labels.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from datasets import Array2D, Dataset, DatasetDict, Features, Value
from PIL import Image

from compositional import files
from compositional.datasets import pathfinder
from compositional.records.fingerprint import fingerprint
from compositional.tasks.shared import pathfinder_solver

KIND = "image"
DATASET = "pathfinder"
PARALLEL = True
PARAMETERS = {
    "path_length": {"type": "integer", "minimum": 2, "default": 9, "description": "dashes of each of the two long contours"},
    "train_images": {"type": "integer", "minimum": 1, "default": 10000, "description": "training images"},
    "test_images": {"type": "integer", "minimum": 1, "default": 10000, "description": "test images"},
    "side": {"type": "integer", "minimum": 1, "default": 300, "description": "side of an image as it is drawn, pixels"},
    "stored_side": {"type": "integer", "minimum": 1, "default": 150, "description": "side that it is reduced to (bilinear)"},
    "paddle_length": {
        "type": "integer",
        "minimum": 1,
        "default": 5,
        "description": "of a dash, pixels of `side`, as all lengths",
    },
    "paddle_thickness": {"type": "integer", "minimum": 1, "default": 2, "description": "of a dash"},
    "margin": {"type": "integer", "minimum": 1, "default": 3, "description": "half of the gap between dashes"},
    "continuity": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.8,
        "description": "the larger, the straighter contours are",
    },
    "seed_distance": {
        "type": "integer",
        "minimum": 1,
        "default": 27,
        "description": "between the first tips of the long contours",
    },
    "border": {"type": "integer", "minimum": 1, "default": 22, "description": "width of the empty border"},
    "marker_radius": {"type": "integer", "minimum": 2, "default": 3, "description": "of the two discs"},
    "distractor_paddles": {
        "type": "integer",
        "minimum": 0,
        "default": 30,
        "description": "dashes in distracting contours (about: these have path_length / 3 dashes, rounded down)",
    },
}
CHUNK = 250
LEAST_AGREEMENT = 0.99  # of the tracer with the labels; it is misled where contours nearly touch


def _geometry(parameters: dict) -> pathfinder.Geometry:
    return pathfinder.Geometry(**{name: parameters[name] for name in pathfinder.Geometry.__dataclass_fields__})


def _make_chunk(folder: Path, geometry: pathfinder.Geometry, stored_side: int, size: int, start: int) -> Path:
    """`size` images, from number `start` on, as a file; nothing to do if it is there."""
    path = folder / f"{start:07d}.npz"
    if path.exists():
        return path
    images, labels, traced = [], [], []
    for number in range(start, start + size):
        sample = pathfinder.generate(geometry, number)
        small = Image.fromarray(sample.image).resize((stored_side,) * 2, Image.Resampling.BILINEAR)
        images.append(np.asarray(small))
        labels.append(sample.label)
        answer, dashes = pathfinder_solver.trace(sample.image, geometry)
        traced.append((-1 if answer is None else answer, dashes))
    with files.replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, images=np.stack(images), labels=np.array(labels), traced=np.array(traced))
    return path


def _verify(labels: np.ndarray, traced: np.ndarray, path_length: int) -> dict:
    """What the tracer says of the labels.

    Raises:
        ValueError: it agrees with too few of them, or one label is too frequent for fair coins.
    """
    answers, dashes = traced.T
    report = {
        "images": len(labels),
        "connected": int(labels.sum()),
        "tracer_agrees": int((answers == labels).sum()),
        "tracer_contradicts": int(((answers >= 0) & (answers != labels)).sum()),
        "tracer_undecided": int((answers < 0).sum()),
        "paths_of_full_length": int(((answers == 1) & (labels == 1) & (dashes == path_length)).sum()),
    }
    if report["tracer_agrees"] < LEAST_AGREEMENT * len(labels):
        raise ValueError(f"pathfinder: the tracer does not find the paths that the labels promise: {report}")
    if abs(labels.mean() - 0.5) > 2.5 / np.sqrt(len(labels)):  # five standard deviations
        raise ValueError(f"pathfinder: the labels are not balanced: {report}")
    return report


def build(raw: Path, parameters: dict, processes: int = 1) -> tuple[DatasetDict, dict]:
    """Members train and test: columns image (stored_side, stored_side), label (1: joined) and number.

    Args:
        raw: a folder for chunks of finished images.
        processes: how many generate at once; the images do not depend on it.
    """
    geometry, side = _geometry(parameters), parameters["stored_side"]
    counts = {"train": parameters["train_images"], "test": parameters["test_images"]}
    total = sum(counts.values())
    # Chunks of other geometry, or made by other code, are not taken for these.
    identity = files.digest([geometry.__dict__, side, CHUNK, fingerprint(Path(__file__))])
    folder = raw / f"length{geometry.path_length}_{identity[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    make = partial(_make_chunk, folder, geometry, side, CHUNK)
    starts = range(0, total, CHUNK)
    if processes == 1:
        paths = list(map(make, starts))
    else:
        # Other ways to start processes would run the workflow's script again.
        with ProcessPoolExecutor(processes, get_context("fork")) as pool:
            paths = list(pool.map(make, starts))
    chunks = [np.load(path) for path in paths]
    images, labels, traced = (
        np.concatenate([chunk[name] for chunk in chunks])[:total] for name in ("images", "labels", "traced")
    )
    features = Features({"image": Array2D((side, side), "uint8"), "label": Value("int64"), "number": Value("int64")})
    members, first = {}, 0
    for name, count in counts.items():
        own = slice(first, first + count)
        columns = {"image": images[own], "label": labels[own], "number": np.arange(total)[own]}
        members[name] = Dataset.from_dict(columns, features=features)
        first += count
    pixels = images[: counts["train"]] / np.float32(255)
    about = {
        "in_distribution": "train",
        "image_shape": [1, side, side],
        "classes": 2,
        "component_width": None,
        "mean": [float(pixels.mean(dtype=np.float64))],
        "std": [float(pixels.std(dtype=np.float64))],
        "disjoint": [{"columns": ["image"], "members": ["test"]}],
        "verification": _verify(labels, traced, geometry.path_length),
    }
    return DatasetDict(members), about
