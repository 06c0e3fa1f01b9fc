"""The recipe of every result, and which results were made by another recipe.

A recipe is a dictionary: the options, the code (`fingerprint.code`, which includes the versions of the libraries that compute),
and under "of" the results that this one is made from: their records, each with the digest of *its* recipe. So every change
propagates. Each record holds the recipe that its result was made by. This module only reads records. It writes nothing and does
not use Snakemake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from compositional import files
from compositional.configuration.configuration import Configuration
from compositional.planning.costs import Costs
from compositional.planning.pack_sizes import PackSizes
from compositional.plugins import declarations
from compositional.records import integrity, provenance
from compositional.records.fingerprint import code
from compositional.records.links import is_linked
from compositional.records.order import order_of
from compositional.records.places import ENDINGS, STAGES, recipe_name, record_beside, record_of, record_of_run, sources_of
from compositional.runs import Run, figure_runs
from compositional.tables import reader_of

# Modules that determine a run's numbers, besides its task's kind, its model and its regularizer.
TRAINING = ("training.loop", "training.reading", "evaluation.learning_curves", "stages.shared.devices")
WHAT = {"train": "", "evaluate": "evaluation of ", "represent": "representations of "}  # in messages
_SHOWN = 60  # characters of a value that a message shows


def _leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, own in value.items():
            yield from _leaves(own, (*keys, key))
    else:
        yield keys, value


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The difference between two recipes of one result in words; empty if they differ only in the recipes of their sources."""
    before, now = dict(_leaves(old)), dict(_leaves(new))
    changed = [keys for keys in before | now if before.get(keys) != now.get(keys)]
    # Options that became empty, or no longer are, are shown by what was in them. The order of options is shown if it is all.
    full = {keys[:depth] for keys in changed for depth in range(1, len(keys))}
    ordered = [keys for keys in changed if keys[:1] == ("order",)]
    words = ["the order of its options"] if ordered and ordered == [keys for keys in changed if keys[:1] != ("of",)] else []
    for keys in changed:
        if keys in full or keys[:1] in ((), ("of",), ("order",)):
            continue
        if keys[-1] == "fingerprint":
            words.append("the code that writes it" if keys[0] == "writing" else "its code")
        elif "modules" not in keys:
            values = (json.dumps(found[keys])[:_SHOWN] if keys in found else "not set" for found in (before, now))
            name = ".".join(keys[1:] if keys[0] == "options" else keys[-1:])
            words.append(f"{name} {' -> '.join(values)}")
    for one, other, done in ((new, old, "added"), (old, new, "removed")):
        records = one.get("of", {}).keys() - other.get("of", {}).keys()
        if records:
            of_runs = all(name.startswith("runs/") for name in records)  # a run has several records
            count = len({name.rpartition("/")[0] for name in records} if of_runs else records)
            words.append(f"{count} {'run' if of_runs else 'input'}{'s' * (count > 1)} {done}")
    return ", ".join(dict.fromkeys(words))


@dataclass(frozen=True)
class Job:
    """One result to be made: name and content of its recipe file, its inputs, its record, and a title for messages."""

    name: str
    content: dict[str, Any]
    inputs: list[str]
    record: str
    title: str

    @property
    def records(self) -> list[str]:
        """The same as for a pack."""
        return [self.record]


def job(name: str, recipe: dict[str, Any], inputs: list[str], record: str, title: str) -> Job:
    """Create the job that makes one result by a recipe."""
    content = {"stage": recipe["stage"], "recipe": recipe}
    made_from = [f"results/{record}" for record in recipe["of"]]
    return Job(recipe_name(f"{recipe['stage']}_{name}", content), content, [*inputs, *made_from], record, title)


class Recipes:
    """Recipes according to today's configuration and code, addressed by the paths of records below the results folder."""

    def __init__(self, configuration: Configuration, results: Path = Path("results")) -> None:
        self.configuration, self.results = configuration, results
        self.figures = configuration.figures
        # These are called many times: once per run, and once per result that is made from it.
        for name in ("common", "damaged", "decoded", "digest", "record", "outdated"):
            setattr(self, name, cache(getattr(self, name)))

    @cached_property
    def pack_sizes(self) -> PackSizes:
        """How many runs train together. No recipe depends on it: it is read here once for all stages and figures."""
        return PackSizes(self.configuration, self.results)

    @cached_property
    def costs(self) -> Costs:
        """How long runs take; no recipe depends on it, either."""
        return Costs(self.results)

    def common(self, stage: str, family: tuple[str, str, str]) -> dict[str, Any]:
        """The part that the recipes of all runs of a family share."""
        modules = self.configuration.modules(family)
        shared = {"stage": stage, "family": self.configuration.family_parameters(family)}
        if stage == "train":
            return shared | {"code": code(*TRAINING, *modules), "writing": code("stages.train")}
        return shared | {"code": code(f"stages.{stage}", *modules)}

    def of_run(self, stage: str, run: Run) -> dict[str, Any]:
        """The part of a recipe that belongs to one run."""
        made_from = [record_of("splits", run.task)] + ([] if stage == "train" else [record_of_run(run, "run.json")])
        return {"run": run.path, "of": self._digests(made_from)}

    def _digests(self, records: list[str]) -> dict[str, str]:
        return {record: self.digest(record) for record in records}

    def recipe(self, record: str) -> dict[str, Any]:
        """The recipe of the result that this record belongs to."""
        stage, _, name = record.partition("/")
        if stage == "runs":
            run, made_by = Run.of_folder(Path(record).parent), {name: stage for stage, name in STAGES.items()}
            stage = made_by[Path(record).name]
            return self.common(stage, run.family) | self.of_run(stage, run)
        return getattr(self, f"_{stage}")(name.removesuffix(provenance.SUFFIX))

    def digest(self, record: str) -> str:
        """The digest of the recipe of the result that this record belongs to."""
        return files.digest(self.recipe(record))

    def _splits(self, task: str) -> dict[str, Any]:
        known, dataset = self.configuration, self.configuration.dataset(task)
        tasks, runs = known.built_from(task)
        made_from = [record_of("splits", name) for name in tasks] + [record_of_run(run, "evaluation.json") for run in runs]
        return {
            "stage": "split",
            "task": task,
            **known.split_parameters(task),
            "dataset": dataset,
            "raw": {name: content_of(dataset, name) for name in known.raw_files(task)},
            "splits": tasks,
            "runs": [run.path for run in runs],
            "code": code("stages.split", known.module("tasks", task)),
            "of": self._digests(made_from),
        }

    def _tables(self, name: str) -> dict[str, Any]:
        figure = self.figures[name]
        readers = [reader for source in figure["sources"] if (reader := reader_of(source))]
        if figure["sources"] == ["split"]:
            made_from = [record_of("splits", grid["task"]) for grid in figure["grids"]]
            readers += sorted({f"kinds.{self.configuration.declared('tasks', grid['task'])['KIND']}" for grid in figure["grids"]})
        else:
            names = ["run.json", *(record_beside(Path(source)).name for source in figure["sources"])]
            made_from = [record_of_run(run, name) for run in figure_runs(figure) for name in dict.fromkeys(names)]
        return {
            "stage": "aggregate",
            "figure": name,
            "sources": figure["sources"],
            "code": code("stages.aggregate", *readers),
            "of": self._digests(list(dict.fromkeys(made_from))),
        }

    def _figures(self, name: str) -> dict[str, Any]:
        figure = self.figures[name]
        return {
            "stage": "plot",
            "figure": name,
            "module": figure["module"],
            "options": figure["options"],
            "order": order_of(figure["options"]),  # of panels and lines
            "code": code("stages.plot", f"figures.{figure['module']}"),
            "of": self._digests([record_of("tables", name)]),
        }

    def made(self, record: str) -> list[str]:
        """The files or folders that this record belongs to, below the results folder."""
        stage, _, name = record.partition("/")
        if stage == "runs":
            place = Path(record)
            decoded = self.decoded(place.parts[1])
            names = [name for name in provenance.RUN_RECORDS[place.name] if decoded or name != "predictions.csv"]
            return [f"{record.rpartition('/')[0]}/{name}" for name in names]
        return [f"{stage}/{name.removesuffix(provenance.SUFFIX)}{ending}" for ending in ENDINGS[stage]]

    def decoded(self, task: str) -> bool:
        """Whether runs of this task have predictions, because its splits are `kinds.sequence.SequenceSplit`s."""
        kind = declarations(f"kinds.{self.configuration.declared('tasks', task)['KIND']}")
        return kind["REPRESENTED"] and "output" in kind["COLUMNS"]

    def split(self, task: str) -> Job:
        """The job that makes a split."""
        record = record_of("splits", task)
        recipe = self.recipe(record)
        inputs = [f"results/raw/{recipe['dataset']}/{name}" for name in recipe["raw"]]
        inputs += [f"results/splits/{name}" for name in recipe["splits"]]
        inputs += [f"results/runs/{run}/metrics.csv" for run in recipe["runs"]]
        return job(task, recipe, inputs, record, f"split {task}")

    def table(self, name: str) -> Job:
        """The job that makes a figure's table."""
        record = record_of("tables", name)
        recipe = self.recipe(record)
        return job(name, recipe, [f"results/{path}" for path in sources_of(recipe)], record, f"table {name}")

    def figure(self, name: str) -> Job:
        """The job that draws a figure."""
        record = record_of("figures", name)
        return job(name, self.recipe(record), [f"results/tables/{name}.csv"], record, f"figure {name}")

    def record(self, path: str) -> dict[str, Any] | None:
        """The record at this path; None if there is none, or if it was damaged or edited."""
        return provenance.vouched(self.results / path)

    def outdated(self, path: str) -> str | None:
        """Why the result of this record must be made again; empty if the reason is reported for another record.

        None if the result is up to date, and also if it is missing: Snakemake itself makes missing files, unless they are below
        a forced one.
        """
        record, recipe = self.record(path), self.recipe(path)
        if record is None and any((self.results / name).exists() for name in (path, *self.made(path))):
            return "no valid record belongs to the existing files"
        if any(self.outdated(other) is not None for other in recipe["of"]):
            return ""
        if record is None:
            return None
        if record["recipe_digest"] != self.digest(path):
            return difference(record["recipe"], recipe)
        wish = self.configuration.config["device"]
        if wish != "auto" and record.get("device", wish) != wish:
            return f"device {record['device']} -> {wish}"
        if bad := self.damaged(path):
            also = ", in place: so was each hard link of it, such as the store's" if self.altered_in_store(path) else ""
            return f"{self.results / path}: {bad[0].name} was altered or damaged after it was made{also}"
        other = [name for name, digest in record["inputs"].items() if self._now(name, path) not in (None, digest)]
        return f"{other[0]} changed after it was used" if other else None

    def damaged(self, path: str) -> list[Path]:
        """The files of this record that were altered after it was written; none if there is no valid record. They may be read."""
        record, place = self.record(path), self.results / path
        if record is None:
            return []
        # After a power cut, a file that was not yet on the disk is empty, and as old as it was.
        emptied = any(not file.stat().st_size for name in record["files"] if (file := place.parent / name).is_file())
        return integrity.damaged(place, record, everything=emptied)

    def altered_in_store(self, path: str) -> bool:
        """Whether a file of this record was altered in place and has another name, which is that of the store's entry."""
        return any(map(is_linked, self.damaged(path)))

    def altered(self, path: str) -> list[str]:
        """Raw files that do not match today's published checksum or this record. They must be downloaded again."""
        record, recipe = self.record(path) or {"inputs": {}, "recipe": {}}, self.recipe(path)
        before, found = record["recipe"].get("raw", {}), []
        for name, content in recipe.get("raw", {}).items():
            place, published = f"raw/{recipe['dataset']}/{name}", _published(recipe["dataset"], name)
            if not published or not (self.results / place).is_file():
                continue
            changed = self._now(place, path) not in (None, record["inputs"].get(place))
            # Another release of the dataset: the file may already be that one. A git blob's checksum is not compared here.
            renewed = before.get(name, content) != content and files.sha256(self.results / place) != published
            found += [f"results/{place}"] * (changed or renewed)
        return found

    def _now(self, name: str, record: str) -> str | None:
        """Today's digest of a file, or of a split's content, according to its record; None if no valid record has it."""
        if name.startswith("raw/"):
            # Downloads have no record. A download is hashed only if it is newer than the result that was made from it.
            path = self.results / name
            newer = path.is_file() and path.stat().st_mtime_ns > (self.results / record).stat().st_mtime_ns
            return files.sha256(path) if newer else None
        place = record_beside(Path(name))
        known = self.record(str(place)) or {"files": {}}
        if name == str(place).removesuffix(provenance.SUFFIX):
            return known.get("content_sha256")
        return known["files"].get(str(Path(name).relative_to(place.parent)))


def _published(dataset: str, name: str) -> str | None:
    """The published checksum of a download, if there is one."""
    entry = declarations(f"datasets.{dataset}")["FILES"].get(name, {})
    return entry.get("sha256") or entry.get("git_blob")


def content_of(dataset: str, name: str) -> str:
    """What identifies a download: its published checksum or, without one, the fingerprint of the code that fetches it."""
    return _published(dataset, name) or code("stages.download", f"datasets.{dataset}")["fingerprint"]
