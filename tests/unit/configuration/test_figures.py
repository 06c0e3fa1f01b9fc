"""Everything that figures use must exist and be possible."""

from __future__ import annotations

import pytest
from support.configurations import change, refusal

from compositional.configuration import figures, names
from compositional.configuration.configuration import Configuration, ConfigurationError, configuration
from compositional.configuration.names import names_in

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
        *(
            (["studies", study, "figures", figure, "options", *path], value, [f"{figure}.options.{place}: {complaint}"])
            for study, figure, path, value, place, complaint in (
                (
                    "representations",
                    "comparison",
                    ["metric"],
                    "blue",
                    "metric",
                    "no code computes a metric 'blue'; did you mean 'bleu'?",
                ),
                (
                    *("representations", "metrics", ["measures", "CCGP"], ["ccgp in encoder_sttes"], "measures.CCGP.0"),
                    "no model shows a representation 'encoder_sttes'; did you mean 'encoder_states'? Allowed: ",
                ),
                (
                    *("representations", "metrics", ["measures", "CCGP"], ["cgcp in encoder_states"], "measures.CCGP.0"),
                    "no code computes a metric 'cgcp'; did you mean",
                ),
                (
                    *("representations", "metrics", ["logarithmic"], ["tree error"], "logarithmic.0"),
                    "options.measures has no 'tree error'; did you mean 'tree reconstruction error'?",
                ),
                (
                    *("arithmetic", "arithmetic_variants", ["claims"], [{"claim": "c", "of": "LSTM of width 46", "at_most": 1}]),
                    *("claims.0.of", "options.groups has no 'LSTM of width 46'; did you mean 'LSTM of width 64'?"),
                ),
                (
                    *("kernel_theory", "kernel_context", ["bars"], [["Rep. 3", 3]], "bars.0.0"),
                    "options.representations has no 'Rep. 3'; did you mean 'Rep. 2'?",
                ),
                (
                    *("tensor_factorization", "factorization_dynamics", ["panels", 0, "quantity"], "singular_valeu"),
                    *("panels.0.quantity", "no code computes a metric 'singular_valeu'; did you mean 'singular_value"),
                ),
            )
        ),
        (
            ["studies", "language", "figures", "translation", "options", "against"],
            {"transfomer + entropy": "transformer"},
            ["options.methods has no 'transfomer + entropy'; did you mean 'transformer + entropy'?"],
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
    assert list(names_in(schema, value, "panels")) == [
        ("panels.0.model", "models", "cnn"),
        ("panels.1.other", "models", "mlp"),
    ]
    keys = {
        "type": "object",
        "additionalProperties": {"type": "object", "names": "tasks", "additionalProperties": {"type": "number"}},
    }
    assert list(names_in(keys, {"0.1": {"a": 1.0}}, "published")) == [("published.0.1.a", "tasks", "a")]
    assert list(names_in(keys, None, "published")) == []


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


def test_a_metric_that_the_code_names_is_allowed():
    known = configuration()
    for metric in (
        *("accuracy", "accuracy, brackets repaired", "accuracy of questions", "bleu, lower-cased tokens", "semantic exact match"),
        *("homomorphism_error_of_mean in *", "swap_consistency", "salience of left in penultimate", "node_1_2_component_1"),
    ):
        assert names._wrong_metric(known, metric) == ""


def test_a_metric_that_is_like_no_text_may_be_put_together():
    assert names._wrong_metric(configuration(), "zyxwvu of left in penultimate") == ""


def test_a_representation_of_a_model_without_an_entry_is_known():
    known = configuration()
    known.config["models"] = {}
    assert names._wrong_representation(known, "penultimate") == ""
    assert "did you mean 'penultimate'" in names._wrong_representation(known, "penultimat")
