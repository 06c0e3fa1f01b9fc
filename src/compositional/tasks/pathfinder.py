"""Are two marks joined by a path of dashes? The longer the path, the more distant the parts that must be integrated.

Images are generated in parallel in chunks. The file of a chunk is complete or absent, so a killed build resumes where it stopped.
A solver that does not know how images were made (tasks.shared.pathfinder_solver) answers every image. If it agrees with less than
99 % of the labels, the data set is refused.
"""

from __future__ import annotations

import zipfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from datasets import Array2D, Dataset, DatasetDict, Features, Value
from PIL import Image

from compositional import files
from compositional.datasets import pathfinder
from compositional.records.fingerprint import code
from compositional.tasks.shared import pathfinder_solver

KIND = "image"
DATASET = "pathfinder"
PARALLEL = True
PARAMETERS = {
    "path_length": {"type": "integer", "minimum": 2, "default": 9, "description": "dashes of each of the two long contours"},
    "train_images": {"type": "integer", "minimum": 1, "default": 10000, "description": "training images"},
    "test_images": {"type": "integer", "minimum": 1, "default": 10000, "description": "test images"},
    "side": {"type": "integer", "minimum": 1, "default": 300, "description": "side of an image when drawn, in pixels"},
    "stored_side": {"type": "integer", "minimum": 1, "default": 150, "description": "side after reduction (bilinear)"},
    "paddle_length": {
        "type": "integer",
        "minimum": 1,
        "default": 5,
        "description": "length of a dash; like all lengths, in pixels of the drawn image",
    },
    "paddle_thickness": {"type": "integer", "minimum": 1, "default": 2, "description": "thickness of a dash"},
    "margin": {"type": "integer", "minimum": 1, "default": 3, "description": "half of the gap between dashes"},
    "continuity": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1.8,
        "description": "straightness of contours: the larger, the straighter",
    },
    "seed_distance": {
        "type": "integer",
        "minimum": 1,
        "default": 27,
        "description": "distance between the first tips of the long contours",
    },
    "border": {"type": "integer", "minimum": 1, "default": 22, "description": "width of the empty border"},
    "marker_radius": {"type": "integer", "minimum": 2, "default": 3, "description": "radius of the two discs"},
    "distractor_paddles": {
        "type": "integer",
        "minimum": 0,
        "default": 30,
        "description": "approximate number of dashes in distracting contours, each of which has path_length / 3, rounded down",
    },
}
CHUNK = 250
LEAST_AGREEMENT = 0.99  # of the solver with the labels; it errs if contours nearly touch


def _geometry(parameters: dict) -> pathfinder.Geometry:
    return pathfinder.Geometry(**{name: parameters[name] for name in pathfinder.Geometry.__dataclass_fields__})


def _make_chunk(folder: Path, geometry: pathfinder.Geometry, stored_side: int, size: int, start: int) -> Path:
    """The file of `size` images from number `start` on, which is made unless it exists. One that was cut short is made again."""
    path = folder / f"{start:07d}.npz"
    if zipfile.is_zipfile(path):  # the directory of a zip file is at its end
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
    """A report on the solver's agreement with the labels.

    Raises:
        ValueError: the solver agrees with too few labels, or the labels are not balanced.
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
        raise ValueError(f"pathfinder: the solver's answers disagree with the labels: {report}")
    if abs(labels.mean() - 0.5) > 2.5 / np.sqrt(len(labels)):  # five standard deviations
        raise ValueError(f"pathfinder: the labels are not balanced: {report}")
    return report


def build(raw: Path, parameters: dict, processes: int = 1) -> tuple[DatasetDict, dict]:
    """Members train and test: columns image (stored_side, stored_side), label (1: joined) and number.

    Args:
        raw: a folder for finished chunks of images.
        processes: how many processes generate images; the images do not depend on it.
    """
    geometry, side = _geometry(parameters), parameters["stored_side"]
    counts = {"train": parameters["train_images"], "test": parameters["test_images"]}
    total = sum(counts.values())
    # The folder's name changes with the geometry, the code and its libraries, so that other chunks are not reused.
    identity = files.digest([geometry.__dict__, side, CHUNK, code("tasks.pathfinder")])
    folder = raw / f"length{geometry.path_length}_{identity[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    make = partial(_make_chunk, folder, geometry, side, CHUNK)
    starts = range(0, total, CHUNK)
    if processes == 1:
        paths = list(map(make, starts))
    else:
        # Other start methods would run the workflow's script again.
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
