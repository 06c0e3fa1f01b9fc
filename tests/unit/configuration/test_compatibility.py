"""Which tasks, models and regularizers go together."""

from __future__ import annotations

import pytest
from support.configurations import refusal

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
    ],
)
def test_what_cannot_be_trained_is_refused_with_its_reason(path, value, parts):
    message = refusal(path, value)
    for part in parts:
        assert part in message
