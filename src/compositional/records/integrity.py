"""Files that were damaged after they were made, found by the records beside them (compositional.records.provenance).

A record is written after the files that it stands for. So a file that is newer than its record was touched since: every call
checks such files, and Snakemake makes those that changed again. What changes without a new time (a failing disk) is found when a
job reads the file, or when the manifest is made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from compositional import files
from compositional.records import provenance
from compositional.runs import Run, run_folder


class DamagedFileError(ValueError):
    """A file is not what its record says."""


def _newer(path: Path, record: Path) -> bool:
    return path.stat().st_mtime_ns > record.stat().st_mtime_ns


def damaged(record: Path, everything: bool = False) -> list[Path]:
    """Files that are not what a record says; the record itself if it can't be read; nothing if there is no record.

    A file that is gone counts inside a folder, and if it is no file that something else asks for: others are made again when
    they are needed.

    everything: check all files, not only those that are newer than the record.
    """
    try:
        known = dict(provenance.read(record).get("files", {}))
    except (TypeError, ValueError):
        return [record]
    found = []
    for name, digest in known.items():
        path = record.parent / name
        if not path.is_file():
            found += [path] if path.parent != record.parent or name in provenance.UNASKED else []
        elif (everything or _newer(path, record)) and files.sha256(path) != digest:
            found.append(path)
    return found


def records(results: Path, tasks: Iterable[str], runs: Iterable[Run], figures: Iterable[str]) -> list[Path]:
    """The records of tasks, of runs, and of figures and their tables."""
    found = [results / "splits" / f"{task}{provenance.SUFFIX}" for task in sorted(tasks)]
    found += [run_folder(results, run) / name for run in runs for name in provenance.RUN_RECORDS]
    found += [results / kind / f"{name}{provenance.SUFFIX}" for name in figures for kind in ("tables", "figures")]
    return found


def discard(results: Path, record: Path, figures: dict[str, list[Run]]) -> None:
    """Remove what a record stands for and all that is made of it, so that it is made again.

    Of a run whose record of training stands its weights stay: the store, from where others come back, may have been deleted.

    figures: the runs that each figure is made from.
    """
    stage, name = record.relative_to(results).parts[0], record.name.removesuffix(provenance.SUFFIX)
    runs: set[Run] = set()
    if stage == "runs":
        runs = {Run.of_folder(record.parent)}
        if name == "run.json":
            shutil.rmtree(record.parent, ignore_errors=True)
        for file in (name, *provenance.RUN_RECORDS[name]):
            (record.parent / file).unlink(missing_ok=True)
    elif stage == "splits":
        runs = {run for members in figures.values() for run in members if run.task == name}
        shutil.rmtree(results / stage / name, ignore_errors=True)
        record.unlink(missing_ok=True)
        for run in runs:
            shutil.rmtree(run_folder(results, run), ignore_errors=True)
    for figure, members in figures.items():
        kinds = ("tables", "figures") if stage == "tables" or not runs.isdisjoint(members) else ("figures",)
        if figure == name or not runs.isdisjoint(members):
            for path in [path for kind in kinds for path in (results / kind).glob(f"{figure}.*")]:
                path.unlink(missing_ok=True)


def repair(results: Path, records: list[Path], figures: dict[str, list[Run]], only_look: bool = False) -> list[Path]:
    """Find damaged files by these records, and discard them with all that is made of them; returns the damaged files."""
    found = {record: paths for record in records if (paths := damaged(record))}
    for record in found if not only_look else ():
        discard(results, record, figures)
    return [path for paths in found.values() for path in paths]


def verify(path: Path) -> None:
    """Check a file, or all files of a folder, that a job is about to read.

    Raises:
        DamagedFileError: it is not what the record beside it says. The next call then makes it again.
    """
    beside = [path.parent / name for name in provenance.RUN_RECORDS] + [path.parent / f"{path.stem}{provenance.SUFFIX}"]
    for record in beside:
        for name, digest in provenance.read(record).get("files", {}).items():
            file = record.parent / name
            if (file == path or path in file.parents) and (not file.is_file() or files.sha256(file) != digest):
                if file.is_file():
                    os.utime(file)  # newer than its record, so that the next call makes it again
                raise DamagedFileError(
                    f"{file} was altered or damaged after it was made: its sha256 is not the one in {record}. "
                    "Call the same command again: it is made anew"
                )
