"""The entries of a configuration for tasks, models and regularizers."""

from __future__ import annotations

import json

import pytest
from support.configurations import change, refusal

from compositional.configuration.configuration import Configuration


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (["tasks", "scan_jmp"], {}, ["no task module 'scan_jmp'", "did you mean 'scan_jump'?"]),
        (["tasks", "scan_jump", "deduplicat"], True, ["tasks.scan_jump: unknown key 'deduplicat'", "did you mean 'deduplicate'"]),
        (["models", "cnn"], {"convolutions": 5}, ["models.cnn.convolutions: 5", "Allowed: 2, 3"]),
        (["regularizers"], {"none": {"module": "entropy"}}, ["regularizers.none: 'none' is the plain run"]),
        (
            ["models", "hierarchical_tensor_factorization"],
            {"matricizations": [[1, 3], [2, 2]]},
            ["models.hierarchical_tensor_factorization.matricizations.1: 2 is repeated in [2, 2]; write it once"],
        ),
        (
            ["models", "infinite_relu", "training"],
            {"steps": 1, "learning_rate": 0.1},
            ["models.infinite_relu.training.learning_rate: this model is fitted, not trained in steps, and would ignore it"],
        ),
        (
            ["tasks", "quadrants", "training"],
            {"steps": 256, "record_steps": [0, 256, 257, 512]},
            ["tasks.quadrants.training.record_steps: 257, 512: training ends at step 256 (`steps`): leave it out"],
        ),
        (
            ["tasks", "digits_concat_b", "training"],
            {"record_steps": [2001]},
            ["training.record_steps: 2001: training ends at step 2000"],
        ),
    ],
)
def test_wrong_entries_are_named(path, value, parts):
    message = refusal(path, value)
    for part in parts:
        assert part in message


def test_a_tasks_settings_override_defaults_and_a_models_override_the_tasks(config):
    change(config, ["models", "cnn"], {"training": {"steps": 7}})
    settings = Configuration(config).settings("digits_concat", "cnn")
    assert (settings["steps"], settings["loss"], settings["curve_examples"]) == (7, "hinge", 512)


def test_an_integer_is_converted_where_any_number_is_allowed(config):
    """0 and 0.0 are the same value: another spelling must not retrain anything."""
    written = Configuration(change(config, ["tasks", "scan_jump"], {"training": {"weight_decay": 0, "clip": 1}}))
    plain = Configuration(change(config, ["tasks", "scan_jump"], {}))
    family = ("scan_jump", "lstm_attention", "none")
    assert json.dumps(written.family_parameters(family)) == json.dumps(plain.family_parameters(family))


@pytest.mark.parametrize(
    ("section", "name", "module"), [("models", "gru_attention", "cnn"), ("regularizers", "dropout", "entropy")]
)
def test_a_variant_may_not_hide_a_module(section, name, module):
    assert f"{section}.{name}: this is a variant of {module!r}, and there is also a module {name!r}" in refusal(
        [section, name], {"module": module}
    )
