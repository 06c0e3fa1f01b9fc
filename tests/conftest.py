"""Small problems that many tests train on."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch

from compositional import images, pairs, sequences, training
from compositional.datasets import digits, scan
from compositional.declarations import declarations

torch.set_num_threads(1)


def defaults(module: str) -> dict:
    """The default options that a module declares."""
    return {name: option["default"] for name, option in declarations(module)["PARAMETERS"].items()}


@pytest.fixture(scope="session")
def scan_splits():
    """SCAN jump in small: the short training commands and every 40th other one, every 60th test command."""
    commands = scan.commands()
    known = [pair for pair in commands if "jump" not in pair[0]]
    train = [pair for pair in known if len(pair[0].split()) < 4] + known[::40] + [("jump", "I_JUMP")] * 20
    test = [pair for pair in commands if "jump" in pair[0] and pair[0] != "jump"][::60]
    source = sequences.Vocabulary.of([command for command, _ in commands])
    target = sequences.Vocabulary.of([actions for _, actions in commands])
    return {
        name: sequences.SequenceSplit(*zip(*rows, strict=True), source, target, "cpu")
        for name, rows in {"train": train, "test": test}.items()
    }


@pytest.fixture(scope="session")
def digit_splits():
    """Pairs of digits, setting A, in small."""
    options = defaults("tasks.digits_concat") | {"train_pairs": 600, "test_pairs": 200}
    members, about = pairs.build(digits.load(None), options)
    return {
        name: images.ImageSplit(np.array(member["image"]), np.array(member["label"]), about["component_width"], "cpu")
        for name, member in members.items()
    }


@pytest.fixture
def problem(scan_splits, digit_splits):
    """Factory of problems: problem("primitive_attention", "entropy", steps=20, ...)."""

    def make(model: str, regularizer: str | None = None, options: dict | None = None, **settings) -> training.Problem:
        kind = declarations(f"models.{model}")["KIND"]
        splits = scan_splits if kind == "sequence" else digit_splits
        about = {"image_shape": (1, 8, 16), "classes": 10}
        base = defaults("training") | {"batch_size": 64, "steps": 8, "record_every": 4, "curve_examples": 64}
        if kind == "sequence":
            about = {"source_words": splits["train"].source.words, "target_words": splits["train"].target.words}
        return training.Problem(
            task="test",
            about=about,
            splits=splits,
            model_name=model,
            model=import_module(f"compositional.models.{model}"),
            model_parameters=defaults(f"models.{model}"),
            regularizer=import_module(f"compositional.regularizers.{regularizer}") if regularizer else None,
            regularizer_parameters=(defaults(f"regularizers.{regularizer}") | (options or {})) if regularizer else {},
            settings=base | settings,
            device="cpu",
        )

    return make
