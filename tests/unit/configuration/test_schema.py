"""Modules declare options as JSON schemas with valid defaults, and refer only to existing names."""

from __future__ import annotations

import re

import pytest

from compositional import plugins
from compositional.configuration.messages import ConfigurationError
from compositional.configuration.schema import declared_by, merged
from compositional.configuration.signatures import disagreements
from compositional.plugins import module_path


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (1.0, "PARAMETERS.width: 1.0 is not of type 'object'"),
        ({"type": "integer", "description": ""}, "PARAMETERS.width: 'default' is a required property"),
        ({"type": "integer", "default": 1}, "PARAMETERS.width: 'description' is a required property"),
        ({"default": 1, "description": ""}, "PARAMETERS.width: 'type' is a required property, and 'enum' is a required property"),
        (
            {"type": "nubmer", "default": 1, "description": ""},
            "PARAMETERS.width.type: 'nubmer' is not allowed; did you mean 'number'",
        ),
        ({"type": "integer", "minimun": 0, "default": 1, "description": ""}, "unknown key 'minimun'; did you mean 'minimum'"),
        (
            {"type": "array", "items": {"minimun": 0}, "default": [], "description": ""},
            "PARAMETERS.width.items: unknown key 'minimun'",
        ),
        ({"type": "integer", "minimum": 0, "default": -3, "description": ""}, "PARAMETERS.width: -3 is less than the minimum"),
    ],
)
def test_options_must_be_schemas_with_valid_defaults(package, option, message):
    package("models.cnn", f'PARAMETERS = {{"width": {option}}}\n')
    with pytest.raises(ConfigurationError, match=f"models/cnn.py: .*{message}"):
        declared_by("models.cnn")


@pytest.mark.parametrize(
    ("name", "declared", "message"),
    [
        ("tasks.toy", 'KIND = "imagee"\nDATASET = "digits"', "KIND: there is no 'imagee'; did you mean 'image'?"),
        ("models.toy", 'KIND = ("image", "imagee")\nREPRESENTATIONS = ()', "KIND: there is no 'imagee'; did you mean 'image'?"),
        (
            "tasks.toy",
            'KIND = "image"\nDATASET = "digit"',
            "DATASET: there is no 'digit'; did you mean 'digits'? Allowed: digits.",
        ),
        ("figures.toy", 'SOURCE = "metric.csv"', "SOURCE: there is no 'metric.csv'; did you mean 'metrics.csv'?"),
        ("figures.toy", 'SOURCE = "run.json"', "SOURCE: there is no 'run.json'. Allowed: history.csv, metrics.csv,"),
        ("regularizers.toy", 'APPLIES_TO = ("imagee",)', "APPLIES_TO: there is no 'imagee'; did you mean 'image'?"),
        (
            "regularizers.toy",
            'APPLIES_TO = ("image",)\nLAMBDA_BELOW = "1"',
            "LAMBDA_BELOW = '1', must be a number or None",
        ),
        ("tasks.toy", 'KIND = "image"\nDATASET = None', "DATASET = None, must be of the type str; see"),
        ("tasks.toy", 'KIND = ("image",)\nDATASET = "digits"', "KIND = ('image',), must be of the type str; see"),
        ("figures.toy", "SOURCE = 3", "SOURCE = 3, must be of the type str | tuple[str, ...]; see"),
        ("tables.toy", 'SOURCE = "runs.json"', "SOURCE: there is no 'runs.json'; did you mean 'run.json'?"),
    ],
)
def test_names_in_declarations_of_modules_must_exist(package, name, declared, message):
    package("datasets.digits", "")
    package("kinds.image", 'LOSSES = ("hinge",)')
    package(name, f"{declared}\n")
    with pytest.raises(ConfigurationError, match=re.escape(f"toy.py: {message}")):
        declared_by(name)


@pytest.mark.parametrize(
    ("name", "defined", "message"),
    [
        ("regularizers.toy", "def penalty(outputs, targets): ...", "penalty(outputs, targets) is called with 1 values"),
        ("regularizers.toy", "def perturb(step): ...", "perturb(step) is called with 2 values"),
        ("regularizers.toy", "def penalty(step, *, scale): ...", "penalty(step, *, scale) is called with 1 values"),
        ("figures.toy", "def draw(table): ...", "draw(table) is called with 2 values"),
        ("tables.toy", "def collect(): ...", "collect() is called with 1 values"),
        ("tasks.toy", "def build(parameters): ...", "build(parameters) is called with 2 values"),
        ("models.toy", "def forward(weights, batch): ...", "forward(weights, batch) is called with 4 values"),
        ("models.toy", "class Network: ...", "class Network must be a torch.nn.Module"),
        ("models.toy", "class Network(nn.Module):\n  def forwad(self, x): ...", "class Network defines no forward"),
        (
            "models.toy",
            "class Network(Own):\n  def __init__(self, options): ...",
            "__init__(self, options) is called with 3 values",
        ),
        ("models.toy", "class Network(Own): ...", "REPRESENTATIONS of a Network must be {name: submodule}, not ()"),
        ("models.toy", "class Network(Own):\n  def forward(self, x, n): ...", "forward(self, x, n) is called with 2 values"),
    ],
)
def test_functions_must_take_what_they_are_called_with(package, name, defined, message):
    package(name, defined)
    with pytest.raises(ConfigurationError, match=rf"toy\.py, line \d+: {re.escape(message)}"):
        declared_by(name)


@pytest.mark.parametrize(
    "defined",
    [
        "def penalty(step, scale=1): ...",
        "def penalty(*arguments): ...",
        "@cache\ndef penalty(outputs, targets): ...",
        "penalty = other.penalty",
    ],
)
def test_functions_may_take_more_than_they_are_called_with(package, defined):
    package("regularizers.toy", defined)
    declared_by("regularizers.toy")


def test_declarations_that_are_true_or_false_are_neither_text_nor_numbers():
    known = declared_by("regularizers.additivity")
    assert disagreements("regularizers.additivity", known) == []
    (line,) = disagreements("regularizers.additivity", known | {"PAIRED": "no"})
    contract = module_path("regularizers.__init__")
    assert line.endswith(f"additivity.py: PAIRED = 'no', must be True or False; see {contract}")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('FILES = {"a.txt": {"mirror": "a", "url": None}}', "FILES.a.txt: 'sha256' is a required property, and 'git_blob' is a"),
        (f'FILES = {{"a.txt": {{"sha256": "{"0" * 64}", "url": None}}}}', "FILES.a.txt: 'mirror' is a required property"),
        ('FILES = {"a.txt": {"sha256": "abc", "mirror": "a", "url": None}}', "FILES.a.txt.sha256: 'abc' does not match"),
        ('FILES = {"a.txt": {"sha256": None, "mirror": "a", "url": "a.org/a"}}', "FILES.a.txt.url: 'a.org/a' does not match"),
        (
            'FILES = {"a.txt": {"sha256": None, "mirror": "a", "url": None, "size": 3}}',
            "FILES.a.txt: unknown key 'size'. Allowed: bytes, git_blob, mirror,",
        ),
        ('FILES = {"data/a.txt": {"sha256": None, "mirror": "a", "url": None}}', "FILES: 'data/a.txt' does not match"),
        ('FILES = {}\nLICENSE = {"name": "MIT", "url": "x"}', "LICENSE: 'redistribution' is a required property"),
    ],
)
def test_files_of_a_dataset_need_a_checksum_and_a_source(package, declared, message):
    package("datasets.toy", f"{declared}\n")
    with pytest.raises(ConfigurationError, match=re.escape(f"toy.py: {message}")):
        declared_by("datasets.toy")


def test_options_of_a_module_do_not_hide_those_of_its_entries(package):
    package("models.cnn", 'PARAMETERS = {"training": {"type": "number", "default": 1.0, "description": ""}}\n')
    with pytest.raises(ConfigurationError, match=r"models/cnn.py: PARAMETERS: training has another meaning here; rename it"):
        merged("models.cnn", {"module": {}, "training": {}})
    assert list(merged("models.cnn", {"module": {}})) == ["training", "module"]


def test_every_module_declares_valid_options():
    for folder in ("datasets", "tasks", "models", "regularizers", "tables", "figures"):
        for name in plugins.available(folder):
            declared_by(f"{folder}.{name}")
