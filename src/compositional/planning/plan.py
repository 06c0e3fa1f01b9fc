"""Which runs train together in one job.

A pack holds runs of one family that the same figures need, so no figure ever trains what only another one needs. Packs whose
runs all exist, made by today's code and options, are kept as they are (in results/plan.json): a new seed or lambda makes new
packs and touches none of the old.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compositional import files
from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.records import provenance
from compositional.records.fingerprint import of_script
from compositional.runs import Run, figure_runs, run_folder

OF_ALL = ("manifest.json", "archive.zip", "report.html")  # made of all figures under `archive:` in the configuration
A_FILE = {"runs": "/metrics.csv", "figures": ".pdf", "tables": ".csv"}  # of each stage, to ask for instead of a bare name


@dataclass(frozen=True)
class Pack:
    """Runs of one family that train in one process. Which runs share a pack is no part of any result."""

    runs: tuple[Run, ...]

    @property
    def family(self) -> tuple[str, str, str]:
        """Task, model and regularizer of all its runs."""
        return self.runs[0].family

    @property
    def name(self) -> str:
        """Fit for a rule's name; the digest tells packs of one family apart."""
        digest = hashlib.sha256("\n".join(run.path for run in self.runs).encode()).hexdigest()
        return f"{'__'.join(self.family)}__{digest[:8]}"

    def files(self, results: str, name: str) -> list[str]:
        """The file of this name of every run."""
        return [str(run_folder(results, run) / name) for run in self.runs]


def wanted_runs(configuration: Configuration, results: str, targets: Collection[str]) -> dict[Run, frozenset[str]]:
    """The runs that a call asks for, each with the targets that need it; all runs if it has no target, or one that is no result,
    such as a rule.

    Raises:
        ConfigurationError, ValueError: a download, split, run or figure that is asked for cannot be made.
    """
    wanted: dict[Run, set[str]] = defaultdict(set)
    figures = configuration.figures
    for argument in targets:
        stage, _, rest = argument.rstrip("/").removeprefix(f"{results}/").partition("/")
        if not argument.startswith(f"{results}/"):
            continue
        if stage == "runs":
            path = rest if rest.rsplit("/", 1)[-1].startswith("seed=") else rest.rsplit("/", 1)[0]
            run = Run.parse(path)
            configuration.check_run(run)
            if run.path != path:
                raise ConfigurationError(f"{argument}: write this run as {run.path}")
            wanted[run].add("runs")
        elif argument.removeprefix(f"{results}/") in OF_ALL:
            for name in configuration.archived:
                for run in figure_runs(figures[name]):
                    wanted[run].add(name)
        elif stage in ("figures", "tables"):
            configuration.check_name("figure", name := rest.partition(".")[0])
            for run in figure_runs(figures[name]):
                wanted[run].add(name)
        elif stage == "splits":
            configuration.check_name("task", task := rest.partition("/")[0].partition(".")[0])
            for run in configuration.built_from(task)[1]:
                wanted[run].add("splits")
        elif stage == "raw":
            configuration.check_raw_file(*rest.partition("/")[::2])
        if stage in A_FILE and not Path(argument).suffix:
            raise ConfigurationError(f"{argument}: ask for a file, such as {argument.rstrip('/')}{A_FILE[stage]}")
    if not targets or not all(target.startswith(f"{results}/") for target in targets):
        for name, figure in figures.items():
            for run in figure_runs(figure):
                wanted[run].add(name)
    # Tasks that are built from runs need these too.
    pending = list(wanted)
    while pending:
        run = pending.pop()
        for earlier in configuration.built_from(run.task)[1]:
            if not wanted[run] <= wanted[earlier]:
                wanted[earlier] |= wanted[run]
                pending.append(earlier)
    return {run: frozenset(targets) for run, targets in wanted.items()}


def cut(wanted: dict[Run, frozenset[str]], sizes: dict[str, int]) -> list[Pack]:
    """Cut every family, by who needs its runs and then by seed and lambda, into packs of nearly equal size.

    sizes: the most runs in a pack, by task, and under "default".
    """
    groups: dict[tuple, list[Run]] = defaultdict(list)
    for run in sorted(wanted, key=lambda run: (run.family, run.seed, run.strength)):
        groups[(run.family, wanted[run])].append(run)
    packs = []
    for (family, _), members in groups.items():
        size = sizes.get(family[0], sizes["default"])
        even = -(-len(members) // -(-len(members) // size))
        packs += [Pack(tuple(members[start : start + even])) for start in range(0, len(members), even)]
    return packs


def read(path: Path) -> list[Pack]:
    """The packs of a plan file; none if it is missing or unreadable."""
    try:
        return [Pack(tuple(Run.parse(run) for run in pack)) for pack in json.loads(path.read_text()) if pack]
    except (OSError, TypeError, ValueError):
        return []


def _done(pack: Pack, results: Path | str, configuration: Configuration, numerics: Callable[[tuple], str]) -> bool:
    """Whether all runs of a pack exist and are what today's options and code make of them.

    A pack's task, model or regularizer may have been renamed or taken out since, a record damaged.
    """
    try:
        configuration.check_run(pack.runs[0])
        records = [provenance.read(run_folder(results, run) / "run.json") for run in pack.runs]
    except ValueError:
        return False
    made_by = {"family": configuration.family_parameters(pack.family), "code": numerics(pack.family)}
    return all({key: record.get(key) for key in made_by} == made_by for record in records)


def make(
    planned: list[Pack],
    results: str,
    wanted: dict[Run, frozenset[str]],
    configuration: Configuration,
    numerics: Callable[[tuple[str, str, str]], str],
    others: bool = False,
) -> tuple[list[Pack], list[Pack]]:
    """Packs of the wanted runs, with those that were planned before and are done kept as they are.

    Files of runs that are no longer configured stay where they are; no rule makes them.

    Args:
        numerics: the fingerprint of the code that determines a family's numbers.
        others: another call may be building what was planned, so all that can be made is kept.

    Returns:
        All packs, and those of them that are not done.
    """

    @cache  # it reads a file per run
    def done(pack: Pack) -> bool:
        return _done(pack, results, configuration, numerics)

    kept = [pack for pack in planned if (others and configuration.knows(pack.runs[0])) or done(pack)]
    covered = {run for pack in kept for run in pack.runs}
    packs = kept + cut({run: targets for run, targets in wanted.items() if run not in covered}, configuration.config["pack_size"])
    return packs, [pack for pack in packs if not wanted.keys().isdisjoint(pack.runs) and not done(pack)]


def collectors(figure: dict[str, Any]) -> list[str]:
    """The modules that read a figure's sources other than CSV files."""
    names = [Path(name) for name in figure["sources"]]
    return [f"tables.{name.stem}" for name in names if name.suffix not in ("", ".csv")]


def today(
    results: Path,
    tasks: Iterable[str],
    wanted: Iterable[Run],
    figures: Iterable[str],
    configuration: Configuration,
    numerics: Callable[[tuple[str, str, str]], str],
) -> dict[Path, dict[str, Any]]:
    """What the records of these splits, runs, tables and figures say if today's options and code made them."""
    found: dict[Path, dict[str, Any]] = {}
    for task in sorted(tasks):
        code = of_script("split", [configuration.module("tasks", task)])
        parameters = configuration.parameters("tasks", task)
        found[results / "splits" / f"{task}{provenance.SUFFIX}"] = {"parameters": parameters, "code": code}
    families: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {
        family: {
            "run.json": {"family": configuration.family_parameters(family), "code": numerics(family)},
            "evaluation.json": {"code": of_script("evaluate", configuration.modules(family))},
            "representation.json": {"code": of_script("represent", configuration.modules(family))},
        }
        for family in {run.family for run in wanted}
    }
    found |= {run_folder(results, run) / name: said for run in wanted for name, said in families[run.family].items()}
    everything = configuration.figures
    for name in sorted(figures):
        figure = everything[name]
        table: dict[str, Any] = {"code": of_script("aggregate", collectors(figure))}
        if figure["sources"] != ["split"]:
            table["inputs"] = {f"runs/{run.path}/{source}" for run in figure_runs(figure) for source in figure["sources"]}
        found[results / "tables" / f"{name}{provenance.SUFFIX}"] = table
        found[results / "figures" / f"{name}{provenance.SUFFIX}"] = {
            "figure": {key: figure[key] for key in ("module", "options")},
            "code": of_script("plot", [f"figures.{figure['module']}"]),
        }
    return found


def outdated(expected: dict[Path, dict[str, Any]], metadata: Path) -> list[Path]:
    """Records that say other than expected, where Snakemake does not see it: its metadata were deleted, or are of other files.

    With a split the runs that were trained on it: Snakemake does not miss a split while what comes of it is there.

    metadata: Snakemake's folder of what it made each file with.
    """

    def differs(path: Path, now: dict[str, Any]) -> bool:
        record = provenance.read(path)
        record |= {"inputs": set(record.get("inputs", ()))}
        return len(record) > 1 and any(record.get(key) != value for key, value in now.items())

    def noticed(path: Path, now: dict[str, Any]) -> bool:
        try:
            known = json.loads((metadata / urlsafe_b64encode(str(path).encode()).decode()).read_text())
            parameters = "\n".join(known["params"])
        except (OSError, KeyError, TypeError, ValueError):
            return False
        # Inputs are none: of what it knows Snakemake compares them in any case.
        return any(str(value) not in parameters for value in now.values())

    found = [path for path, now in expected.items() if differs(path, now) and not noticed(path, now)]
    tasks = {path.name.removesuffix(provenance.SUFFIX) for path in found if path.parent.name == "splits"}
    runs = [path for path in expected if path.name == "run.json" and path.exists() and Run.of_folder(path.parent).task in tasks]
    return list(dict.fromkeys(found + runs))


def write(path: Path, packs: list[Pack], beside: Iterable[Pack] = ()) -> None:
    """Write a plan for the jobs that read it back.

    beside: what another call's jobs read there; it stays, but for packs that share runs with these.
    """
    own = {run for pack in packs for run in pack.runs}
    theirs = [pack for pack in beside if own.isdisjoint(pack.runs)]
    files.write_json(path, [[run.path for run in pack.runs] for pack in [*packs, *theirs]])


def work(steps: dict[Pack, int]) -> dict[str, dict]:
    """What is to be trained, for `progress.announce`; steps are of one run of each pack."""
    return {
        pack.name: {"family": "/".join(pack.family), "runs": len(pack.runs), "steps": len(pack.runs) * count}
        for pack, count in steps.items()
    }
