"""Which runs a call needs, according to its targets."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning.packs import read
from compositional.runs import Run, figure_runs

OF_ALL = ("manifest.json", "archive.zip", "report.html")  # made of all figures selected by `archive:` in the configuration
A_FILE = {"runs": "/metrics.csv", "figures": ".pdf", "tables": ".csv"}  # by stage: what to add to a name to request a file


def targets(arguments: list[str]) -> list[str]:
    """The results that a command line requests; none if it names no target. The rule of a pack stands for the pack's runs.

    If a word is mistaken for a target, it only changes which runs share a pack, never a result. The command lines of other
    programs that use Snakemake are ignored.
    """
    program, *words = arguments
    found = [os.path.normpath(word) for word in words] if "snakemake" in program else []
    packs = [pack for word in found if re.fullmatch(r"\w+__[0-9a-f]{16}", word) for pack in read(Path("results/recipes"), [word])]
    runs = [path for pack in packs for path in pack.files("run.json")]
    return [word for word in found if word.startswith("results/")] + runs


def wanted_runs(configuration: Configuration, asked: Collection[str]) -> dict[Run, frozenset[str]]:
    """The runs that targets need, each with the targets that need it; all runs if there are no targets.

    Raises:
        ConfigurationError, ValueError: a requested download, split, run or figure cannot be made.
    """
    wanted: dict[Run, set[str]] = defaultdict(set)
    figures = configuration.figures
    needed: list[str] = [] if asked else list(figures)
    for target in asked:
        stage, _, rest = target.removeprefix("results/").partition("/")
        if stage == "runs":
            path = rest if rest.rsplit("/", 1)[-1].startswith("seed=") else rest.rsplit("/", 1)[0]
            run = Run.parse(path)
            configuration.check_run(run)
            if run.path != path:
                raise ConfigurationError(f"{target}: write this run as {run.path}")
            wanted[run].add("runs")
        elif stage in OF_ALL:
            needed += configuration.archived
        elif stage in ("figures", "tables"):
            configuration.check_name("figure", name := rest.partition(".")[0])
            needed.append(name)
        elif stage == "splits":
            configuration.check_name("task", task := rest.partition("/")[0].partition(".")[0])
            for run in configuration.built_from(task)[1]:
                wanted[run].add("splits")
        elif stage == "raw":
            configuration.check_raw_file(*rest.partition("/")[::2])
        if stage in A_FILE and not Path(target).suffix:
            raise ConfigurationError(f"{target}: ask for a file, such as {target}{A_FILE[stage]}")
    for name in needed:
        for run in figure_runs(figures[name]):
            wanted[run].add(name)
    # A run whose task is built from earlier runs needs those, too.
    pending = list(wanted)
    while pending:
        run = pending.pop()
        for earlier in configuration.built_from(run.task)[1]:
            if not wanted[run] <= wanted[earlier]:
                wanted[earlier] |= wanted[run]
                pending.append(earlier)
    return {run: frozenset(targets) for run, targets in wanted.items()}
