"""All figures: the study of each, what it shows and needs, its cost, and whether it is built (make figures)."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from compositional.configuration.configuration import Configuration
from compositional.configuration.documentation import summary_of
from compositional.planning import packs
from compositional.planning.costs import words
from compositional.planning.recipes import Recipes
from compositional.planning.targets import wanted_runs
from compositional.plugins import declarations
from compositional.records.places import STAGES, record_of, record_of_run
from compositional.runs import Run
from compositional.terminal.progress import Build, Task

PAGE = """\
# Figures

<!-- Written by `make docs` from the configuration: edit that instead. -->

Every figure at laptop scale. `make figures` gives the same list for your machine, and shows which figures are built. To build
one: `snakemake results/figures/<name>.pdf`. Times are rough estimates for two cores (of an Intel Xeon or an AMD EPYC, some of
which had other work), with nothing built before: steps times the cost of a step with this model. *Not timed* means that no step
of one of the models was measured. Runs on your machine make the estimates better. At paper scale (`config/paper.yaml`):
`make figures OPTIONS="--configfile config/paper.yaml"`.
"""


@dataclass(frozen=True)
class Described:
    """One figure.

    Args:
        data: the datasets of its tasks. runs: how many it needs; ready: how many of them exist and are up to date.
        seconds: estimated time until it is built; None if no run of one of its models was ever timed.
        state: "built", "out of date" or "not built".
    """

    name: str
    study: str
    shows: str
    data: list[str]
    runs: int
    ready: int
    seconds: float | None
    state: str


def _data(configuration: Configuration, tasks: set[str]) -> list[str]:
    """The datasets of tasks; those that must be downloaded are marked."""
    names = sorted({configuration.dataset(task) for task in tasks})
    return [f"{name} (download)" if declarations(f"datasets.{name}")["FILES"] else name for name in names]


def _jobs(
    recipes: Recipes, figure: str, wanted: dict[Run, frozenset[str]], names: set[str], workers: int
) -> tuple[list[Task], int]:
    """The jobs that are left until a figure is built, and the number of its runs that exist. names: of its tasks."""
    tasks, ready = [], 0
    for stage, record in STAGES.items():
        needed = packs.needed(stage, wanted, {figure: recipes.figures[figure]})
        missing = {run: need for run, need in needed.items() if _is_to_do(recipes, record_of_run(run, record))}
        ready += len(needed) - len(missing) if stage == "train" else 0
        for members in packs.shared_out(stage, missing, recipes, workers):
            family = members[0].family
            tasks.append(Task(stage, "/".join(family), packs.units_of(stage, family, recipes) * len(members)))
    tasks += [Task("split", name) for name in sorted(names) if _is_to_do(recipes, record_of("splits", name))]
    return [*tasks, Task("aggregate", ""), Task("plot", "")], ready


def _is_to_do(recipes: Recipes, record: str) -> bool:
    return not (recipes.results / record).is_file() or recipes.outdated(record) is not None


def described(recipes: Recipes, workers: int) -> list[Described]:
    """Every configured figure, by study; workers: number of jobs that run at the same time."""
    configuration, costs = recipes.configuration, recipes.costs
    found = []
    for name, figure in recipes.figures.items():
        record = record_of("figures", name)
        there = all((recipes.results / path).is_file() for path in (record, *recipes.made(record)))
        state = "not built" if not there else "out of date" if _is_to_do(recipes, record) else "built"
        wanted = wanted_runs(configuration, [f"results/figures/{name}.pdf"])
        tasks = {run.task for run in wanted} | {grid["task"] for grid in figure["grids"]}
        jobs, ready = _jobs(recipes, name, wanted, tasks, workers)
        timed = all(costs.timed(job.name.split("/")[1]) for job in jobs if job.stage == "train")
        seconds = 0.0 if state == "built" else Build(jobs, costs, workers).estimate(0.0)[1] if timed else None
        data = _data(configuration, tasks)
        shows = figure["description"] or summary_of(f"figures.{figure['module']}")
        found.append(Described(name, figure["study"], shows, data, len(wanted), ready, seconds, state))
    return found


def _time(figure: Described) -> str:
    return "not timed" if figure.seconds is None else f"about {words(figure.seconds)}"


def listing(figures: list[Described], device: str) -> str:
    """The list for a terminal: three lines per figure; device: the configured one."""
    lines = []
    for study, members in groupby(figures, key=lambda figure: figure.study):
        lines += [study, ""]
        for figure in members:
            there = f", {figure.ready} of them exist" if figure.ready else ""
            left = "" if figure.state == "built" else f", {_time(figure)}"
            lines.append(f"  {figure.name}: {figure.state}{left}; runs: {figure.runs}{there}; data: {', '.join(figure.data)}")
            lines += textwrap.wrap(figure.shows, 100, initial_indent="    ", subsequent_indent="    ")
        lines.append("")
    if device == "cuda":
        lines.append("Where no run of a model was timed on this machine, times are those of a CPU (GPUs: docs/gpu.md)")
    return "\n".join([*lines, "Build one: snakemake results/figures/<name>.pdf"])


def page(figures: list[Described], folder: Path) -> str:
    """docs/figures.md; folder: its folder, in which the existing thumbnails (make thumbnails) have a folder of their own."""
    lines = [PAGE]
    for study, members in groupby(figures, key=lambda figure: figure.study):
        lines += [f"## {study}", "", "| figure | what it shows | data | runs | time |", "| --- | --- | --- | --- | --- |"]
        for figure in members:
            picture = (
                f' <br> <img src="thumbnails/{figure.name}.png" alt="{figure.name}" width="240">'
                if (folder / "thumbnails" / f"{figure.name}.png").is_file()
                else ""
            )
            cells = [f"`{figure.name}`{picture}", figure.shows, ", ".join(figure.data), str(figure.runs), _time(figure)]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)
