"""Which tasks, models and regularizers can be combined."""

from __future__ import annotations

import pytest
from support.configurations import STUDIES, change, read, refusal

from compositional.configuration import compatibility
from compositional.configuration.configuration import Configuration
from compositional.configuration.schema import declared_by

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (["tasks", "scan_jump", "training", "batch_size"], 100, ["multiple of 16", "100"]),
        *(
            (
                ["tasks", task, "training", "influence_examples"],
                16,
                ["influence_examples is for tasks of kind image, point, sequence,", f"{task!r} is a task of kind {kind!r}"],
            )
            for task, kind in (
                ("matrix_completion", "tensor"),
                ("addition_both", "combination"),
                ("digits_both_0", "composite"),
                ("raven", "puzzle"),
            )
        ),
        ([*GRID, "model"], "cnn", ["model 'cnn' is for image tasks", "'scan_jump'"]),
        *(
            (["tasks", "raven_evolved", option], name, [f"tasks.raven_evolved.{option}: {reason}"])
            for option, name, reason in (
                ("network", "graph_structurd", "unknown model 'graph_structurd'; did you mean 'graph_structured'?"),
                ("network", "cnn", "model 'cnn' is for image tasks, 'raven_evolved_loop"),
                ("puzzles", "ravn", "unknown task 'ravn'; did you mean 'raven'?"),
                ("puzzles", "scan_jump", "'scan_jump' is a task of kind 'sequence', must be of kind 'puzzle'"),
            )
        ),
        (
            [*GRID, "regularizers"],
            {"additivity": [1]},
            ["'additivity' applies to image and", "'scan_jump'"],
        ),
        (["tasks", "digits_concat", "training", "batch_size"], 5, ["pairs the examples", "must be even", "5"]),
        (
            ["tasks", "scan_jump", "training", "seeded_as"],
            "scan_jmp",
            ["training.seeded_as of 'scan_jump': unknown task 'scan_jmp'", "did you mean 'scan_jump'?"],
        ),
        ([*GRID, "regularizers"], {"dropout": [0.5, 1]}, ["lambda of regularizer 'dropout' must be below 1, it is 1"]),
        ([*GRID, "regularizers"], {"label_smoothing": [3]}, ["lambda of regularizer 'label_smoothing' must be below 1, it is 3"]),
        (
            ["tasks", "scan_jump", "training", "momentum"],
            0.9,
            ["training.momentum is for optimizer: sgd; 'scan_jump'", "has adam"],
        ),
    ],
)
def test_combinations_that_cannot_be_trained_are_refused_with_the_reason(path, value, parts):
    message = refusal(path, value)
    for part in parts:
        assert part in message


def test_a_model_whose_package_is_missing_is_refused_with_the_package_to_install(monkeypatch):
    monkeypatch.setattr(compatibility, "find_spec", lambda name: None)
    part = "model 't5' needs the package transformers, which is not installed: pip install -r envs/optional.txt"
    assert part in refusal([*GRID, "model"], "t5")


def test_a_term_on_representations_is_refused_with_a_model_that_shows_none(monkeypatch):
    configured = Configuration(read("config.yaml", *STUDIES))
    monkeypatch.setitem(declared_by("models.cnn"), "REPRESENTATIONS", {})
    (reason,) = configured.impossible("digits_concat", "cnn", "entropy")
    assert reason.endswith("needs a model with word_embedding or penultimate, 'cnn' has none: name one in its REPRESENTATIONS")


def test_runs_of_a_network_are_computed_one_after_the_other_on_every_device():
    config = change(read("config.yaml", *STUDIES), ["models", "gru_attention"], {"training": {"cuda_width": 8}})
    reasons = Configuration(config).impossible("scan_jump", "gru_attention", "none")
    assert reasons == ["training.cuda_width: model 'gru_attention' is a Network, whose runs take turns; leave it null"]
