"""Tasks: datasets, split so that the test set combines parts in a way never seen in training.

A task is a module that defines what `Task` lists.

`build` returns the task's members (a DatasetDict: "train", "test" and others) and the content of task.json.

task.json must contain "in_distribution", the member that shows how well training went: the first of IN_DISTRIBUTION that the task
has. It must also contain "disjoint", which states that members, among them "test", must have nothing in common with training: a
list of {"columns": [columns to compare], "members": [members to compare with "train"]}; if they do have something in common on
purpose, "by_design" gives the reason (`stages.split.audit`).

task.json may contain "references", values that need no network, by metric; if outputs are sentences, "decoding"
(`decoding.scores`, `semantic_match.scores`); "primitives" (`kinds.sequence.Batch.influence`); and what its kind requires in
addition:

    sequence         columns input and output, words separated by spaces: `sentence_pairs.task` makes the return values from pairs
    image            columns image, with the feature Array2D (height, width) or Array3D (channels, height, width), of whole
                     numbers from 0 to 255, and label; "image_shape" (channels, height, width), "classes", "component_width"
                     (None: no redundant component)
    other kinds      see their modules in `kinds`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Members on which accuracy shows how well training went, by preference: the first that a task has is used.
IN_DISTRIBUTION = ("in_distribution", "validation", "train")


@dataclass(frozen=True)
class Task:
    """The contract of a module in this folder. Names with a default are optional."""

    # Its kind, which defines its batches: a module of `kinds`, such as "sequence" or "image".
    KIND: str
    # The module in `datasets/` that lists its raw files; if nothing is downloaded, one without files.
    DATASET: str
    # Its options as JSON schema, each with a default and a description.
    PARAMETERS: dict[str, dict[str, Any]]
    # build(raw, parameters): its members, a DatasetDict, and the content of task.json; `raw` is the folder of its raw files.
    build: Callable[..., tuple[Any, dict[str, Any]]]
    # Whether `build` also takes `processes`, the number of processes that it may use.
    PARALLEL: bool = False
    # For a task built from earlier runs: the names of the options that determine these runs. `build` then also takes their
    # `splits` and `metrics` (`tasks/raven_evolved.py`).
    BUILT_FROM: dict[str, str] | None = None
