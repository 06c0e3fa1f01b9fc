"""Stage split: build a task's members, audit them for overlap, and write them as Arrow with a description."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from datasets import Dataset, DatasetDict, disable_progress_bars

from compositional import files, plugins
from compositional.records import integrity, provenance, undeclared
from compositional.records.places import record_of
from compositional.stages import download
from compositional.stages.shared import task_checks
from compositional.tasks import Task

# Parts of a task's description that training does not read. The other parts say how examples are shown to a model (canvas,
# distance, virtual words), so other values of these are other data although the members are the same.
_NOT_TRAINED_ON = {
    *("task", "dataset", "parameters", "audit", "items", "raw_sha256"),
    *("references", "decoding"),  # of evaluation
}


class OverlapError(ValueError):
    """A test set contains training examples."""


def _as_read(value: Any) -> Any:
    """A value as kinds read it: sentences as words, images as bytes, and no negative zero."""
    match value:
        case str():
            return " ".join(value.split())
        case np.ndarray():
            return value.astype(np.uint8)
        case list():
            return [*map(_as_read, value)]
        case float():
            return value + 0.0
    return value


def _text(value: Any) -> str:
    """A value as text, the same for numbers that are equal in single precision, in which kinds read them."""
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    exact = isinstance(value, int) and abs(value) >= 2**24
    return str(float(np.float32(value))) if isinstance(value, int | float) and not exact else str(value)


def _digests(member: Dataset, columns: list[str], change: Callable[[Any], Any] = lambda value: value) -> list[bytes]:
    """One digest per row over the given columns, whose values are changed before."""
    values = [map(change, member.with_format("numpy" if column == "image" else None)[column][:]) for column in columns]
    return [
        hashlib.sha256(b"\x1f".join(v.tobytes() if hasattr(v, "tobytes") else _text(v).encode() for v in row)).digest()
        for row in zip(*values, strict=True)
    ]


def audit(members: DatasetDict, disjoint: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count the items of each disjoint member that occur in training, and the distinct ones among them.

    The two shares differ if a member repeats items: of 200 draws from 162 inputs, almost all may occur in training although only
    115 of the inputs do.

    disjoint: columns to compare, members to compare with training and, if a task overlaps on purpose, the reason under
    "by_design": then the count is recorded and not refused.

    Raises:
        OverlapError: items occur in training without a declared reason.
    """
    counts = []
    for rule in disjoint:
        trained = set(_digests(members["train"], rule["columns"], _as_read))
        for name in rule["members"]:
            count: dict[str, Any] = {"member": name, "columns": rule["columns"]}
            items = _digests(members[name], rule["columns"], _as_read)
            for prefix, found in (("", items), ("distinct_", set(items))):
                known = sum(digest in trained for digest in found)
                count |= {f"{prefix}items": len(found), f"{prefix}in_training": known, f"{prefix}share": known / len(found)}
            counts.append(count | ({"by_design": rule["by_design"]} if "by_design" in rule else {}))
    # The member by which settings are chosen must not show the test set.
    if {"compositional", "test"} <= members.keys():
        for columns in {tuple(rule["columns"]) for rule in disjoint if "test" in rule["members"]}:
            chosen, test = (_digests(members[name], [*columns], _as_read) for name in ("compositional", "test"))
            if shared := len({*chosen} & {*test}):
                raise OverlapError(
                    f"{shared} distinct items of compositional, by which lambda is chosen, are in test (by {', '.join(columns)})"
                )
    if leaks := [count for count in counts if count["in_training"] and "by_design" not in count]:
        lines = [f"{c['in_training']} of {c['items']} items of {c['member']} (by {', '.join(c['columns'])})" for c in leaks]
        raise OverlapError(f"items of an evaluation set occur in training: {'; '.join(lines)}")
    return counts


def perform(content: dict[str, Any], log: TextIO) -> None:
    """Make the split of a recipe file, and its record. The command line's last word is the number of processes."""
    recipe, results = content["recipe"], Path("results")
    task, raw = recipe["task"], results / "raw" / recipe["dataset"]
    folder = results / "splits" / task
    splits = [results / "splits" / name for name in recipe["splits"]]
    metrics = [results / "runs" / run / "metrics.csv" for run in recipe["runs"]]
    with provenance.recording(results / record_of("splits", task), [folder], recipe) as record:
        make_split(
            task,
            recipe["module"],
            recipe["parameters"],
            raw,
            folder,
            raw_files=list(recipe["raw"]),
            processes=int(sys.argv[3]),
            splits=splits,
            metrics=metrics,
        )
        about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        record.update({key: about[key] for key in ("task", "dataset", "parameters", "raw_sha256", "content_sha256")})
        record["inputs"] = provenance.digests(results, [*(raw / name for name in recipe["raw"]), *metrics])
        for path in splits:
            about = json.loads((path / "task.json").read_text(encoding="utf-8"))
            record["inputs"][f"splits/{path.name}"] = about["content_sha256"]


def make_split(
    task: str,
    module: str,
    parameters: dict[str, Any],
    raw: Path,
    folder: Path,
    raw_files: Sequence[str] = (),
    processes: int = 1,
    splits: Sequence[Path] = (),
    metrics: Sequence[Path] = (),
) -> None:
    """Build a task and write it to `folder`: a DatasetDict on disk, with task.json in it.

    `raw` is the dataset's folder, of which the task reads `raw_files`; others may belong to other tasks. A task that declares
    PARALLEL may use `processes` processes.

    task.json holds the task's properties that models need, its parameters, the audit, and digests of raw data and content.
    A task that is built from other tasks and runs gets their folders and metrics (`splits`, `metrics`).

    Raises:
        OverlapError: an evaluation set that must be disjoint from training is not.
        PermissionError: `build` reads another file.
        ValueError: a raw file, another task or a run's metrics were altered after they were made, or `build` draws random numbers
            without a seed or returned something that its contract does not allow.
    """
    implementation = plugins.load(Task, module)

    def verify() -> None:
        for name in raw_files:
            download.verify(implementation.DATASET, raw / name)
        for path in (*splits, *metrics):
            integrity.verify(path)

    verify()
    more: dict[str, Any] = {"processes": processes} if implementation.PARALLEL else {}
    more |= {"splits": splits, "metrics": metrics} if splits else {}
    declared = [raw / name for name in raw_files] or [raw]  # without raw files, the folder has what `build` itself keeps there
    why = "a task reads the files that its dataset lists in FILES, so that changes are noticed (docs/extending.md, Your own data)"
    build = f"{plugins.module_path(module)}: build"
    with undeclared.refused([*declared, *splits, *metrics], why, everywhere=True), undeclared.no_random_numbers(build):
        built = implementation.build(raw, deepcopy(parameters), **more)  # a copy, because it may take options with pop
    verify()  # they may have changed while they were read
    if not isinstance(built, tuple) or len(built) != 2:
        kinds = f"({', '.join(type(part).__name__ for part in built)})" if isinstance(built, tuple) else type(built).__name__
        raise TypeError(f"{build} must return (members, content of task.json), it returns {kinds}")
    members, about = built
    task_checks.check(task, implementation.KIND, members, about)
    about |= {"task": task, "kind": implementation.KIND, "dataset": implementation.DATASET, "parameters": parameters}
    about["audit"] = audit(members, about.pop("disjoint"))
    about["items"] = {name: len(member) for name, member in members.items()}
    about["raw_sha256"] = {name: files.sha256(raw / name) for name in raw_files}
    content = {
        name: hashlib.sha256(b"".join(_digests(member, sorted(member.column_names)))).hexdigest()
        for name, member in members.items()
    }
    shown = {key: value for key, value in about.items() if key not in _NOT_TRAINED_ON}
    about["content_sha256"] = files.digest([content, shown])
    disable_progress_bars()
    with files.replacing_folder(folder) as temporary:
        for name, member in members.items():
            member._fingerprint = content[name][:16]  # this is written to disk, and is random by default
        members.save_to_disk(str(temporary))
        files.write_json(temporary / "task.json", about)
