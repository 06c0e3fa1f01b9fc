"""Messages name key, value, what is allowed and the nearest match."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis.strategies import sampled_from
from support.configurations import ROOT, change, merged, read, refusal

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.configuration.messages import options_for

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (["devise"], "cpu", ["unknown key 'devise'", "did you mean 'device'?"]),
        (["device"], "gpu", ["device: 'gpu'", "did you mean 'cuda'? Allowed: auto, cpu, cuda"]),
        (["checkpoint_seconds"], "soon", ["checkpoint_seconds", "'soon'"]),
        (["pack_size", "cuda"], {"default": 0}, ["pack_size.cuda.default", "0"]),
        (["pack_size"], {"default": 8}, ["pack_size: unknown key 'default'. Allowed: cpu, cuda."]),
        (["tasks", "scan_jump", "training", "steps"], 400.0, ["tasks.scan_jump.training.steps", "400.0"]),
        (["tasks", "scan_jump", "training", "learning_rate"], float("nan"), ["learning_rate", "nan"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "1e-2", ["'1e-2'", "write 1.0e-2"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "1E3", ["'1E3'", "write 1.0e+3"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "2.5e3", ["'2.5e3'", "write 2.5e+3"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "-1e-3", ["'-1e-3'", "write -1.0e-3"]),
        (["tasks", "scan_jump", "training", "steps"], "2.5e3", ["'2.5e3'", "write 2500\n"]),
        (["tasks", "scan_jump", "training", "steps"], "1e-3", ["steps: '1e-3' is not of type 'integer' (value: '1e-3')\n"]),
        ([*GRID, "seeds"], "1e1", ["seeds: '1e1'", "write 10\n"]),
        ([*GRID, "regularizers"], {"entropy": 0.1}, ["regularizers.entropy: 0.1 is not", "write a list, [0.1]"]),
        ([*GRID, "regularizers"], {"none": [0]}, ["regularizers: 'none' is the plain run, lambda = 0, which every grid has"]),
        (["sources"], "hub", ["sources: 'hub' is not", "write a list, [hub]"]),
        ([*GRID, "seeds"], 5.0, ["seeds", "5.0"]),
        ([*GRID, "seeds"], [1.0], ["seeds", "1.0"]),
        ([*GRID, "regularizers"], {"entropy": [float("inf")]}, ["regularizers.entropy.0", "inf", "it must be finite"]),
        ([*GRID, "regularizers"], {"entropy": ["0.1"]}, ["regularizers.entropy.0", "'0.1'", "remove its quotes"]),
        ([*GRID, "regularizers"], ["entropy"], ["regularizers", "['entropy']", "write a value for each name, {name: value}"]),
        ([*GRID, "regularizers"], {"entropy": [10**400]}, ["regularizers.entropy.0", "is not of type 'number'"]),
        (["tasks", "scan_jump", "training", "steps"], 10**30, ["steps: 1000000", "is not of type 'integer'", "it is too large"]),
        ([*GRID, "seeds"], 10**400, ["grids.0.seeds: 1000000", "it is too large"]),
        ([*GRID, "seeds"], [2**63], ["seeds.0: 9223372036854775808 is not of type 'integer'", "it is too large"]),
        (["pack_size"], {"cpu": {"default": 1}}, ["- pack_size: 'cuda' is a required property: add it\n"]),
        (["tasks", 5], {}, ["tasks", "'5'"]),
        (["sources"], ["mirror", "ftp"], ["sources.1: 'ftp'", "mirror, hub, url"]),
        (["tasks"], None, ["tasks: is empty: write {}"]),
        (["tasks", "scan_jump", "training", "learning_rte"], 1, ["did you mean 'learning_rate'"]),
        (["tasks", "scan_jump", "training", "steps"], "many", ["tasks.scan_jump.training.steps", "'many'"]),
        (["tasks", "../../outside"], {}, ["tasks", "../../outside"]),
        ([*GRID, "regularizers"], {"entropy": [0.1, -1]}, ["regularizers.entropy.1", "-1"]),
        ([*GRID, "regularizers"], {"entropy": [0.1, 0.1]}, ["regularizers.entropy: 0.1 is repeated in [0.1, 0.1]"]),
        ([*GRID, "seeds"], [0, 1, 1], ["seeds: 1 is repeated in [0, 1, 1]; write it once"]),
        ([*GRID, "seeds"], ["a"], ["seeds.0", "'a'"]),
        ([*GRID, "seeds"], 5.0, ["seeds: 5.0", "write 5\n"]),
        ([*GRID, "regularizers"], {"entropy": None}, ["entropy: None", "it is empty: write a value"]),
        (GRID[:-1], {"task": "scan_jump"}, ["grids: {", "write a list, [{'task': 'scan_jump'}]"]),
        ([*GRID, "task"], ["cogs", "cogs"], ["grids.0.task: 'cogs' is repeated in ['cogs', 'cogs']; write it once\n"]),
        (["tasks"], "scan_jump:{}", ["write a value for each name, {name: value}, with a space after the colon\n"]),
        (["tasks", "scan_jump", "steps"], 5, ["unknown key 'steps'; it belongs to training: {steps: ...}"]),
        (["regularizers", "entropy"], {"lambda": 1}, ["unknown key 'lambda'; lambdas and seeds are in the grids of a figure"]),
        (["studies", "mine"], None, ["studies.mine: is empty: write {figures: ...}"]),
        (["tasks", "mine"], {"modul": "scan_jump"}, ["no task module 'mine'", "needs `module: <name>`; this has ['modul']"]),
        (["tasks", "scan_jump"], {"a": 1, "b": 2}, ["- tasks.scan_jump: unknown key 'a'", "- tasks.scan_jump: unknown key 'b'"]),
    ],
)
def test_errors_name_key_value_and_what_is_allowed(path, value, parts):
    message = refusal(path, value) + "\n"
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["archive"], {"figures": ["ablation"] * 2}, r"archive.figures: 'ablation' is repeated in .*; write it once$"),
        (["archive"], {"figures": "ablation"}, "and 'ablation' is not of type 'array'; write a list, .ablation.$"),
        ([*GRID, "task"], 5, r"task: 5 is not of type 'string', 'array' \(value: 5\); this is a number: write it in quotes$"),
        (
            [*GRID, "regularizers"],
            {"entropy": []},
            r"entropy: \[\] should be non-empty \(value: \[\]\); it is empty: write a value$",
        ),
        (
            ["tasks", "scan_jump", "training", "learning_rate"],
            [0.1],
            r"\[0.1\] is not of type 'number'.*; write one value, not a list$",
        ),
        (["models", "My-CNN"], {}, r"models: 'My-CNN' does not match .*; write it like my_name_2$"),
        (["pack_size", "cpu"], {"default": "8"}, "pack_size.cpu.default: '8' is not of type 'integer'.*this is text"),
        ([*GRID, "regularizers"], {"entropy": [0.1, 0.1000000000001]}, "entropy: lambdas 0.1, 0.1000000000001 are not different"),
        ([*GRID[:-2], "options"], {"ceilings": ["digits_concat_b"]}, "options.ceilings: .* is not of type 'object'"),
        ([*GRID[:-2], "options"], {"ceilings": {"scan_jump": 3}}, "scan_jump: 3 is not of type 'string'.*; this is a number"),
        (["store"], 2**63, r"\(value: 9223372036854775808\); this is a number: write it in quotes$"),
    ],
)
def test_values_of_wrong_types_have_these_messages(path, value, message):
    assert re.search(message, refusal(path, value))


def test_the_same_problem_of_many_grids_is_told_once_with_some_of_them_and_how_many_more():
    said = refusal(["tasks", "scan_jump", "training", "loss"], "hinge")
    (line,) = (one for one in said.splitlines() if "'scan_jump'," in one)
    assert re.search(r"ablation.grids.0, .*learning_curves.grids.0, .* and \d+ more: training.loss 'hinge' is not for", line)


def test_a_figure_of_two_studies_is_named_with_both():
    grid = {"task": "scan_jump", "model": "lstm_attention", "regularizers": {}, "seeds": [0]}
    said = refusal(["studies", "mine"], {"figures": {"ablation": {"grids": [grid]}}})
    assert "studies: compositional_regularization and mine have a figure 'ablation': rename one of them" in said


def test_a_message_ends_with_the_nearest_match_and_all_allowed_values():
    assert options_for("entrpy", ["entropy", "smoothness"]) == "; did you mean 'entropy'? Allowed: entropy, smoothness."
    assert options_for("x", []) == ". Allowed: none."
    many = ["entropy", "entropy_norm", *(f"a_{number}" for number in range(30))]
    assert options_for("entrpy", many) == "; did you mean 'entropy'? Allowed: entropy, entropy_norm and 30 others."
    assert options_for("z", many).endswith(", a_28, a_29.")


def test_a_long_value_is_shown_by_its_ends():
    wrong = [f"entry {number}" for number in range(1000)]
    (line,) = (one for one in refusal(["tasks"], wrong).splitlines() if "- tasks" in one)
    assert len(line) < 600
    assert "['entry 0', 'entry 1'" in line
    assert "'entry 999'] is not of type 'object'" in line


def _places(value, path=()):
    """The path of everything in a configuration."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, own in inside for place in [(*path, key), *_places(own, (*path, key))]]


SMALL = merged(read("config.yaml"), yaml.safe_load((ROOT / "tests/support/tiny.yaml").read_text(encoding="utf-8")))
WRONG = (
    *("", " ", "nonsense", "a/b", "\n", None, True, -1, 0, 1.5, 10**30, 10**400, 5e-324, float("nan"), float("inf")),
    *([], {}, [None], [[]], [{}], [1, 1], ["a", "a"], {"a": 1}, {1: {}}, {"a": None}),
)


@given(path=sampled_from(_places(SMALL)), value=sampled_from(WRONG))
@example(path=(*GRID, "seeds"), value=10**400)
@settings(max_examples=150, derandomize=True)
def test_any_value_at_any_place_is_accepted_or_refused_in_words(path, value):
    try:
        Configuration(change(merged(SMALL), list(path), value))
    except ConfigurationError as error:
        lines = str(error).splitlines()
        assert len(lines) > 1
        assert all(line.startswith("  - ") and len(line) < 3000 for line in lines[1:])
