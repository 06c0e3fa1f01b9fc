"""Everything that figures use must exist and be possible."""

from __future__ import annotations

import pytest
from support.configurations import change, refusal

from compositional.configuration import figures
from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.configuration.figures import _names_in

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]
METHODS = ["studies", "representations", "figures", "comparison", "options", "methods"]


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        ([*GRID[:4], "module"], "style", ["no figure module 'style'"]),
        (
            [*GRID[:4], "options"],
            {"ceilings": {"digits_concat": "digits_concat_c"}},
            ["ceilings.digits_concat", "unknown task 'digits_concat_c'", "did you mean 'digits_concat_b'?"],
        ),
        (
            [*GRID[:4], "options"],
            {"ceilings": {"digits_conca": "digits_concat_b"}},
            ["ceilings.digits_conca: unknown task 'digits_conca'", "did you mean 'digits_concat'?"],
        ),
        (
            [*GRID[:4], "options"],
            {"anchors": {"scan_jmp": {"published": 0.5}}},
            ["anchors.scan_jmp: unknown task 'scan_jmp'", "did you mean 'scan_jump'?"],
        ),
        (
            ["studies", "representations", "figures", "comparison", "options", "published"],
            {"scan_jmp": {"CGPS": {"mean": 0.9}}},
            ["options.published.scan_jmp: unknown task 'scan_jmp'; did you mean 'scan_jump'?"],
        ),
        (
            [*METHODS, "transformer"],
            "transformer_small/none/lambda=1..2",
            ["options.methods.transformer", "do not train 'transformer_small/none/lambda=1..2'; did you mean"],
        ),
        ([*GRID, "task"], "scan_jumpp", ["task: unknown task 'scan_jumpp'", "did you mean 'scan_jump'"]),
        ([*GRID, "regularizers"], {"entrpy": [1]}, ["unknown regularizer 'entrpy'", "did you mean 'entropy'"]),
        (
            [*GRID[:3], "abaltion"],
            {"grids": [{"task": "scan_jump", "model": "cnn", "regularizers": {}, "seeds": [0]}]},
            ["no figure module 'abaltion'", "did you mean 'ablation'"],
        ),
        ([*GRID[:4], "options"], {"ceiling": {}}, ["unknown key 'ceiling'", "did you mean 'ceilings'"]),
        (
            ["studies", "representations", "figures", "tradeoff", "grids"],
            [{"task": "scan_jump", "model": "lstm_attention", "regularizers": {"entropy": [0]}, "seeds": 2}],
            ["representations.figures.tradeoff.grids", "no grid has a regularizer with a lambda above 0"],
        ),
        (
            ["studies", "kernel_theory", "figures", "regularized_salience", "grids"],
            [{"task": "digits_concat", "model": ["cnn", "batchnorm_cnn"], "regularizers": {}, "seeds": 2}],
            ["regularized_salience.grids", "'digits_concat' has batchnorm_cnn, cnn", "module: regularized_salience"],
        ),
        (
            [*METHODS[:4], "grids"],
            [{"task": "scan_jump"}],
            ["comparison.grids.0: a grid of this figure has the keys task, model, regularizers, seeds"],
        ),
        (
            [*METHODS[:4], "grids"],
            [
                {"task": ["scan_jump", "scan_length"], "model": "lstm_attention", "regularizers": {}, "seeds": 1},
                {"task": ["scan_jump", "scan_length"], "model": "lstm_atention", "regularizers": {}, "seeds": 1},
            ],
            ["comparison.grids.1.model: unknown model 'lstm_atention'"],
        ),
        (
            ["studies", "kernel_theory", "figures", "kernel_addition", "options"],
            {},
            ["kernel_addition.options.sets: {} should be non-empty"],
        ),
        (
            ["studies", "tensor_factorization", "figures", "same_class_samples", "grids"],
            [{"task": "digits_composite"}],
            ["grids.0.task: this figure shows image tasks, 'digits_composite' is a task of kind 'composite'"],
        ),
        (
            [*METHODS, "swaps"],
            "lstm_attention_annealed/recombination/lambda=2",
            [
                "comparison.options.methods.swaps",
                "lambda=2'",
                "did you mean 'lstm_attention_annealed/recombination/lambda=1'?",
                "null",
            ],
        ),
    ],
)
def test_names_in_figures_must_exist(path, value, parts):
    message = refusal(path, value)
    for part in parts:
        assert part in message


def test_names_are_found_at_every_place_of_an_option():
    name = {"type": "string", "names": "models"}
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"model": name, "title": {"type": "string"}}, "additionalProperties": name},
    }
    value = [{"model": "cnn", "title": "t"}, {"other": "mlp", "model": ""}]
    assert list(_names_in(schema, value, "panels")) == [
        ("panels.0.model", "models", "cnn"),
        ("panels.1.other", "models", "mlp"),
    ]
    keys = {
        "type": "object",
        "additionalProperties": {"type": "object", "names": "tasks", "additionalProperties": {"type": "number"}},
    }
    assert list(_names_in(keys, {"0.1": {"a": 1.0}}, "published")) == [("published.0.1.a", "tasks", "a")]
    assert list(_names_in(keys, None, "published")) == []


def test_null_removes_a_method(config):
    figure = config["studies"]["representations"]["figures"]["comparison"]
    figure["grids"] = [grid for grid in figure["grids"] if grid["model"] != "transformer_small"]
    with pytest.raises(ConfigurationError, match="do not train 'transformer_small/none/lambda=0'"):
        Configuration(config)
    Configuration(change(config, [*METHODS, "transformer"], None))


@pytest.mark.parametrize("declared", ['["metric"]', '{"metric": {"type": "string", "description": ""}}'])
def test_wrong_options_of_a_figure_are_refused_in_a_sentence(package, monkeypatch, declared):
    monkeypatch.setattr(figures, "shared_options", dict)
    package("figures.toy", f'SOURCE = "metrics.csv"\nPARAMETERS = {declared}')
    with pytest.raises(ConfigurationError, match=r"toy\.py: PARAMETERS"):
        figures._wrong_figure(None, "here", "toy", {"places": [], "grids": []})
