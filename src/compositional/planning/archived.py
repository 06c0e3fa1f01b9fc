"""Results that are made from a complete build: the manifest of its artifacts, the archive and the report.

Each of them records what it was made of, so an outdated one is detected whatever its modification time.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

from compositional import files
from compositional.archive import bundle, unpacking
from compositional.configuration.messages import ConfigurationError
from compositional.planning.recipes import Job, Recipes, job
from compositional.records import provenance
from compositional.records.fingerprint import code
from compositional.records.order import order_of
from compositional.records.places import record_of, record_of_run
from compositional.runs import figure_runs

LOCK, TEMPLATE = (str(provenance.ROOT / name) for name in ("envs/requirements.txt", "workflow/report/page.html"))
MADE_OF = re.compile(r'<meta name="made-of" content="(\w+)">')


class Archived:
    """The figures selected by `archive:` in the configuration, and everything that they are made of.

    Jobs are fixed when they are planned: Snakemake asks for a job again when it starts, and by then figures were drawn and files
    may have been saved, but the job's recipe file exists only under its first name.
    """

    def __init__(self, recipes: Recipes, asked: Collection[str], options: str) -> None:
        """asked: the figures that this call draws, for which the report waits. options: see `Plan`."""
        self.recipes, self.configuration, self.results = recipes, recipes.configuration, recipes.results
        self.figures, self.asked, self.options = self.configuration.archived, asked, options

    def _records(self) -> list[str]:
        """The records of everything that is archived, as paths below the results folder."""
        shown = [self.recipes.figures[name] for name in self.figures]
        tasks = sorted({grid["task"] for figure in shown for grid in figure["grids"]})
        of_runs = {
            record_of_run(run, name)
            for figure in shown
            for name, made in provenance.RUN_RECORDS.items()
            if name == "run.json" or not set(made).isdisjoint(figure["sources"])
            for run in figure_runs(figure)
        }
        made = [record_of(stage, name) for stage in ("tables", "figures") for name in self.figures]
        return [record_of("splits", task) for task in tasks] + sorted(of_runs) + made

    def _without_runs(self) -> list[str]:
        """Records of other figures that need no runs, if they exist or this call draws them. The report shows them, too,
        because drawing them is cheap."""
        free = [name for name, figure in self.recipes.figures.items() if name not in self.figures and not figure_runs(figure)]
        records = {name: record_of("figures", name) for name in free}
        return [record for name, record in records.items() if name in self.asked or (self.results / record).is_file()]

    @cached_property
    def manifest(self) -> Job:
        """The job that lists every artifact."""
        records, known = self._records(), self.configuration
        tasks = [Path(record).name.removesuffix(provenance.SUFFIX) for record in records if record.startswith("splits/")]
        raw = [f"results/raw/{known.dataset(task)}/{name}" for task in tasks for name in known.raw_files(task)]
        recipe: dict[str, Any] = {
            "stage": "manifest",
            "figures": self.figures,
            "config": known.portable,
            "order": order_of(known.portable),  # some figures show panels in it
            "raw": sorted(set(raw)),
            "sources": digest_of_sources(),
            "code": code("archive.bundle"),
            "of": {record: self.recipes.digest(record) for record in records},
        }
        # The outputs are inputs here, so a missing artifact is made again.
        inputs = [*recipe["raw"], *(f"results/{path}" for record in records for path in self.recipes.made(record)), LOCK]
        return job("all", recipe, inputs, "manifest.json", "manifest")

    @cached_property
    def archive(self) -> Job:
        """The job that packs sources and results.

        Raises:
            ConfigurationError: they would be of no figure, and could not be unpacked.
        """
        if not self.figures:
            raise ConfigurationError("archive.figures: [] names no figure for an archive: write their names, or all")
        recipe = {
            "stage": "archive",
            "data": self.configuration.config["archive"]["data"],
            "code": code("archive.bundle", "archive.ro_crate"),
            "of": self.manifest.content["recipe"]["of"],
        }
        return job("all", recipe, ["results/manifest.json"], "archive.zip", "archive")

    @cached_property
    def report(self) -> Job:
        """The job that writes the report."""
        recipe = {
            "stage": "report",
            "figures": self.recipes.figures,
            "config": self.configuration.portable,
            "options": self.options,
            "files": {Path(path).name: files.sha256(Path(path)) for path in (LOCK, TEMPLATE)},
            "code": code("stages.report"),
            "of": {record: self.recipes.digest(record) for record in [*self._records(), *self._without_runs()]},
        }
        drawn = list(dict.fromkeys([*self.figures, *self.asked]))
        there = [name for name in self.recipes.figures if (self.results / record_of("figures", name)).is_file()]
        recipe["digests"] = {name: self.recipes.digest(record_of("figures", name)) for name in {*drawn, *there}}
        inputs = [f"results/{path}" for name in drawn for path in self.recipes.made(record_of("figures", name))]
        return job("all", recipe, [*inputs, TEMPLATE, LOCK], "report.html", "report")

    def why(self, job: Job) -> str | None:
        """Why the existing file was not made of today's results; the return value is like that of `Recipes.outdated`."""
        recipe, path = job.content["recipe"], self.results / job.record
        also = [record_of("figures", name) for name in self.asked] if recipe["stage"] == "report" else []
        if any(self.recipes.outdated(record) is not None for record in [*recipe["of"], *also]):
            return ""
        if not path.is_file():
            return None
        try:
            true = getattr(self, f"_{recipe['stage']}_is_true")(path, recipe)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return "it was altered or damaged after it was made"
        return None if true else "it was made from other results"

    def _manifest_is_true(self, path: Path, recipe: dict[str, Any]) -> bool:
        known = json.loads(path.read_text(encoding="utf-8"))
        now = bundle.listed(self.results, [self.results / record for record in recipe["of"]])
        now |= {key: recipe[key] for key in ("figures", "config", "order")} | {"environment": provenance.environment(Path(LOCK))}
        return {key: known[key] for key in now} == now and files.digest(known["source"]) == recipe["sources"]

    def _archive_is_true(self, path: Path, recipe: dict[str, Any]) -> bool:
        manifest = self.manifest
        with zipfile.ZipFile(path) as stored:
            same = stored.read(f"{bundle.FOLDER}/manifest.json") == (self.results / manifest.record).read_bytes()
            unpacking.check(stored, unpacking.members_of(stored, path.stat().st_size))
        return same and self.why(manifest) is None

    def _report_is_true(self, path: Path, recipe: dict[str, Any]) -> bool:
        page, _, last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")
        if last != signed(page):
            raise ValueError
        found = MADE_OF.search(page[:4000])
        return found is not None and found[1] == shown(self.results, recipe)


def signed(page: str) -> str:
    """The last line of a report, which shows that what is above it is whole."""
    return f"<!-- sha256 of the page: {hashlib.sha256(page.encode()).hexdigest()} -->"


def shown(results: Path, recipe: dict[str, Any]) -> str:
    """Digest of everything that a report shows: its recipe, and the existing records of figures and runs."""
    figures = recipe["figures"]
    places = [results / "figures" / f"{name}{provenance.SUFFIX}" for name in figures]
    runs = {run for figure in figures.values() for run in figure_runs(figure)}
    places += [results / record_of_run(run, name) for run in sorted(runs) for name in provenance.RUN_RECORDS]
    records = {str(path.relative_to(results)): files.sha256(path) for path in places if path.is_file()}
    return files.digest([recipe, records])


def digest_of_sources() -> str:
    """A digest that changes with the commit and with every file that an archive would contain."""
    try:
        return files.digest(bundle.sources())
    except bundle.ArchiveError:
        return "unknown"
