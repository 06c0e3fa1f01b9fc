"""What is learned: a dataset, split so that the test set combines parts in a way never seen in training. A task is a module with
what `Task` says.

`build` returns its members (a DatasetDict: "train", "test" and others) and what it says of itself, for task.json.
What it must say of itself: "in_distribution", the member that shows how well training went, which is the first that there is of
IN_DISTRIBUTION; and "disjoint", which members may have nothing in common with training: a list of
{"columns": [those compared], "members": [those that are compared with "train"]}, with "by_design", a reason, where they do have
something in common (`stages.split.audit`). What it may say: "references", values that need no network, by metric;
"decoding" (`decoding.scores`); "primitives" (`kinds.sequence.Batch.influence`); and what its kind needs besides:

    sequence         columns input and output, words between spaces: `sentence_pairs.task` makes both return values from pairs
    image            columns image, of the feature Array2D (height, width) or Array3D (channels, height, width), and label;
                     "classes", "component_width" (None: no redundant component)
    the others       as their modules in `kinds` say
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Members of a task that may stand for what was learned: the first that there is.
IN_DISTRIBUTION = ("in_distribution", "validation", "train")


@dataclass(frozen=True)
class Task:
    """What a module here defines; what has a default, where it needs that."""

    # What a batch is: a module of `kinds`, such as "sequence" or "image".
    KIND: str
    # The module in `datasets/` that lists its raw files, one without files if nothing is downloaded.
    DATASET: str
    # Its options, as JSON schema, each with default and description.
    PARAMETERS: dict[str, dict[str, Any]]
    # build(raw, parameters): its members, a DatasetDict, and what it says of itself; `raw` is the folder of its raw files.
    build: Callable[..., tuple[Any, dict[str, Any]]]
    # `build` takes `processes`, too: how many it may use.
    PARALLEL: bool = False
    # Which earlier runs it is made of, by the names of the options that say so: `build` takes their `splits` and `metrics`, too
    # (`tasks/raven_evolved.py`).
    BUILT_FROM: dict[str, str] | None = None
