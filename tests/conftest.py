"""Small problems on which many tests train."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from filelock import FileLock
from hypothesis import settings as hypothesis_settings
from support import small
from support.trained import problem_of, train_plain

from compositional.datasets import digits, scan
from compositional.kinds.image import ImageSplit
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary
from compositional.plugins import declarations, defaults
from compositional.tasks import scan_jump_episodes
from compositional.tasks.shared import side_by_side
from compositional.training.problem import Problem

torch.set_num_threads(1)
# With an empty configuration Slurm's commands fail immediately. Without a configuration, if Slurm is installed but not running
# (after its tests), its plugin would delay every start of Snakemake by nine seconds.
os.environ["SLURM_CONF"] = os.devnull
# Otherwise every call of Snakemake and every job would compile this project again, here and in copies.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Examples have no deadline and are not stored, so that no test fails because the machine is busy.
hypothesis_settings.register_profile("untimed", deadline=None, database=None)
hypothesis_settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files: first those with Slurm tests, which wait for minutes, then those that run the workflow most often, then
    those with most tests. Short files remain for the end, where they can be shared among workers."""
    waiting = {item.path for item in items if item.get_closest_marker("slurm")}
    runs = Counter(item.path for item in items if item.get_closest_marker("workflow"))
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in waiting, -runs[item.path], -tests[item.path], item.path))


@pytest.fixture(scope="session")
def scan_splits():
    """A small SCAN jump: the short training commands and every 40th other one, every 60th test command."""
    commands = scan.commands()
    known = [pair for pair in commands if "jump" not in pair[0]]
    train = [pair for pair in known if len(pair[0].split()) < 4] + known[::40] + [("jump", "I_JUMP")] * 20
    test = [pair for pair in commands if "jump" in pair[0] and pair[0] != "jump"][::60]
    source = Vocabulary.of([command for command, _ in commands])
    target = Vocabulary.of([actions for _, actions in commands])
    return {
        name: SequenceSplit(*zip(*rows, strict=True), source, target, "cpu")
        for name, rows in {"train": train, "test": test}.items()
    }


@pytest.fixture(scope="session")
def episode_splits():
    """A small SCAN jump as episodes."""
    members, _ = scan_jump_episodes.build(None, {"episodes": 400, "copies": False})
    rows = {"train": members["train"], "test": members["test"].select(range(0, len(members["test"]), 60))}
    every = [row for member in rows.values() for row in member]
    source, target = (Vocabulary.of([row[side] for row in every]) for side in ("input", "output"))
    return {
        name: SequenceSplit(list(member["input"]), list(member["output"]), source, target, "cpu") for name, member in rows.items()
    }


@pytest.fixture(scope="session")
def question_splits():
    """Questions about places with logical forms: terms of two lengths, a name of two places, pairs without terms."""
    kinds = {"texas": "state", "new york": "state", "utah": "state", "ohio": "state", "red": "river", "austin": "city"}
    forms = {name: f"_{kind}id ( {name} )" for name, kind in kinds.items()} | {"austin": "_cityid ( austin , _ )"}
    rows = [
        *((f"how big is {name}", f"( A , ( _size ( B , A ) , _const ( B , {form} ) ) )") for name, form in forms.items()),
        ("how long is the ohio", "( A , ( _len ( B , A ) , _const ( B , _riverid ( ohio ) ) ) )"),
        ("how big is the us", "( A , ( _size ( B , A ) , _const ( B , _countryid ( usa ) ) ) )"),
        ("what states are there", "( A , _state ( A ) )"),
    ]
    vocabularies = [Vocabulary.of(side) for side in zip(*rows, strict=True)]
    split = SequenceSplit(*zip(*rows, strict=True), *vocabularies, "cpu")
    return {"train": split, "test": split}


@pytest.fixture(scope="session")
def digit_splits():
    """A small task of pairs of digits in setting A."""
    options = defaults("tasks.digits_concat") | {"train_pairs": 600, "test_pairs": 200}
    members, about = side_by_side.build(digits.load(None), options)
    return {
        name: ImageSplit(np.array(member["image"]), np.array(member["label"]), about["component_width"], "cpu")
        for name, member in members.items()
    }


def about(splits: dict) -> dict:
    """What the tasks of these splits state about them."""
    if isinstance(splits["train"], SequenceSplit):
        return {"source_words": splits["train"].source.words, "target_words": splits["train"].target.words}
    return {"image_shape": (1, 8, 16), "classes": 10}


@pytest.fixture(scope="session", autouse=True)
def compiled_here(request):
    """Let numba compile here what runs of tiny.yaml need: copies of the project take it over, and would each compile it."""
    if any(item.get_closest_marker("workflow") for item in request.session.items):
        settings = {"batch_size": 8, "steps": 1, "record_every": 1, "curve_examples": 8}
        for model, name in (("cnn", "digit_splits"), ("primitive_attention", "scan_splits")):
            splits = request.getfixturevalue(name)
            train_plain(problem_of(model, about(splits), splits, settings))


@pytest.fixture
def problem(scan_splits, episode_splits, digit_splits):
    """Factory of problems: problem("primitive_attention", "entropy", steps=20, ...); splits are SCAN's or digits by default."""

    def make(
        model: str, regularizer: str | None = None, options: dict | None = None, splits: dict | None = None, **settings
    ) -> Problem:
        kind = declarations(f"models.{model}")["KIND"]
        sentences = episode_splits if model == "meta_sequence_to_sequence" else scan_splits
        splits = splits or {"sequence": sentences}.get(kind, digit_splits)
        base = {"batch_size": 64, "steps": 8, "record_every": 4, "curve_examples": 64}
        own = small.configuration().parameters("models", model)
        return problem_of(model, about(splits), splits, base | settings, own, regularizer, options)

    return make


@pytest.fixture(scope="session")
def archived_project(tmp_path_factory):
    """A tiny figure with a run that diverges, its archive and its report, built in a git repository, once for all processes."""
    from support.project import Project

    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder, complete = shared / "archived", shared / "archived.complete"
    with FileLock(shared / "archived.lock"):
        if not complete.exists():
            folder.mkdir()
            build_archived(Project(folder))
            complete.touch()
    return Project.there(folder)


def build_archived(project) -> None:
    grid = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1], "additivity": [1e38]}, "seeds": [0, 1]}
    project.overlay({"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [grid]}}}}})
    date = "2026-01-02T03:04:05+00:00"
    identity = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "t"]):
        subprocess.run(["git", *words], cwd=project.folder, env=os.environ | identity, check=True)
    project.snakemake("results/archive.zip", "results/report.html", overlay="overlay.yaml")
