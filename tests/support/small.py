"""Small splits, problems and tables of all plug-ins for the contract tests, as described in small.yaml."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from support import raw
from support.configurations import merged, read

from compositional.configuration.configuration import Configuration
from compositional.plugins import available, declarations, is_network
from compositional.stages import split as stage
from compositional.stages.shared.trained_runs import read_problem
from compositional.training.problem import Problem

PATH = Path(__file__).with_suffix(".yaml")
SMALL = yaml.safe_load(PATH.read_text(encoding="utf-8"))
_FOLDER = TemporaryDirectory(prefix="small")  # removed when the tests end


def names(section: str) -> list[str]:
    """All plug-ins of a section, and the variants that have an entry."""
    return sorted({*available(section), *SMALL[section]})


def entry(section: str, name: str) -> dict[str, Any]:
    """The entry of a plug-in in small.yaml; the test fails if there is none."""
    if name not in SMALL[section]:
        pytest.fail(f"{section}/{name}.py has no entry for its contract test: add one under {section}: in {PATH.name}")
    return SMALL[section][name]


@cache
def configuration() -> Configuration:
    """The default configuration with small versions of everything, and without figures."""
    own = {"trains_on", "without", "other", "kinds"}
    sections = {
        section: {name: {key: value for key, value in SMALL[section][name].items() if key not in own} for name in SMALL[section]}
        for section in ("tasks", "models", "regularizers")
    }
    for task in sections["tasks"].values():
        task["training"] = SMALL["training"] | task.get("training", {})
    return Configuration(merged(read("config.yaml") | sections))


def computes_many_runs(model: str) -> bool:
    """Whether a model computes many runs at once, in steps that can be recorded as a graph. A Network does not: its runs are
    computed one after the other, and it may copy values to the host."""
    known = configuration()
    return known.declared("models", model)["GRAPH"] and not is_network(known.module("models", model))


@cache
def raw_files(dataset: str) -> Path:
    """The folder of a dataset's raw files, which are written if it has any."""
    folder = Path(_FOLDER.name) / "raw" / dataset
    if declarations(f"datasets.{dataset}")["FILES"]:
        raw.write(dataset, folder)
    return folder


def make_split(task: str, folder: Path, **options: Any) -> Path:
    """Make a task like its stage does, with options that replace those of its entry, and return its folder."""
    entry("tasks", task)
    sources, runs = configuration().built_from(task)
    assert not runs, f"{task}: its entry in {PATH.name} must make a task that needs no run"
    splits = [split(source) for source in sources]
    described = configuration().split_parameters(task)
    raw_folder = raw_files(configuration().dataset(task))
    stage.make_split(task, described["module"], described["parameters"] | options, raw_folder, folder, splits=splits)
    return folder


@cache
def split(task: str) -> Path:
    """The folder of a task, which is made only once."""
    return make_split(task, Path(_FOLDER.name) / "splits" / task)


@cache
def problem(model: str, regularizer: str | None = None, task: str | None = None) -> Problem:
    """A problem of a model, by default on the task of its entry. Tests must not change it."""
    task = task or entry("models", model)["trains_on"]
    for package in configuration().declared("models", model).get("PACKAGES", {}):
        pytest.importorskip(package, reason="needs pip install -r envs/optional.txt")
    return read_problem(split(task), configuration().family_parameters((task, model, regularizer or "none")), "cpu")


def combinations() -> Iterator[tuple[str, str]]:
    """Every model with every compatible regularizer, on the task of the model's entry."""
    for model in names("models"):
        own = SMALL["models"].get(model, {})
        if not own:
            continue
        task = own["trains_on"]
        wrong = configuration().impossible(task, model, "none")
        assert all("is not installed" in line for line in wrong), wrong  # else the entry would be skipped unnoticed
        for regularizer in names("regularizers"):
            applies = SMALL["regularizers"].get(regularizer, {}).get("kinds")
            kind = configuration().declared("tasks", task)["KIND"]
            unfit = regularizer in own.get("without", ()) or (applies and kind not in applies)
            if not unfit and not configuration().impossible(task, model, regularizer):
                yield model, regularizer


def of_each_kind() -> list[tuple[str, str]]:
    """Every regularizer with the first model of each kind of task that can compute many runs at once."""
    chosen = {}
    for model, regularizer in combinations():
        if computes_many_runs(model):
            chosen.setdefault((regularizer, str(configuration().declared("models", model)["KIND"])), model)
    return [(model, regularizer) for (regularizer, _), model in chosen.items()]


def _each(text: str) -> list[str]:
    """Expand braces in a text, the innermost first: "a{b,c}" gives "ab" and "ac"."""
    if not (braces := re.search(r"\{([^{}]*)\}", text)):
        return [text]
    return [found for part in braces[1].split(",") for found in _each(text[: braces.start()] + part + text[braces.end() :])]


def table(figure: str) -> pd.DataFrame:
    """The table of a figure's entry."""
    run = {"task": "digits_concat", "model": "cnn", "method": "none 0", "seed": [0, 1, 2]}
    source, rows = np.random.default_rng(0), []
    for block in entry("figures", figure)["table"]:
        columns = (run if "image" not in block else {}) | block
        lists = [own if isinstance(own, list) else [own] for own in columns.values()]
        # Only braces with names are expanded, because other texts may be JSON.
        several = ("task", "metric")
        lists = [
            [each for value in own for each in (_each(value) if key in several else [value])]
            for key, own in zip(columns, lists, strict=True)
        ]
        rows += [dict(zip(columns, values, strict=True)) for values in itertools.product(*lists)]
    found = pd.DataFrame(rows)
    if "method" in found:
        found[["regularizer", "lambda"]] = found.pop("method").str.split(expand=True)
        given = found.value if "value" in found else np.nan
        found = found.astype({"lambda": float}).assign(value=given)
        found["value"] = found.value.fillna(pd.Series(source.random(len(found))))
    return found
