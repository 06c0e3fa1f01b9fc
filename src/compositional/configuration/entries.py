"""The configured tasks, models and regularizers: the module, options and training settings of each."""

from __future__ import annotations

import math
import re
from typing import Any

from compositional.configuration.messages import SECTIONS, ConfigurationError, options_for
from compositional.configuration.schema import check, declared_by, merged, options_schema, typed
from compositional.plugins import available, defaults, defines, is_network
from compositional.runs import Run

# The settings that a model with `fit` uses, too. Its curves have one point, at the last of the `steps`.
OF_FITTED = ("steps", "loss", "curve_examples", "influence_examples", "record_outputs", "cuda_width")


def _without_effect(section: str, module: str, training: dict[str, Any], where: str) -> list[str]:
    """Training settings of an entry that training would ignore. (A model may still set fewer steps than its task records.)"""
    if section == "models" and defines(f"models.{module}", "fit"):
        return [
            f"{where}.training.{setting}: this model is fitted, not trained in steps, and would ignore it: leave it out. It uses "
            f"{', '.join(OF_FITTED)}"
            for setting in training
            if setting not in OF_FITTED
        ]
    steps = training.get("steps", defaults("training.settings")["steps"] if section == "tasks" else math.inf)
    if beyond := [step for step in training.get("record_steps", ()) if step > steps]:
        return [
            f"{where}.training.record_steps: {', '.join(map(str, beyond))}: training ends at step {steps} (`steps`): leave it out"
        ]
    return []


class Entries:
    """What a configuration, whether checked already or not, specifies for its tasks, models and regularizers."""

    def __init__(self, config: dict[str, Any]) -> None:
        """config: the result of `series.written_out`."""
        self.config = config

    def module(self, section: str, name: str) -> str:
        """The module that implements an entry, such as "models.cnn" for a variant of it."""
        return f"{section}.{self.config[section].get(name, {}).get('module', name)}"

    def owner(self, task: str) -> str:
        """The entry of the file that a task comes from: itself, or a series."""
        return self.config["owners"].get(task, task)

    def names(self, section: str) -> list[str]:
        """Every name that may be used: the configured entries, and the modules themselves with their default options."""
        return sorted({*self.config[section], *available(section)})

    def declared(self, section: str, name: str) -> dict[str, Any]:
        """What an entry's module declares."""
        return declared_by(self.module(section, name))

    def wrong_entry(self, section: str, name: str) -> list[str]:
        """Problems of an entry of one of SECTIONS. Those of a task of a series name the entry of the file."""
        entry, given = self.config[section][name], self.owner(name) if section == "tasks" else name
        where, module = f"{section}.{given}", entry.get("module", name)
        if (section, name) == ("regularizers", "none"):
            return ["regularizers.none: 'none' is the plain run (lambda = 0); give this regularizer another name"]
        if module not in available(section):
            known, own = available(section), [key for key in entry if key != "module"]
            other = f" Another name for one of them needs `module: <name>`; this has {own}." if module == given else ""
            return [f"{where}: there is no {SECTIONS[section]} module {module!r}{options_for(module, known)}{other}"]
        if module != name and name in available(section):
            return [
                f"{where}: this is a variant of {module!r}, and there is also a module {name!r}, which it would hide: "
                "rename one of them"
            ]
        shared = {"module": {"type": "string"}}
        if section != "regularizers":
            shared["training"] = options_schema(declared_by("training.settings")["PARAMETERS"])
        problems = check(entry, options_schema(merged(f"{section}.{module}", shared)), where)
        problems = problems or _without_effect(section, module, entry.get("training", {}), where)
        return problems or (self._wrong_sources(name, where) if section == "tasks" else [])

    def _wrong_sources(self, task: str, where: str) -> list[str]:
        """Unknown names of the task and the model that a task is built from."""
        keys, options = self.declared("tasks", task)["BUILT_FROM"], self.parameters("tasks", task)
        return [
            f"{where}.{keys[what]}: unknown {what} {named!r}{options_for(named, names)}"
            for what in ("task", "model")
            if keys and (named := options[keys[what]]) not in (names := self.names(f"{what}s"))
        ]

    def parameters(self, section: str, name: str) -> dict[str, Any]:
        """An entry's options with defaults filled in, without its training settings."""
        properties = self.declared(section, name)["PARAMETERS"]
        return typed(properties, defaults(self.module(section, name)) | self.config[section].get(name, {}))

    def settings(self, task: str, model: str) -> dict[str, Any]:
        """Training settings: the defaults, overridden by the task's, overridden by the model's."""
        properties = declared_by("training.settings")["PARAMETERS"]
        settings = defaults("training.settings")
        for section, name in (("tasks", task), ("models", model)):
            settings |= typed(properties, self.config[section].get(name, {}).get("training", {}))
        return settings

    def dataset(self, task: str) -> str:
        """Name of the dataset that a task is made from."""
        return self.declared("tasks", task)["DATASET"]

    def parallel(self, task: str) -> bool:
        """Whether making this task's split uses several processes."""
        return self.declared("tasks", task)["PARALLEL"]

    def raw_files(self, task: str) -> list[str]:
        """Names of the dataset's files that must be downloaded; empty for generated and bundled datasets.

        Some files are needed only "when" the task has certain options.
        """
        listed, options = declared_by(f"datasets.{self.dataset(task)}")["FILES"], self.parameters("tasks", task)
        return sorted(name for name, file in listed.items() if file.get("when", {}).items() <= options.items())

    def split_parameters(self, task: str) -> dict[str, Any]:
        """Everything that a split depends on, except raw data."""
        return {"module": self.module("tasks", task), "parameters": self.parameters("tasks", task)}

    def family_parameters(self, family: tuple[str, str, str]) -> dict[str, Any]:
        """Everything that a run of this family depends on, except its split, lambda and seed."""
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
        """The modules that training and evaluation of a family load by name: the task's kind, the model, the regularizer, and
        `training.networks` if the model is a Network."""
        described = self.family_parameters(family)
        named = [described[key] for key in ("model_module", "regularizer_module") if key in described]
        named += ["training.networks"] if is_network(described["model_module"]) else []
        return [f"kinds.{self.declared('tasks', family[0])['KIND']}", *named]

    def built_from(self, task: str) -> tuple[list[str], list[Run]]:
        """The tasks and runs that a task is built from, besides raw data; none for most tasks (see tasks.raven_evolved).

        Raises:
            ConfigurationError: a task that it is built from is not configured.
        """
        keys = self.declared("tasks", task)["BUILT_FROM"]
        if keys is None:
            return [], []
        parameters = self.parameters("tasks", task)
        source, place = parameters[keys["task"]], parameters[keys["along"]]
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
