"""Checks of figures: their grids of runs, and the names in their options."""

from __future__ import annotations

from typing import Any

from compositional.configuration.compatibility import REPRESENTED, impossible, unrepresented, wrong_strengths
from compositional.configuration.entries import Entries
from compositional.configuration.messages import SECTIONS, options_for
from compositional.configuration.names import wrong_names
from compositional.configuration.schema import check, declared_by, merged, options_schema, several
from compositional.plugins import available, declarations, defaults, kinds_that
from compositional.runs import Run, expand, format_lambda

GRID_KEYS = ["task", "model", "regularizers", "seeds"]
_SHOWN = 3  # places of the same problem in a message


def shared_options() -> dict[str, dict[str, Any]]:
    """The options that every figure has: wording and page layout."""
    return declarations("figures.shared.words")["PARAMETERS"] | declarations("figures.shared.page")["PARAMETERS"]


def options_of(module: str) -> dict[str, dict[str, Any]]:
    """The options of a figure module by name."""
    return merged(f"figures.{module}", shared_options())


def options_given(module: str, figure: dict[str, Any], of_all: dict[str, Any]) -> dict[str, Any]:
    """A figure's complete options: the module's defaults, overridden by `of_all` (for all figures), then by the figure's own."""
    own = figure.get("options", {})
    shared = {name: of_all.get(name, {}) | own.get(name, {}) for name in shared_options()}
    return defaults(f"figures.{module}") | own | shared


def sources(module: str) -> list[str]:
    """Names of the files, present in every run, that a figure module's table is made from."""
    return several(declared_by(f"figures.{module}")["SOURCE"])


def _each_once(problems: list[str]) -> list[str]:
    """One line for the same problem at several places: it usually has one cause, such as a setting of a task in many grids."""
    places: dict[str, list[str]] = {}
    for line in problems:
        place, _, problem = line.partition(": ")
        places.setdefault(problem, []).append(place)
    more = {problem: f" and {len(own) - _SHOWN} more" * (len(own) > _SHOWN) for problem, own in places.items()}
    return [f"{', '.join(own[:_SHOWN])}{more[problem]}: {problem}" for problem, own in places.items()]


def wrong_figures(entries: Entries) -> list[str]:
    """Problems of the figures of all studies, and of the archive's choice of figures."""
    problems, names = check(entries.config.get("figures", {}), options_schema(shared_options()), "figures"), []
    for study, content in entries.config["studies"].items():
        names += content["figures"]
        for name, figure in content["figures"].items():
            where, module = f"studies.{study}.figures.{name}", figure.get("module", name)
            if module != name and name in available("figures"):
                problems.append(
                    f"{where}: it is drawn by {module!r}, and there is also a module {name!r}, which it would hide: rename one"
                )
            problems += _wrong_figure(entries, where, module, figure)
    chosen = entries.config["archive"]["figures"]
    problems += [
        f"archive.figures: there is no figure {name!r}{options_for(name, sorted(names))}"
        for name in (chosen if chosen != "all" else [])
        if name not in names
    ]
    return _each_once(problems) + [
        f"studies: {' and '.join(owners)} have a figure {name!r}: rename one of them"
        for name in sorted({name for name in names if names.count(name) > 1})
        if (owners := [study for study, own in entries.config["studies"].items() if name in own["figures"]])
    ]


def _wrong_figure(entries: Entries, where: str, module: str, figure: dict[str, Any]) -> list[str]:
    if module not in (known := available("figures")):
        return [f"{where}: there is no figure module {module!r}{options_for(module, known)}"]
    # With its defaults: one that violates its own schema, such as an empty list, means that the option must be given.
    schema = options_schema(options_of(module))  # before defaults, because it refuses wrong declarations
    options = defaults(f"figures.{module}") | figure.get("options", {})
    problems = check(options, schema, f"{where}.options")
    for place, grid in zip(figure["places"], figure["grids"], strict=True):
        problems += [f"{where}.grids.{place}{problem}" for problem in _wrong_grid(entries, sources(module), grid)]
    # Several grids may come from one grid of the file, and then have the same problem.
    return list(dict.fromkeys(problems)) or [
        *_wrong_together(where, module, figure["grids"]),
        *_wrong_methods(where, module, figure),
        *wrong_names(entries, where, module, options, figure.get("options", {})),
    ]


def _wrong_grid(entries: Entries, read: list[str], grid: dict[str, Any]) -> list[str]:
    """Problems of a grid whose figure reads these files. Each message starts with what follows the path of the grid itself."""
    needed = ["task"] if read == ["split"] else GRID_KEYS
    if sorted(grid) != sorted(needed):
        return [f": a grid of this figure has the keys {', '.join(needed)}, this one has {', '.join(grid)}"]
    asked = [("tasks", grid["task"], "task")]
    asked += [("models", grid["model"], "model")] if "model" in grid else []
    asked += [("regularizers", name, "regularizers") for name in grid.get("regularizers", [])]
    problems = [
        f".{key}: unknown {SECTIONS[section]} {name!r}{options_for(name, known)}"
        for section, name, key in asked
        if name not in (known := entries.names(section)) and (section, name) != ("regularizers", "none")
    ]
    if "none" in grid.get("regularizers", []):
        problems.append(".regularizers: 'none' is the plain run, lambda = 0, which every grid has: leave it out")
    if "model" not in grid:
        if problems:
            return problems
        kind, shown = entries.declared("tasks", grid["task"])["KIND"], kinds_that("PICTURED")
        wrong = f".task: this figure shows {' and '.join(shown)} tasks, {grid['task']!r} is a task of kind {kind!r}"
        return [wrong] if kind not in shown else []
    problems += [
        f".regularizers.{name}: lambdas {', '.join(map(str, strengths))} are not different in their twelve digits"
        for name, strengths in grid["regularizers"].items()
        if len(set(map(format_lambda, strengths))) < len(strengths)
    ]
    if not problems:
        problems = [
            f": {line}" for name, values in grid["regularizers"].items() for line in wrong_strengths(entries, name, values)
        ]
        regularizers = grid["regularizers"] or ["none"]
        problems += [f": {line}" for name in regularizers for line in impossible(entries, grid["task"], grid["model"], name)]
    if not problems and REPRESENTED & set(read):
        problems = [f": {line}" for line in unrepresented(entries, grid["task"], grid["model"])]
    return problems


def _wrong_together(where: str, module: str, grids: list[dict[str, Any]]) -> list[str]:
    """Why a figure cannot be drawn from these grids although each of them is possible."""
    declared, problems = declared_by(f"figures.{module}"), []
    if declared["REGULARIZED"] and all(run.strength == 0 for grid in grids for run in expand(grid)):
        problems.append(
            f"{where}.grids: this figure compares regularized runs with plain ones, and no grid has a regularizer with a "
            "lambda above 0"
        )
    if declared["ONE_MODEL"]:
        problems += [
            f"{where}.grids: this figure shows one model per task, but {task!r} has {', '.join(models)}; make one figure per "
            f"model, with module: {module}"
            for task in sorted({grid["task"] for grid in grids})
            if len(models := sorted({grid["model"] for grid in grids if grid["task"] == task})) > 1
        ]
    return problems


def _wrong_methods(where: str, module: str, figure: dict[str, Any]) -> list[str]:
    """Methods that no grid trains. Refused here, because otherwise they would be missed only after all others are trained."""

    def method(path: str) -> str | None:
        try:
            return Run.parse(f"task/{path}/seed=0").method
        except ValueError:  # the lambda is not a number, as in 1..2
            return None

    declared = declared_by(f"figures.{module}")["PARAMETERS"]
    given = {key: own for key, own in figure.get("options", {}).items() if declared.get(key, {}).get("names") == "methods"}
    named = {f"{key}.{label}": path for key, own in given.items() for label, path in own.items() if path is not None}
    trained = sorted({run.method for grid in figure["grids"] for run in expand(grid)}) if named else []
    return [
        f"{where}.options.{place}: the figure's grids do not train {path!r}{options_for(path, trained)} "
        "Add it to the grids, or remove the method by writing null instead of its path."
        for place, path in named.items()
        if method(path) not in trained
    ]
