"""Which runs share a job.

A pack holds runs of one family that are needed by the same figures, so building one figure never trains runs that only another
figure needs. Runs that are up to date stay in the pack that their records name: a new seed or lambda makes new packs and leaves
the old ones unchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product, starmap
from math import ceil
from pathlib import Path
from typing import Any

from compositional.planning.costs import START, until_the_last_ends
from compositional.planning.recipes import WHAT, Recipes
from compositional.records import provenance
from compositional.records.entries import stored, stores
from compositional.records.places import STAGES, recipe_in, recipe_name, record_of, record_of_run
from compositional.runs import Run

LEAST = 1.0  # seconds of work of a pack that is made smaller; a job starts in less
FINER = 0.9  # a build must end this much earlier with smaller packs, whose runs take a little longer


def counted(number: int, family: tuple[str, str, str]) -> str:
    """So many runs of a family, in words."""
    return f"{number} {'run' if number == 1 else 'runs'} of {'/'.join(family)}"


@dataclass(frozen=True)
class Pack:
    """Runs of one family that one job trains, evaluates or represents. No result depends on which runs share a pack.

    `content` is the content of its recipe file: everything that the job and the rule of the pack depend on.
    """

    content: dict[str, Any]
    # Whether the store's entries cannot be its runs': weights were altered in place, and so was the entry, the same file; or the
    # task's data are made again, so that entries may be of the data before.
    altered: bool = False
    data: str | None = None  # digest of the task's data; None if there are none yet

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Its runs, which have the same task, model and regularizer."""
        return tuple(map(Run.parse, self.content["runs"]))

    @property
    def family(self) -> tuple[str, str, str]:
        """Task, model and regularizer of its runs."""
        return self.runs[0].family

    @cached_property
    def name(self) -> str:
        """The name of its recipe file and of its rule; the digest identifies its content."""
        return recipe_name(f"{self.content['stage']}_{'__'.join(self.family)}", self.content)

    @property
    def label(self) -> str:
        """The name without the stage, used for its log."""
        return self.name.partition("_")[2]

    @property
    def title(self) -> str:
        """A description for messages."""
        return counted(len(self.runs), self.family)

    @property
    def records(self) -> list[str]:
        """Its runs' records, below the results folder."""
        return [record_of_run(run, STAGES[self.content["stage"]]) for run in self.runs]

    @property
    def inputs(self) -> list[str]:
        """The split; after training also what training made."""
        split = f"results/splits/{self.family[0]}"
        made = [] if self.content["stage"] == "train" else [*provenance.RUN_RECORDS["run.json"], "run.json"]
        return [split, f"{split}{provenance.SUFFIX}", *(path for name in made for path in self.files(name))]

    @property
    def outputs(self) -> list[str]:
        """Records come last: Snakemake sets modification times in this order, and a file newer than its record is suspect."""
        return [path for name in self.content["files"] for path in self.files(name)]

    @cached_property
    def stored(self) -> bool:
        """Whether a store seems to have all of its runs. Then its job only writes files, which takes seconds and no device."""
        shared, told = self.content["common"], self.content["job"]
        planned = (shared | {"lambda": run.strength, "seed": run.seed} for run in self.runs)
        return not self.altered and stored(stores(told["store"]), planned, told["device"], self.data)

    @property
    def resources(self) -> dict[str, Any]:
        """What the job needs, as Snakemake's resources. A profile's requests for a GPU are withheld from jobs on the CPU."""
        return {"gpu": 0, "gpu_model": "", "gres": ""} if self.content["job"]["device"] == "cpu" else {}

    @property
    def steps(self) -> int:
        """Training steps of all its runs together."""
        return len(self.runs) * self.content["common"]["family"]["settings"]["steps"]

    def files(self, name: str) -> list[str]:
        """The paths of this file in the folders of all runs."""
        return [f"results/{record_of_run(run, name)}" for run in self.runs]


def pack_of(stage: str, runs: list[Run], recipes: Recipes) -> Pack:
    """Make a pack according to today's recipes."""
    family, configuration = runs[0].family, recipes.configuration
    made = [Path(path).name for path in recipes.made(record_of_run(runs[0], STAGES[stage]))]
    split = record_of("splits", family[0])
    return Pack(
        {
            "stage": stage,
            "common": recipes.common(stage, family),
            "runs": {run.path: recipes.of_run(stage, run) for run in runs},
            "files": [*made, STAGES[stage]],
            "job": {key: configuration.config[key] for key in ("device", "jobs_per_gpu", "checkpoint_seconds", "store")},
        },
        stage == "train"
        and (
            recipes.outdated(split) is not None
            or any(recipes.altered_in_store(record_of_run(run, STAGES[stage])) for run in runs)
        ),
        (recipes.record(split) or {}).get("content_sha256"),
    )


def by_stage(packs: list[Pack]) -> dict[str, list[Pack]]:
    """Packs by what is done with them."""
    return {stage: [pack for pack in packs if pack.content["stage"] == stage] for stage in STAGES}


def read(folder: Path, words: list[str]) -> list[Pack]:
    """The packs whose recipe files a command line names: those of one job. It works on any machine."""
    paths = [path for path in sorted(folder.glob("*__*.json")) if any(path.stem in word for word in words)]
    return [Pack(recipe_in(path)) for path in paths if path.name.partition("_")[0] in STAGES]


def cut(wanted: dict[Run, frozenset[str]], size_of: Callable[[tuple[str, str, str]], int]) -> list[list[Run]]:
    """Cut every family into packs of nearly equal size: first by who needs its runs, then by seed and lambda.

    size_of: the largest number of runs in a pack of a family.
    """
    groups: dict[tuple, list[Run]] = defaultdict(list)
    for run in sorted(wanted, key=lambda run: (run.family, run.seed, run.strength)):
        groups[(run.family, wanted[run])].append(run)
    packs = []
    for (family, _), members in groups.items():
        even = -(-len(members) // -(-len(members) // size_of(family)))
        packs += [members[start : start + even] for start in range(0, len(members), even)]
    return packs


def units_of(stage: str, family: tuple[str, str, str], recipes: Recipes) -> int:
    """The number of units of a stage's costs that a run of a family has: training steps, or the run itself."""
    return recipes.configuration.family_parameters(family)["settings"]["steps"] if stage == "train" else 1


def seconds_of(stage: str, family: tuple[str, str, str], recipes: Recipes) -> float:
    """What a stage takes for one run of a family; 0 if nothing like it was ever timed."""
    return (recipes.costs.seconds(stage, "/".join(family)) or 0.0) * units_of(stage, family, recipes)


def until_made(packs: list[list[Run]], seconds: dict[tuple[str, str, str], float], cores: int) -> float:
    """Seconds until these packs are made, the longest first. seconds: of one run, by family."""
    return until_the_last_ends(sorted((START + seconds[pack[0].family] * len(pack) for pack in packs), reverse=True), cores)


def shared_out(stage: str, wanted: dict[Run, frozenset[str]], recipes: Recipes, cores: int | None) -> list[list[Run]]:
    """Cut runs into packs, and into smaller ones if no core is idle for long then: ten runs on two cores are two packs of five.

    cores: the number of jobs at the same time; None if they run elsewhere. Packs that may train on a GPU keep their sizes.
    """
    size_of = recipes.pack_sizes.of
    usual = cut(wanted, size_of)
    if cores is None or not recipes.pack_sizes.on_cores:
        return usual
    seconds = {family: seconds_of(stage, family, recipes) for family in {run.family for run in wanted}}
    whole = sum(seconds[run.family] for run in wanted)

    def finer(share: int, rounded: Callable[[float], int]) -> list[list[Run]]:
        longest = max(LEAST, whole / cores / share)
        fitting = {family: max(1, rounded(longest / own)) for family, own in seconds.items() if own}
        return cut(wanted, lambda family: min(size_of(family), fitting.get(family, len(wanted))))

    ways = starmap(finer, product((1, 2, 3), (round, ceil)))
    best = min(ways, key=lambda packs: until_made(packs, seconds, cores))
    return best if until_made(best, seconds, cores) < FINER * until_made(usual, seconds, cores) else usual


def _pack_of(record: str, recipes: Recipes) -> list[str] | None:
    """The pack that a run's record names; None if a file is missing."""
    known = recipes.record(record)
    return known["pack"] if known and all((recipes.results / path).exists() for path in recipes.made(record)) else None


def needed(stage: str, wanted: dict[Run, frozenset[str]], figures: dict[str, dict]) -> dict[Run, frozenset[str]]:
    """The wanted runs that a stage works on. Representations are measured only if a figure or a target needs them."""
    measured = provenance.RUN_RECORDS["representation.json"]
    ask = {"runs", *(name for name, figure in figures.items() if not set(measured).isdisjoint(figure["sources"]))}
    return {run: need for run, need in wanted.items() if stage != "represent" or need & ask}


def plan(stage: str, wanted: dict[Run, frozenset[str]], recipes: Recipes, cores: int | None = None) -> list[Pack]:
    """Put the wanted runs into packs: up-to-date runs into the packs that their records name, the others into new packs.
    cores: as in `shared_out`.

    No job that has to run therefore contains a run that was not requested.
    """
    name = STAGES[stage]
    outdated = {run: recipes.outdated(record_of_run(run, name)) is not None for run in wanted}
    there = {run: _pack_of(record_of_run(run, name), recipes) for run in wanted}
    found: list[list[Run]] = []
    taken: set[Run] = set()
    for run in wanted:
        named = there[run]
        if run in taken or outdated[run] or named is None:
            continue
        pack = [Run.parse(path) for path in named]
        records = [recipes.record(record_of_run(other, name)) if recipes.configuration.knows(other) else {} for other in pack]
        agreed = all(record is None or record.get("pack") == named for record in records)
        # A pack runs as a whole if one of its runs is outdated or missing. Then all of its runs must be wanted.
        idle = not any(outdated.get(other) or there.get(other, named) is None for other in pack)
        if agreed and taken.isdisjoint(pack) and (idle or wanted.keys() >= set(pack)):
            found.append(pack)
            taken.update(pack)
    waiting = {run for run in wanted if outdated[run] or there[run] is None}
    for waits in (False, True):  # up-to-date runs do not share a job with others
        rest = {run: need for run, need in wanted.items() if run not in taken and (run in waiting) is waits}
        found += shared_out(stage, rest, recipes, cores)
    return [pack_of(stage, runs, recipes) for runs in found]


def reasons(stage: str, wanted: dict[Run, frozenset[str]], recipes: Recipes) -> dict[tuple[str, str, str], list[str]]:
    """Why runs are made again: one line per reason and family."""
    why: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for run in wanted:
        if reason := recipes.outdated(record_of_run(run, STAGES[stage])):
            why[run.family][reason] += 1
    return {
        family: [f"made again: {WHAT[stage]}{counted(count, family)}: {reason}" for reason, count in counts.items()]
        for family, counts in why.items()
    }
