"""The configuration: checked as a whole before any job, then cut into the parts that each job depends on.

Its schema is config/schema.yaml plus what the modules declare (compositional.plugins): the options of a task, model or
regularizer are documented, defaulted and checked beside the code that uses them.
"""

from __future__ import annotations

import copy
import difflib
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from compositional.plugins import available, declarations, defaults, module_path
from compositional.records.provenance import RUN_RECORDS
from compositional.runs import Run, expand, format_lambda

GRID_KEYS = ["task", "model", "regularizers", "seeds"]
# What stage represent makes of a run's weights, and the kinds of task that it can show to a network.
REPRESENTED = {"representations.csv", "activations.safetensors", "vectors.csv"}
REPRESENTED_KINDS = ("sequence", "image")
# The kinds of task whose batches tell the relevant from the redundant component: of these, curves can measure the influence.
INFLUENCE_KINDS = ("sequence", "image", "point")
KINDS = {"tasks": "task", "models": "model", "regularizers": "regularizer"}


def _plain(value: Any) -> Any:
    """The same in plain dictionaries and lists: Snakemake reads JSON files into ordered ones, which YAML can't write.

    Keys become text, as YAML reads a bare 5 as a number.
    """
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value


class ConfigurationError(ValueError):
    """The configuration is wrong; the message names key, value, what is allowed and the nearest match."""


def _options_for(value: Any, allowed: Sequence[Any]) -> str:
    """The end of a message about a wrong value: the nearest match, and everything that is allowed."""
    names = [str(option) for option in allowed]
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    guess = f"; did you mean {close[0]!r}?" if close else "."
    return f"{guess} Allowed: {', '.join(names) or 'none'}."


def _names_in(schema: Any, value: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Names in an option's value, by "names" in its schema (see `figures`): where each is, of which of KINDS, and the name."""
    if not isinstance(schema, dict):
        return
    if value and (section := schema.get("names")) in KINDS:
        yield from ((f"{where}.{key}", section, key) for key in value) if isinstance(value, dict) else [(where, section, value)]
    if isinstance(value, dict):
        for key, own in value.items():
            inside = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            yield from _names_in(inside, own, f"{where}.{key}")
    elif isinstance(value, list):
        for place, own in enumerate(value):
            yield from _names_in(schema.get("items"), own, f"{where}.{place}")


def _explain(error: jsonschema.ValidationError, prefix: str = "") -> str:
    """One readable line for a schema violation."""
    key = ".".join([prefix, *(str(part) for part in error.absolute_path)]).strip(".") or "(top level)"
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = [name for name in error.instance if name not in known]
        return "\n".join(f"{key}: unknown key {name!r}{_options_for(name, known)}" for name in unknown)
    if error.validator == "enum":
        allowed = error.validator_value
        return f"{key}: {error.instance!r} is not allowed{_options_for(error.instance, allowed)}"
    if error.instance is None and (error.validator, error.validator_value) == ("type", "object"):
        return f"{key}: is empty: write {{}} or remove the key"
    if error.validator in ("anyOf", "oneOf"):
        return f"{key}: " + ", and ".join(part.message for part in error.context)
    # YAML takes 1e-3 for text: its numbers have a dot before the e, and a sign after it.
    power = error.validator == "type" and re.fullmatch(r"([+-]?\d+)(\.\d*)?e([+-]?)(\d+)", str(error.instance), re.IGNORECASE)
    hint = f"; write {power[1]}{power[2] or '.0'}e{power[3] or '+'}{power[4]}" if power else ""
    if error.validator == "type" and isinstance(error.instance, str) and error.instance.isdigit():
        hint = "; this is text: take its quotes away, or, if it is from --config, write it in a file for --configfile"
    return f"{key}: {error.message} (value: {error.instance!r}){hint}"


# To JSON schema 400.0 is an integer, and .nan and what no float holds are numbers; to whom counts steps or names folders they
# are not.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
            "number": lambda _, value: (
                isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
            ),
        }
    ),
)


def _check(instance: Any, schema: dict, prefix: str = "") -> list[str]:
    validator = _Validator(schema)
    return [
        _explain(error, prefix)
        for error in sorted(validator.iter_errors(instance), key=lambda error: list(map(str, error.absolute_path)))
    ]


def _options(properties: dict[str, dict]) -> dict:
    """The schema of an object with exactly these options, all of them optional."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


_META = jsonschema.Draft7Validator.META_SCHEMA  # a draft whose own schema is in one piece
# What an option may be declared as. To JSON schema alone a word that it does not know, such as "minimun", is no error.
_OPTION = {
    "type": ["object", "boolean"],
    "additionalProperties": False,
    "properties": {
        word: _META["properties"][word]
        for word in (
            *("type", "enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "pattern"),
            *("minItems", "maxItems", "uniqueItems", "additionalProperties", "properties", "required"),
            *("default", "description"),
        )
    }
    | {"items": {"$ref": "#"}, "prefixItems": {"type": "array", "items": {"$ref": "#"}}, "names": {"enum": ["methods", *KINDS]}},
    "definitions": _META["definitions"],
}
_PARAMETERS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["default", "description"],
        "anyOf": [{"required": ["type"]}, {"required": ["enum"]}],
    },
}


def _unknown(module: str, found: dict[str, Any]) -> list[str]:
    """Kinds, a dataset and files of runs that a module of a task, a model or a figure names, and that do not exist."""
    section, asked = module.partition(".")[0], []
    if section in ("tasks", "models"):
        kinds = available("kinds")
        asked += [("KIND", kind, kinds) for kind in _several(found["KIND"])]
    if section == "tasks":
        asked.append(("DATASET", found["DATASET"], available("datasets")))
    if section == "figures":
        made, read = [*RUN_RECORDS, *itertools.chain(*RUN_RECORDS.values())], available("tables")
        files = ["split", *(name for name in made if name.endswith(".csv") or Path(name).stem in read)]
        asked += [("SOURCE", name, files) for name in _several(found["SOURCE"])]
    return [
        f"{module_path(module)}: {key}: there is no {value!r}{_options_for(value, known)}"
        for key, value, known in asked
        if value not in known
    ]


def _several(value: str | tuple[str, ...]) -> list[str]:
    """One name or several as a list."""
    return [value] if isinstance(value, str) else list(value)


@cache
def declared_by(module: str) -> dict[str, Any]:
    """What a module declares; its options are JSON schemas that their defaults follow, and what it names exists.

    Raises:
        ConfigurationError: not so.
    """
    found = declarations(module)
    where, options = f"{module_path(module)}: PARAMETERS", found.get("PARAMETERS", {})
    problems = _check(options, _PARAMETERS, where)
    problems = problems or [line for name in options for line in _check(options[name], _OPTION, f"{where}.{name}")]
    if not problems:
        # An empty default may be against its own schema: then the option must be given.
        values = {name: option["default"] for name, option in options.items() if option["default"] not in ([], {})}
        problems = _check(values, _options(options), where)
    problems += _unknown(module, found)
    if problems:
        raise ConfigurationError("\n".join(problems))
    return found


def _read(properties: dict[str, dict], values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that are options; 1 as 1.0 where any number is allowed, since both ask for the same."""

    def number(name: str, value: Any) -> Any:
        kinds = properties[name].get("type", ())
        integer = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if integer and "number" in ([kinds] if isinstance(kinds, str) else kinds) else value

    return {name: number(name, value) for name, value in values.items() if name in properties}


def _sources(module: str) -> list[str]:
    """Names of the files of every run that a figure module's table is made from."""
    return _several(declared_by(f"figures.{module}")["SOURCE"])


def _single_grids(grid: dict[str, Any], series: dict[str, list[str]]) -> list[dict[str, Any]]:
    """A grid of several tasks and models as one of each; a number of seeds written out."""
    names = {key: [grid[key]] if isinstance(grid[key], str) else grid[key] for key in ("task", "model") if key in grid}
    names["task"] = [member for task in names["task"] for member in series.get(task, [task])]
    seeds = {"seeds": list(range(grid["seeds"]))} if isinstance(grid.get("seeds"), int) else {}
    return [grid | seeds | dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]


@cache
def _schema(path: Path) -> dict:
    return yaml.safe_load(path.read_text())


class Configuration:
    """A checked configuration."""

    def __init__(self, config: dict[str, Any], schema: Path) -> None:
        """Check `config` against the schema file and the modules.

        Raises:
            ConfigurationError: listing everything that is wrong.
        """
        self.config = self._given = config = _plain(config)
        problems = _check(config, _schema(schema))
        if not problems:
            given = config["tasks"]
            self.config, problems = self._written_out(config)
            config = self.config
            for section in KINDS:
                for name in config[section]:
                    problems += self._check_entry(section, name)
            problems += [
                f"pack_size: unknown task {name!r}{_options_for(name, known)}"
                for known in [["default", *sorted({*given, *self._names("tasks")})]]
                for name in config["pack_size"]
                if name not in known
            ]
        if not problems:
            problems += self._check_figures()
        if problems:
            raise ConfigurationError("\n".join(["The configuration is wrong:", *(f"  - {line}" for line in problems)]))

    def _written_out(self, config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The configuration with series of tasks as single tasks, and grids of one task, one model and listed seeds; and which
        tasks have the same name then.

        `places` says of a figure's grids, for messages, which of the file they come from.
        A task with `series: {loop: [0, 1], generation: 2}` stands for the tasks <name>_loop0_generation1,
        <name>_loop0_generation2, <name>_loop1_generation1, ..., a grid of it for a grid of each, its pack size for that of each.
        """
        tasks, series, problems = {}, {}, []
        for name, entry in config["tasks"].items():
            # In the order in which the module declares them: overlays may turn the order of keys around.
            module = entry.get("module", name)
            order = list(declared_by(f"tasks.{module}")["PARAMETERS"]) if module in available("tasks") else []
            given = entry.get("series", {})
            axes = {
                axis: list(range(1, given[axis] + 1)) if isinstance(given[axis], int) else given[axis]
                for axis in sorted(given, key=lambda axis, order=order: order.index(axis) if axis in order else -1)
            }
            rest = {key: value for key, value in entry.items() if key != "series"}
            single = rest if not axes else {"module": rest.get("module", name)} | rest
            series[name] = []
            for values in itertools.product(*axes.values()):
                member = "_".join([name, *(f"{axis}{value}" for axis, value in zip(axes, values, strict=True))])
                written = single | dict(zip(axes, values, strict=True))
                if member in tasks:
                    other = next(other for other, members in series.items() if member in members)
                    problems.append(f"tasks: {other!r} and {name!r} both make a task {member!r}; rename one of them")
                tasks[member] = written
                series[name].append(member)
        studies = copy.deepcopy(config["studies"])
        for study in studies.values():
            for figure in study["figures"].values():
                written = [(place, one) for place, grid in enumerate(figure["grids"]) for one in _single_grids(grid, series)]
                figure["places"], figure["grids"] = ([pair[index] for pair in written] for index in (0, 1))
        sizes = config["pack_size"]
        sizes = {member: sizes[name] for name in series if name in sizes for member in series[name]} | sizes
        archived = {"figures": "all", "data": False} | config.get("archive", {})
        return config | {"tasks": tasks, "studies": studies, "pack_size": sizes, "archive": archived}, problems

    def built_from(self, task: str) -> tuple[list[str], list[Run]]:
        """The tasks and the runs that a task is built from besides raw data; none for most tasks (see tasks.raven_evolved).

        Raises:
            ConfigurationError: they cannot be found.
        """
        keys = self._declared("tasks", task).get("BUILT_FROM")
        if keys is None:
            return [], []
        parameters = self.parameters("tasks", task)
        source, place = parameters[keys["task"]], parameters[keys["along"]]
        if source not in self._names("tasks"):
            where = f"tasks.{task}.{keys['task']}"
            raise ConfigurationError(f"{where}: unknown task {source!r}{_options_for(source, self._names('tasks'))}")
        if place == 1:
            return [source], []
        before = re.sub(rf"_{keys['along']}{place}(?=_|$)", f"_{keys['along']}{place - 1}", task)
        if before == task or before not in self.config["tasks"]:
            raise ConfigurationError(
                f"tasks.{task}: {keys['along']} {place} is built from the task {before!r}, which is not configured"
            )
        model = self.parameters("tasks", before)[keys["model"]]
        seeds = range(self.parameters("tasks", before)[keys["seeds"]])
        return [source, before], [Run(before, model, "none", 0.0, seed) for seed in seeds]

    def module(self, section: str, name: str) -> str:
        """The module that implements an entry, such as "models.cnn" for a variant of it."""
        return f"{section}.{self.config[section].get(name, {}).get('module', name)}"

    def _names(self, section: str) -> list[str]:
        """Everything that may be asked for: the configured entries and, with default options, the modules themselves."""
        return sorted({*self.config[section], *available(section)})

    def _declared(self, section: str, name: str) -> dict[str, Any]:
        return declared_by(self.module(section, name))

    def _check_entry(self, section: str, name: str) -> list[str]:
        entry = self.config[section][name]
        module = entry.get("module", name)
        if (section, name) == ("regularizers", "none"):
            return ["regularizers.none: 'none' is the plain run (lambda = 0); give this regularizer another name"]
        if module not in available(section):
            known = available(section)
            return [f"{section}.{name}: there is no {KINDS[section]} module {module!r}{_options_for(module, known)}"]
        properties = dict(declared_by(f"{section}.{module}")["PARAMETERS"])
        properties["module"] = {"type": "string"}
        if section != "regularizers":
            properties["training"] = _options(declared_by("training.settings")["PARAMETERS"])
        return _check(entry, _options(properties), f"{section}.{name}")

    def _check_figures(self) -> list[str]:
        problems = []
        for study, content in self.config["studies"].items():
            for name, figure in content["figures"].items():
                where = f"studies.{study}.figures.{name}"
                module = figure.get("module", name)
                if module not in (known := available("figures")):
                    problems.append(f"{where}: there is no figure module {module!r}{_options_for(module, known)}")
                    continue
                wrong = _check(
                    figure.get("options", {}),
                    _options(declared_by(f"figures.{module}")["PARAMETERS"]),
                    f"{where}.options",
                )
                needed = ["task"] if declared_by(f"figures.{module}")["SOURCE"] == "split" else GRID_KEYS
                for place, grid in zip(figure["places"], figure["grids"], strict=True):
                    grid_where = f"{where}.grids.{place}"
                    wrong += self._check_grid(grid_where, grid, needed) or self._check_represented(grid_where, module, grid)
                problems += list(dict.fromkeys(wrong)) or [
                    *self._check_together(where, module, figure["grids"]),
                    *self._check_named(where, module, figure),
                ]
        names = [name for content in self.config["studies"].values() for name in content["figures"]]
        chosen = self.config["archive"]["figures"]
        problems += [
            f"archive.figures: there is no figure {name!r}{_options_for(name, sorted(names))}"
            for name in (chosen if chosen != "all" else [])
            if name not in names
        ]
        problems += [
            f"studies: two figures are called {name!r}" for name in sorted({name for name in names if names.count(name) > 1})
        ]
        return problems

    def _check_grid(self, where: str, grid: dict[str, Any], needed: list[str]) -> list[str]:
        if sorted(grid) != sorted(needed):
            return [f"{where}: a grid of this figure has the keys {', '.join(needed)}, this one has {', '.join(grid)}"]
        problems = []
        asked = [("tasks", grid["task"], "task")]
        asked += [("models", grid["model"], "model")] if "model" in grid else []
        asked += [("regularizers", name, "regularizers") for name in grid.get("regularizers", [])]
        for section, name, key in asked:
            known = self._names(section)
            if name not in known:
                problems.append(f"{where}.{key}: unknown {KINDS[section]} {name!r}{_options_for(name, known)}")
        if "model" not in grid:
            if not problems and (kind := self._declared("tasks", grid["task"])["KIND"]) != "image":
                problems.append(f"{where}.task: this figure shows image tasks, {grid['task']!r} is a task of kind {kind!r}")
            return problems
        problems += [
            f"{where}.regularizers.{name}: lambdas {', '.join(map(str, strengths))} are not different in their twelve digits"
            for name, strengths in grid["regularizers"].items()
            if len(set(map(format_lambda, strengths))) < len(strengths)
        ]
        return problems or [
            f"{where}: {problem}"
            for name in grid["regularizers"] or ["none"]
            for problem in self.impossible(grid["task"], grid["model"], name)
        ]

    def _check_together(self, where: str, module: str, grids: list[dict[str, Any]]) -> list[str]:
        """Why a figure cannot be drawn of these grids, each of which is possible."""
        declared, problems = declared_by(f"figures.{module}"), []
        if declared.get("REGULARIZED") and all(run.strength == 0 for grid in grids for run in expand(grid)):
            problems.append(
                f"{where}.grids: this figure compares regularized runs with plain ones, and no grid has a regularizer with a "
                "lambda above 0"
            )
        if declared.get("ONE_MODEL"):
            problems += [
                f"{where}.grids: this figure shows one model a task, for {task!r} it has {', '.join(models)}; make a figure of "
                f"each, with module: {module}"
                for task in sorted({grid["task"] for grid in grids})
                if len(models := sorted({grid["model"] for grid in grids if grid["task"] == task})) > 1
            ]
        return problems

    def _check_named(self, where: str, module: str, figure: dict[str, Any]) -> list[str]:
        """Methods, tasks, models and regularizers that options name (see `figures`) and that do not exist, or are not trained."""
        problems = []
        for option, schema in declared_by(f"figures.{module}")["PARAMETERS"].items():
            values, here = figure.get("options", {}).get(option), f"{where}.options.{option}"
            if values and schema.get("names") == "methods":
                problems += self._check_methods(here, values, figure["grids"])
            # An overlay's grids may leave others out: then they are not drawn.
            problems += [
                f"{place}: unknown {KINDS[section]} {name!r}{_options_for(name, self._names(section))}"
                for place, section, name in _names_in(schema, values, here)
                if name not in self._names(section)
            ]
        return problems

    def _check_methods(self, where: str, methods: dict[str, str | None], grids: list[dict[str, Any]]) -> list[str]:
        """Methods that are not trained: they would be missed when all the others are."""

        def method(path: str) -> str | None:
            try:
                return Run.parse(f"task/{path}/seed=0").method
            except ValueError:  # no number, such as 1..2
                return None

        named = {label: path for label, path in methods.items() if path is not None}
        trained = sorted({run.method for grid in grids for run in expand(grid)}) if named else []
        return [
            f"{where}.{label}: the figure's grids do not train {path!r}{_options_for(path, trained)} "
            "Add it to them, or take the method out: null in place of its path."
            for label, path in named.items()
            if method(path) not in trained
        ]

    def _check_represented(self, where: str, module: str, grid: dict[str, Any]) -> list[str]:
        """Why a figure that shows representations cannot have this (possible) grid."""
        if not REPRESENTED & set(_sources(module)):
            return []
        kind, shown = self._declared("tasks", grid["task"])["KIND"], self._declared("models", grid["model"])["REPRESENTATIONS"]
        if kind not in REPRESENTED_KINDS:
            kinds = " and ".join(REPRESENTED_KINDS)
            return [f"{where}: representations are measured of {kinds} tasks, {grid['task']!r} is a task of kind {kind!r}"]
        return [] if shown else [f"{where}: model {grid['model']!r} shows no representation to measure"]

    def impossible(self, task: str, model: str, regularizer: str) -> list[str]:
        """Why this combination cannot be trained; empty if it can."""
        kind, model_kind = self._declared("tasks", task)["KIND"], self._declared("models", model)["KIND"]
        if kind not in (accepted := _several(model_kind)):
            return [f"model {model!r} is for {' and '.join(accepted)} tasks, {task!r} is a task of kind {kind!r}"]
        problems = []
        settings = self.settings(task, model)
        if kind == "sequence" and settings["batch_size"] % 16:
            problems.append(
                f"training.batch_size of sequence tasks must be a multiple of 16, {task!r} has {settings['batch_size']}"
            )
        if kind == "tensor" and settings["batch_size"] != (measurements := self.parameters("tasks", task)["train_measurements"]):
            problems.append(
                f"training.batch_size of tensor tasks must be the number of measurements, {measurements}: every step uses all; "
                f"{task!r} has {settings['batch_size']}"
            )
        if settings["loss"] not in (losses := declared_by(f"kinds.{kind}")["LOSSES"]):
            allowed = ", ".join(losses)
            problems.append(
                f"training.loss {settings['loss']!r} is not for {task!r}, a task of kind {kind!r}, which takes {allowed}"
            )
        if kind not in INFLUENCE_KINDS and settings["influence_examples"]:
            kinds = ", ".join(INFLUENCE_KINDS)
            problems.append(f"training.influence_examples is for tasks of kind {kinds}, {task!r} is a task of kind {kind!r}")
        if kind != "point" and settings["record_outputs"]:
            problems.append(f"training.record_outputs is for tasks of kind 'point', {task!r} is a task of kind {kind!r}")
        if "BUILT_FROM" in self._declared("tasks", task):
            # The graphs that the search may find must fit the network.
            allowed, found = self.parameters("models", model), self.parameters("tasks", task)
            problems += [
                f"{name} of task {task!r} is {found[name]}, of model {model!r} {allowed.get(name)}: it must not be smaller"
                for name in ("max_nodes", "max_edges")
                if found[name] > allowed.get(name, 0)
            ]
        if regularizer == "none":
            return problems
        declared = self._declared("regularizers", regularizer)
        shown = self._declared("models", model)["REPRESENTATIONS"]
        if kind not in declared["APPLIES_TO"]:
            kinds = " and ".join(declared["APPLIES_TO"])
            problems.append(f"regularizer {regularizer!r} applies to {kinds} tasks, {task!r} is a task of kind {kind!r}")
        elif declared["REPRESENTATIONS"] and not set(declared["REPRESENTATIONS"]) & set(shown):
            needed = " or ".join(declared["REPRESENTATIONS"])
            problems.append(f"regularizer {regularizer!r} needs a model with {needed}, {model!r} has {', '.join(shown)}")
        elif kind == "image" and declared.get("PAIRED") and settings["batch_size"] % 2:
            problems.append(
                f"regularizer {regularizer!r} pairs the examples of a batch: training.batch_size of {task!r} must be even, it is "
                f"{settings['batch_size']}"
            )
        return problems

    def check_name(self, kind: str, name: str) -> None:
        """Refuse a figure or a task that is asked for and does not exist.

        Raises:
            ConfigurationError: naming the nearest match.
        """
        known = sorted(self.figures) if kind == "figure" else self._names("tasks")
        if name not in known:
            raise ConfigurationError(f"unknown {kind} {name!r}{_options_for(name, known)}")

    def check_run(self, run: Run) -> None:
        """Refuse a run asked for by its path that the configuration cannot make.

        Raises:
            ConfigurationError: naming what is unknown, or why the combination is impossible.
        """
        sections = {"tasks": run.task, "models": run.model} | (
            {} if run.regularizer == "none" else {"regularizers": run.regularizer}
        )
        for section, name in sections.items():
            if name not in self._names(section):
                known = self._names(section)
                raise ConfigurationError(f"{run.path}: unknown {KINDS[section]} {name!r}{_options_for(name, known)}")
        if (run.regularizer == "none") != (run.strength == 0):
            raise ConfigurationError(f"{run.path}: lambda is 0 if and only if the regularizer is 'none'; ask for none/lambda=0")
        if problems := self.impossible(run.task, run.model, run.regularizer):
            raise ConfigurationError(f"{run.path}: {'; '.join(problems)}")

    def knows(self, run: Run) -> bool:
        """Whether the configuration can make a run."""
        try:
            self.check_run(run)
        except ConfigurationError:
            return False
        return True

    def check_raw_file(self, dataset: str, name: str) -> None:
        """Refuse a download that is asked for and does not exist.

        Raises:
            ConfigurationError: naming the nearest match.
        """
        asked = [(dataset, available("datasets"), "dataset")]
        if dataset in asked[0][1]:
            asked.append((name, sorted(declared_by(f"datasets.{dataset}")["FILES"]), f"file of {dataset}"))
        for wanted, known, what in asked:
            if wanted not in known:
                raise ConfigurationError(f"there is no {what} {wanted!r}{_options_for(wanted, known)}")

    def parameters(self, section: str, name: str) -> dict[str, Any]:
        """An entry's options, defaults filled in, without its training settings."""
        properties = self._declared(section, name)["PARAMETERS"]
        return _read(properties, defaults(self.module(section, name)) | self.config[section].get(name, {}))

    def settings(self, task: str, model: str) -> dict[str, Any]:
        """Training settings: defaults, then the task's, then the model's."""
        properties = declared_by("training.settings")["PARAMETERS"]
        settings = defaults("training.settings")
        for section, name in (("tasks", task), ("models", model)):
            settings |= _read(properties, self.config[section].get(name, {}).get("training", {}))
        return settings

    def dataset(self, task: str) -> str:
        """Name of the dataset that a task is made from."""
        return self._declared("tasks", task)["DATASET"]

    def parallel(self, task: str) -> bool:
        """Whether making this task uses several processes."""
        return self._declared("tasks", task).get("PARALLEL", False)

    def raw_files(self, task: str) -> list[str]:
        """Names of the dataset's files that must be downloaded; empty for generated and bundled datasets.

        Some are needed only "when" the task has certain options.
        """
        listed, options = declared_by(f"datasets.{self.dataset(task)}")["FILES"], self.parameters("tasks", task)
        return sorted(name for name, file in listed.items() if file.get("when", {}).items() <= options.items())

    def split_parameters(self, task: str) -> dict[str, Any]:
        """Everything besides raw data that a split depends on."""
        return {"module": self.module("tasks", task), "parameters": self.parameters("tasks", task)}

    def family_parameters(self, family: tuple[str, str, str]) -> dict[str, Any]:
        """Everything besides its split, lambda and seed that a run of this family depends on."""
        task, model, regularizer = family
        described = {
            "task": task,
            "model": model,
            "model_module": self.module("models", model),
            "model_parameters": self.parameters("models", model),
            "regularizer": regularizer,
            "settings": self.settings(task, model),
        }
        if regularizer != "none":
            described["regularizer_module"] = self.module("regularizers", regularizer)
            described["regularizer_parameters"] = self.parameters("regularizers", regularizer)
        return described

    def modules(self, family: tuple[str, str, str]) -> list[str]:
        """The modules that training and evaluation of a family load by name: of its kind of task, its model and regularizer."""
        described = self.family_parameters(family)
        named = [described[key] for key in ("model_module", "regularizer_module") if key in described]
        return [f"kinds.{self._declared('tasks', family[0])['KIND']}", *named]

    @property
    def archived(self) -> list[str]:
        """Names of the figures that the manifest, the archive and the report are made of."""
        chosen = self.config["archive"]["figures"]
        return sorted(self.figures) if chosen == "all" else list(chosen)

    @property
    def portable(self) -> dict[str, Any]:
        """The configuration as it was given, without what is true of this machine alone: laid over config.yaml it is the same."""
        return {**self._given, "mirror": None}

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures of all studies by name: study, grids, module, options (complete), sources (files of every run)."""
        found = {}
        for study, content in self.config["studies"].items():
            for name, figure in content["figures"].items():
                module = figure.get("module", name)
                options = defaults(f"figures.{module}") | figure.get("options", {})
                found[name] = {
                    "study": study,
                    "grids": figure["grids"],
                    "module": module,
                    "options": options,
                    "sources": _sources(module),
                }
        return found
