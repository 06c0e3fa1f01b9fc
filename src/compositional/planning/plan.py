"""What one call of Snakemake needs to know: the packs of its runs, what is out of date, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from compositional import files
from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning import packs
from compositional.planning.archived import Archived
from compositional.planning.packs import Pack
from compositional.planning.recipes import Job, Recipes
from compositional.planning.targets import OF_ALL, targets, wanted_runs
from compositional.records.entries import stores
from compositional.records.places import STAGES


class Due(NamedTuple):
    """What Snakemake must know about a job.

    Attributes:
        forced: the results that must be made again, none if the job is up to date.
        plain: whether Snakemake may look at its inputs: if it is forced, and if it made nothing so far, whose time would matter.
        reasons: lines that say why it is forced, each only once.
    """

    forced: list[str]
    plain: bool
    reasons: list[str]


class Plan:
    """What a command line requests. Planning only reads files until a build begins."""

    def __init__(
        self,
        configuration: Configuration,
        command: list[str],
        results: Path = Path("results"),
        options: str = "",
        cores: int | None = None,
    ) -> None:
        """Plan the targets of a command line.

        Args:
            command: its words, starting with the program.
            options: those of its options that the report adds to its commands.
            cores: the number of jobs at the same time on this machine; None if jobs run elsewhere.

        Raises:
            ConfigurationError, ValueError: a target cannot be made.
            FileNotFoundError: the shared store is in a home folder that does not exist.
        """
        stores(configuration.config["store"])  # or each job would fail
        self.recipes, self._asked = Recipes(configuration, results), targets(command)
        wanted = wanted_runs(configuration, self._asked)
        drawn = {Path(target).name.partition(".")[0] for target in self._asked if target.startswith("results/figures/")}
        self.archived = Archived(self.recipes, sorted(drawn), options)
        self._wanted = {stage: packs.needed(stage, wanted, self.recipes.figures) for stage in STAGES}
        self.packs = {stage: packs.plan(stage, runs, self.recipes, cores) for stage, runs in self._wanted.items()}
        # A list of targets hides rules whose names are digests, which users never type.
        self.rules = packs.by_stage([]) if {"--list-target-rules", "--lt"} & {*command} else self.packs
        self._reasons = {stage: packs.reasons(stage, runs, self.recipes) for stage, runs in self._wanted.items()}
        self._planned = {record for planned in self.packs.values() for pack in planned for record in pack.records}
        self._jobs: dict[str, dict[str, Any]] = {}  # contents of recipe files by name, filled as Snakemake requests them
        self.needed: set[str] = set()  # names of those that are missing or out of date
        self._said: set[str] = set()

    def due(self, job: Job | Pack) -> Due:
        """What Snakemake must know about a job.

        Raises:
            ConfigurationError: the job needs runs that the command line does not request.
        """
        self._jobs[job.name] = job.content
        forced, lines = self._due_pack(job) if isinstance(job, Pack) else self._due_one(job)
        exist = [(self.recipes.results / record).exists() for record in job.records]
        if forced or not all(exist):
            self.needed.add(job.name)
        new = [line for line in lines if line not in self._said]
        self._said.update(new)
        return Due(forced, bool(forced) or not any(exist), new)

    def _due_pack(self, pack: Pack) -> tuple[list[str], list[str]]:
        """A pack runs as a whole if a requested run is out of date."""
        wanted = self._wanted[pack.content["stage"]]
        asked = (record for run, record in zip(pack.runs, pack.records, strict=True) if run in wanted)
        if all(self.recipes.outdated(record) is None for record in asked):
            return [], []
        return [f"results/{record}" for record in pack.records], self._reasons[pack.content["stage"]].get(pack.family, [])

    def _due_one(self, job: Job) -> tuple[list[str], list[str]]:
        """One result, and the raw files that were altered after it was made."""
        if any(record.startswith("runs/") and record not in self._planned for record in job.content["recipe"]["of"]):
            named = ", ".join(self._asked[:3])
            raise ConfigurationError(
                f"this call would also make the {job.title}, although it names only {named}. Snakemake reads the words after an "
                "option such as -R or --until as its values: write targets before options, or after --. Request all on its own"
            )
        of_all = job.record in OF_ALL
        why = self.archived.why(job) if of_all else self.recipes.outdated(job.record)
        if why is None:
            return [], []
        forced = [f"results/{job.record}", *([] if of_all else self.recipes.altered(job.record))]
        return forced, [f"made again: {job.title}: {why}"] if why else []

    def begin(self) -> None:
        """Write the recipe files before the first job starts."""
        for name, content in self._jobs.items():
            path = self.recipes.results / "recipes" / f"{name}.json"
            if not path.is_file() or path.read_bytes() != files.json_bytes(content):
                files.write_json(path, content)
