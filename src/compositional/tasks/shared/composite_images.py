"""Tasks whose examples consist of several images, each in its own channels, at a distance. `kinds.composite` makes the batches.

Lippl and Stachenfeld (ICLR 2025), appendix on image tasks: an item of a component is a class of images. A task stores each image
once; an example is a tuple of indices of images.
"""

from __future__ import annotations

import numpy as np
from datasets import Dataset, DatasetDict

from compositional import randomness
from compositional.tasks.shared import designs

PARAMETERS = {
    "problem": {
        "enum": ["addition", "context_dependence", "transitive_equivalence"],
        "default": "addition",
        "description": "which combinations are trained, and what the target is; the options are those of the symbolic task with "
        "this name",
    },
    "trained_items": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 0, "maximum": 8},
        "default": [4],
        "description": "of addition",
    },
    "shuffle": {"type": "integer", "minimum": 0, "default": 1, "description": "of addition"},
    "level": {"enum": [1, 2, 3], "default": 3, "description": "for context_dependence: its level"},
    "class_size": {"type": "integer", "minimum": 2, "default": 5, "description": "for transitive_equivalence"},
    "trained_per_class": {"type": "integer", "minimum": 1, "default": 1, "description": "for transitive_equivalence"},
    "distance": {"type": "integer", "minimum": 0, "default": 0, "description": "pixels from one component to the next"},
    "samples": {
        "type": "integer",
        "minimum": 1,
        "default": 20000,
        "description": "training examples; every trained combination gets the same number, rounded down",
    },
    "pool": {
        "type": "integer",
        "minimum": 1,
        "default": 200,
        "description": "images of each class that are used for training; the others are for evaluation",
    },
    "evaluation_samples": {
        "type": "integer",
        "minimum": 1,
        "default": 100,
        "description": "evaluation examples of each combination, made of images that are not used for training",
    },
    "draw": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "seed of everything random in the task: which class stands for which item, and which images are used",
    },
    "augment": {
        "type": "boolean",
        "default": False,
        "description": "whether training shifts every component at random (up to 4 pixels, with zeros beyond the edge) and "
        "mirrors half of them",
    },
}


def _design(parameters: dict) -> designs.Design:
    return getattr(designs, parameters["problem"])(parameters)


def build(
    images: np.ndarray, labels: np.ndarray, mean: list[float], std: list[float], parameters: dict
) -> tuple[DatasetDict, dict]:
    """Members train, validation (trained combinations, new images), test (new combinations, new images), and images.

    Item i of component c is the class permutation_c(i) of the first classes; each component has its own permutation.

    Args:
        images: (n, height, width) or (n, channels, height, width), uint8.
        labels: (n,).
        mean, std: one number per channel, for pixels in [0, 1].

    Returns:
        Members with the columns items, images (row numbers in the member images) and target; the member images has one column.

    Raises:
        ValueError: a class has no images left for evaluation, or there are fewer samples than combinations.
    """
    design = _design(parameters)
    source = randomness.generator(randomness.derive("composites", parameters["draw"]))
    images = images[:, None] if images.ndim == 3 else images
    permutations = [source.permutation(size) for size in design.sizes]
    by_class = [source.permutation(np.flatnonzero(labels == number)) for number in range(max(design.sizes))]
    if (fewest := min(map(len, by_class))) <= parameters["pool"]:
        raise ValueError(f"pool must be less than {fewest}, the images of the rarest class; it is {parameters['pool']}")
    pools = {True: [own[: parameters["pool"]] for own in by_class], False: [own[parameters["pool"] :] for own in by_class]}
    each = parameters["samples"] // int(design.trained.sum())
    if each < 1:
        raise ValueError(
            f"samples must be at least {int(design.trained.sum())}, one per trained combination; it is {parameters['samples']}"
        )
    plan = {
        "train": (design.trained, each, True),
        "validation": (design.trained, parameters["evaluation_samples"], False),
        "test": (~design.trained, parameters["evaluation_samples"], False),
    }
    members = {}
    for name, (wanted, count, training) in plan.items():
        rows = np.repeat(np.flatnonzero(wanted), count)
        items = design.combinations[rows]
        chosen = np.empty_like(items)
        for component, permutation in enumerate(permutations):
            for item, number in enumerate(permutation):
                own = items[:, component] == item
                chosen[own, component] = source.choice(pools[training][number], own.sum())
        members[name] = {"items": items, "images": chosen, "target": design.targets[rows]}
    used, places = np.unique(np.concatenate([member["images"].ravel() for member in members.values()]), return_inverse=True)
    start = 0
    for member in members.values():
        size = member["images"].size
        member["images"] = places[start : start + size].reshape(member["images"].shape)
        start += size
    splits = {
        name: Dataset.from_dict({key: values.tolist() for key, values in member.items()}) for name, member in members.items()
    }
    kept = images[used]
    splits["images"] = Dataset.from_dict({"pixels": [image.tobytes() for image in kept]})
    count, channels, (height, width) = len(design.sizes), kept.shape[1], kept.shape[2:]
    about = {
        "in_distribution": "validation",
        "image_shape": [count * channels, height, width + (count - 1) * parameters["distance"]],
        "component_shape": [channels, height, width],
        "classes": 1,
        "distance": parameters["distance"],
        "augment": parameters["augment"],
        "mean": mean,
        "std": std,
        "class_of_item": [permutation.tolist() for permutation in permutations],
        "disjoint": [{"columns": ["items"], "members": ["test"]}, {"columns": ["images"], "members": ["validation", "test"]}],
    }
    return DatasetDict(splits), about | design.about()
