"""Wrong configurations stop before any job, with a message that helps."""

from __future__ import annotations

import copy
import json
import re
from collections import OrderedDict

import pytest
import yaml
from support.configurations import ROOT, SCHEMA, STUDIES, change, merged, read

import compositional
from compositional import plugins as declarations_module
from compositional.configuration import configuration as configuration_module
from compositional.configuration import documentation
from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.records.fingerprint import fingerprint
from compositional.runs import Run, expand, figure_runs, format_lambda

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]
METHODS = ["studies", "representations", "figures", "comparison", "options", "methods"]


@pytest.fixture
def config() -> dict:
    return read("config.yaml", *STUDIES)


@pytest.mark.parametrize("overlay", [[], ["paper.yaml"]])
def test_shipped_configurations_are_valid(overlay):
    figures = Configuration(read("config.yaml", *STUDIES, *overlay), SCHEMA).figures
    assert all(figure_runs(figure) or figure["sources"] == ["split"] for figure in figures.values())


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (["devise"], "cpu", ["unknown key 'devise'", "did you mean 'device'?"]),
        (["device"], "gpu", ["device: 'gpu'", "Allowed: auto, cpu, cuda"]),
        (["checkpoint_seconds"], "soon", ["checkpoint_seconds", "'soon'"]),
        (["pack_size"], {"default": 0}, ["pack_size.default", "0"]),
        (["pack_size"], {"default": 4, "scan_jmp": 8}, ["pack_size: unknown task 'scan_jmp'", "did you mean 'scan_jump'?"]),
        (["tasks", "scan_jump", "training", "steps"], 400.0, ["tasks.scan_jump.training.steps", "400.0"]),
        (["tasks", "scan_jump", "training", "learning_rate"], float("nan"), ["learning_rate", "nan"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "1e-2", ["'1e-2'", "write 1.0e-2"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "1E3", ["'1E3'", "write 1.0e+3"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "2.5e3", ["'2.5e3'", "write 2.5e+3"]),
        (["tasks", "scan_jump", "training", "learning_rate"], "-1e-3", ["'-1e-3'", "write -1.0e-3"]),
        ([*GRID, "seeds"], 5.0, ["seeds", "5.0"]),
        ([*GRID, "seeds"], [1.0], ["seeds", "1.0"]),
        ([*GRID, "regularizers"], {"entropy": [float("inf")]}, ["regularizers.entropy.0", "inf"]),
        ([*GRID, "regularizers"], {"entropy": [10**400]}, ["regularizers.entropy.0", "is not of type 'number'"]),
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
        (["tasks", 5], {}, ["tasks", "'5'"]),
        (["sources"], ["mirror", "ftp"], ["sources.1: 'ftp'", "mirror, hub, url"]),
        (["tasks"], None, ["tasks: is empty: write {} or remove the key"]),
        (["tasks", "scan_jmp"], {}, ["no task module 'scan_jmp'", "did you mean 'scan_jump'?"]),
        (["tasks", "scan_jump", "deduplicat"], True, ["tasks.scan_jump: unknown key 'deduplicat'", "did you mean 'deduplicate'"]),
        (["tasks", "scan_jump", "training", "steps"], "many", ["tasks.scan_jump.training.steps", "'many'"]),
        (["tasks", "scan_jump", "training", "learning_rte"], 1, ["did you mean 'learning_rate'"]),
        (["tasks", "scan_jump", "training", "batch_size"], 100, ["multiple of 16", "100"]),
        (["tasks", "../../outside"], {}, ["tasks", "../../outside"]),
        *(
            (
                ["tasks", task, "training", "influence_examples"],
                16,
                ["influence_examples is for tasks of kind sequence, image, point,", f"{task!r} is a task of kind {kind!r}"],
            )
            for task, kind in (
                ("matrix_completion", "tensor"),
                ("addition_both", "combination"),
                ("digits_both_0", "composite"),
                ("raven", "puzzle"),
            )
        ),
        (["models", "cnn"], {"convolutions": 5}, ["models.cnn.convolutions: 5", "Allowed: 2, 3"]),
        ([*GRID, "task"], "scan_jumpp", ["task: unknown task 'scan_jumpp'", "did you mean 'scan_jump'"]),
        ([*GRID, "model"], "cnn", ["model 'cnn' is for image tasks", "'scan_jump'"]),
        ([*GRID, "regularizers"], {"entrpy": [1]}, ["unknown regularizer 'entrpy'", "did you mean 'entropy'"]),
        ([*GRID, "regularizers"], {"additivity": [1]}, ["'additivity' applies to image tasks", "'scan_jump'"]),
        (["tasks", "digits_concat", "training", "batch_size"], 5, ["pairs the examples", "must be even", "5"]),
        ([*GRID, "regularizers"], {"entropy": [0.1, -1]}, ["regularizers.entropy.1", "-1"]),
        ([*GRID, "regularizers"], {"entropy": [0.1, 0.1]}, ["regularizers.entropy", "non-unique"]),
        ([*GRID, "seeds"], [0, 1, 1], ["seeds", "non-unique", "[0, 1, 1]"]),
        ([*GRID, "seeds"], ["a"], ["seeds.0", "'a'"]),
        (
            [*GRID[:3], "abaltion"],
            {"grids": [{"task": "scan_jump", "model": "cnn", "regularizers": {}, "seeds": [0]}]},
            ["no figure module 'abaltion'", "did you mean 'ablation'"],
        ),
        ([*GRID[:4], "options"], {"ceiling": {}}, ["unknown key 'ceiling'", "did you mean 'ceilings'"]),
        (["regularizers"], {"none": {"module": "entropy"}}, ["regularizers.none: 'none' is the plain run"]),
        (
            ["tasks"],
            {"sums": {"module": "addition", "series": {"shuffle": 2}}, "sums_shuffle1": {"module": "scan_jump"}},
            ["'sums' and 'sums_shuffle1' both make a task 'sums_shuffle1'"],
        ),
        (
            ["studies", "representations", "figures", "tradeoff", "grids"],
            [{"task": "scan_jump", "model": "lstm_attention", "regularizers": {"entropy": [0]}, "seeds": 2}],
            ["representations.figures.tradeoff.grids", "no grid has a regularizer with a lambda above 0"],
        ),
        (
            ["studies", "kernel_theory", "figures", "regularized_salience", "grids"],
            [{"task": "digits_concat", "model": ["cnn", "batchnorm_cnn"], "regularizers": {}, "seeds": 2}],
            ["regularized_salience.grids", "'digits_concat' it has batchnorm_cnn, cnn", "module: regularized_salience"],
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
def test_errors_name_key_value_and_what_is_allowed(config, path, value, parts):
    with pytest.raises(ConfigurationError) as caught:
        Configuration(change(config, path, value), SCHEMA)
    for part in parts:
        assert part in str(caught.value)


def test_names_are_found_wherever_an_option_has_them():
    name = {"type": "string", "names": "models"}
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"model": name, "title": {"type": "string"}}, "additionalProperties": name},
    }
    value = [{"model": "cnn", "title": "t"}, {"other": "mlp", "model": ""}]
    assert list(configuration_module._names_in(schema, value, "panels")) == [
        ("panels.0.model", "models", "cnn"),
        ("panels.1.other", "models", "mlp"),
    ]
    keys = {
        "type": "object",
        "additionalProperties": {"type": "object", "names": "tasks", "additionalProperties": {"type": "number"}},
    }
    assert list(configuration_module._names_in(keys, {"0.1": {"a": 1.0}}, "published")) == [("published.0.1.a", "tasks", "a")]
    assert list(configuration_module._names_in(keys, None, "published")) == []


def test_a_method_is_taken_out_by_null(config):
    figure = config["studies"]["representations"]["figures"]["comparison"]
    figure["grids"] = [grid for grid in figure["grids"] if grid["model"] != "transformer_small"]
    with pytest.raises(ConfigurationError, match="do not train 'transformer_small/none/lambda=0'"):
        Configuration(config, SCHEMA)
    Configuration(change(config, [*METHODS, "transformer"], None), SCHEMA)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run("scan_jump", "cnn", "none", 0, 0), "is for image tasks"),
        (Run("scan_jump", "lstm_attention", "entropy", 0, 0), "if and only if"),
        (Run("scan_jump", "lstm_attention", "none", 1, 0), "if and only if"),
        (Run("scan_jum", "lstm_attention", "none", 0, 0), "did you mean 'scan_jump'"),
    ],
)
def test_runs_asked_for_by_path_are_checked(config, run, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Configuration(config, SCHEMA).check_run(run)


def test_settings_are_defaults_then_task_then_model(config):
    change(config, ["models", "cnn"], {"training": {"steps": 7}})
    settings = Configuration(config, SCHEMA).settings("digits_concat", "cnn")
    assert (settings["steps"], settings["loss"], settings["curve_examples"]) == (7, "hinge", 512)


def test_run_paths_round_trip_and_nothing_escapes_the_results():
    run = Run("scan_jump", "lstm_attention", "entropy", 1e-05, 3)
    assert run.path == "scan_jump/lstm_attention/entropy/lambda=1e-05/seed=3"
    assert Run.parse(run.path) == run
    assert Run.parse("a/b/c/lambda=1e+20/seed=0").path == "a/b/c/lambda=1e+20/seed=0"
    wrong = [f"a/b/c/lambda={text}/seed=0" for text in ("-1", "1-2", "1e", "1.2.3", "1e999", "inf")]
    for path in ("../x/a/lambda=1/seed=0", "a/b/c/lambda=1/seed=../0", *wrong):
        with pytest.raises(ValueError, match="is not"):
            Run.parse(path)
    assert [format_lambda(value) for value in (0, 0.1, 10.0, 0.30000000000000004)] == ["0", "0.1", "10", "0.3"]


def test_lambda_zero_is_one_run_shared_by_all_regularizers():
    grid = {"task": "t", "model": "m", "regularizers": {"a": [0, 1], "b": [0, 2]}, "seeds": [0]}
    assert [(run.regularizer, run.strength) for run in expand(grid)] == [("none", 0), ("a", 1), ("b", 2)]


def test_a_grid_of_several_tasks_and_models_is_one_of_each(config):
    change(config, GRID, {"task": ["scan_jump", "scan_length"], "model": "lstm_attention", "regularizers": {}, "seeds": 2})
    grids = Configuration(config, SCHEMA).figures["ablation"]["grids"]
    expected = [
        {"task": task, "model": "lstm_attention", "regularizers": {}, "seeds": [0, 1]} for task in ("scan_jump", "scan_length")
    ]
    assert grids[:2] == expected
    change(config, [*GRID, "task"], ["scan_jump", "scan_lenght"])
    with pytest.raises(ConfigurationError, match="unknown task 'scan_lenght'; did you mean 'scan_length'"):
        Configuration(config, SCHEMA)


def test_every_option_is_documented():
    documented = (ROOT / "config" / "README.md").read_text()
    _, written = documented.split(documentation.MARK)
    assert written.strip() == documentation.tables().strip(), "config/README.md is not what the modules declare (make docs)"
    assert "| `dropout` | number, at least 0, below 1 | `0.1` |" in written
    assert "| `stop_loss` | number or null, above 0 | `null` |" in written
    for key in yaml.safe_load(SCHEMA.read_text())["properties"]:
        assert f"`{key}`" in documented


def test_every_module_is_on_the_map():
    """In the docstring of the package."""
    words = set(re.findall(r"\w+", compositional.__doc__))
    assert {path.stem for path in (ROOT / "src/compositional").iterdir() if path.name[0] not in "._"} <= words


@pytest.mark.parametrize("overlay", [[], ["paper.yaml"]])
def test_a_portable_configuration_laid_over_the_shipped_one_is_itself(overlay):
    """As in an archive, where it is the overlay of a rebuild."""
    asked = Configuration(read("config.yaml", *STUDIES, *overlay), SCHEMA)
    again = Configuration(merged(read("config.yaml", *STUDIES), json.loads(json.dumps(asked.portable))), SCHEMA)
    assert again.config == asked.config | {"mirror": None}


def test_an_integer_where_any_number_may_stand_is_that_number(config):
    """0 and 0.0 are one value: another spelling must not train again."""
    written = Configuration(change(config, ["tasks", "scan_jump"], {"training": {"weight_decay": 0, "clip": 1}}), SCHEMA)
    plain = Configuration(change(config, ["tasks", "scan_jump"], {}), SCHEMA)
    family = ("scan_jump", "lstm_attention", "none")
    assert json.dumps(written.family_parameters(family)) == json.dumps(plain.family_parameters(family))


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package with no module yet: writes one, given as "models.cnn"."""
    monkeypatch.setattr(declarations_module, "PACKAGE", tmp_path)

    def clear() -> None:
        declarations_module.available.cache_clear()
        declarations_module.declarations.cache_clear()
        configuration_module.declared_by.cache_clear()

    clear()

    def write(name: str, source: str) -> None:
        path = declarations_module.module_path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        clear()

    yield write
    clear()


def test_modules_without_a_declaration_are_refused(package, tmp_path):
    package("models.base", 'KIND = "image"\nREPRESENTATIONS = ("features",)\nPARAMETERS = {"width": {"default": 1}}\n')
    taken = f"from {tmp_path.name}.models import base as other\nKIND = other.KIND\nREPRESENTATIONS = other.REPRESENTATIONS\n"
    package("models.extended", taken + "PARAMETERS = other.PARAMETERS\n")
    joined = 'SHARED = {"depth": {"default": 2}}\nPARAMETERS = other.PARAMETERS | SHARED | {"width": {"default": 3}}\n'
    package("models.joined", taken + joined)
    package("models.computed", taken + "PARAMETERS = {**other.PARAMETERS}\n")
    assert declarations_module.declarations("models.extended") == declarations_module.declarations("models.base")
    assert list(declarations_module.defaults("models.joined").items()) == [("width", 3), ("depth", 2)]
    with pytest.raises(ValueError, match=r"computed.py declares no PARAMETERS: each must be a literal"):
        declarations_module.declarations("models.computed")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (1.0, "PARAMETERS.width: 1.0 is not of type 'object'"),
        ({"type": "integer", "description": ""}, "PARAMETERS.width: 'default' is a required property"),
        ({"type": "integer", "default": 1}, "PARAMETERS.width: 'description' is a required property"),
        ({"default": 1, "description": ""}, "PARAMETERS.width: 'type' is a required property, and 'enum' is a required property"),
        ({"type": "nubmer", "default": 1, "description": ""}, "PARAMETERS.width.type: 'nubmer' is not one of .*'number'"),
        ({"type": "integer", "minimun": 0, "default": 1, "description": ""}, "unknown key 'minimun'; did you mean 'minimum'"),
        (
            {"type": "array", "items": {"minimun": 0}, "default": [], "description": ""},
            "PARAMETERS.width.items: unknown key 'minimun'",
        ),
        ({"type": "integer", "minimum": 0, "default": -3, "description": ""}, "PARAMETERS.width: -3 is less than the minimum"),
    ],
)
def test_options_must_be_schemas_that_their_defaults_follow(package, option, message):
    package("models.cnn", f'KIND = ()\nREPRESENTATIONS = ()\nPARAMETERS = {{"width": {option}}}\n')
    with pytest.raises(ConfigurationError, match=f"models/cnn.py: .*{message}"):
        configuration_module.declared_by("models.cnn")


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
    ],
)
def test_what_modules_name_must_exist(package, tmp_path, name, declared, message):
    package("datasets.digits", "FILES = {}")
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "image.py").write_text('LOSSES = ("hinge",)')
    package(name, f"{declared}\nPARAMETERS = {{}}\n")
    with pytest.raises(ConfigurationError, match=re.escape(f"toy.py: {message}")):
        configuration_module.declared_by(name)


def test_every_module_declares_its_options_well():
    for kind in declarations_module.REQUIRED:
        for name in declarations_module.available(kind):
            configuration_module.declared_by(f"{kind}.{name}")


@pytest.mark.parametrize("name", ["regularizers.Toy", "tasks.of-two", "regularizers.none"])
def test_modules_of_which_no_result_can_have_the_name_are_refused(package, name):
    package(name, "")
    with pytest.raises(ValueError, match=rf"{name.split('.')[1]}.py: rename this module: a letter, then letters, digits and _"):
        declarations_module.available(name.split(".")[0])


@pytest.mark.parametrize("listed", ["REPRESENTATIONS", "APPLIES_TO"])
def test_a_text_where_names_are_listed_is_refused(package, listed):
    """Not taken for one name: the module itself would look into it letter by letter."""
    package("regularizers.toy", f'REPRESENTATIONS = ()\nAPPLIES_TO = ()\nPARAMETERS = {{}}\n{listed} = ("image")\n')
    with pytest.raises(ValueError, match=rf"toy.py: {listed} = 'image' is text; .* \('image',\) with its comma"):
        declarations_module.declarations("regularizers.toy")


@pytest.mark.parametrize(
    ("source", "message"),
    [(b"WIDTH = 1\nKIND = \n", "models/cnn.py, line 2: invalid syntax"), (b'KIND = "\xe9"\n', "models/cnn.py, line 1: .*utf-8")],
)
def test_a_module_that_is_no_python_is_named(package, tmp_path, source, message):
    package("models.cnn", "")
    (tmp_path / "models/cnn.py").write_bytes(source)
    with pytest.raises(ValueError, match=message):
        declarations_module.declarations("models.cnn")
    with pytest.raises(ValueError, match=message):
        fingerprint(tmp_path / "models/cnn.py", root=tmp_path)


def test_a_configuration_from_json_is_as_plain_as_one_from_yaml():
    asked = read("config.yaml", *STUDIES)
    ordered = json.loads(json.dumps(asked), object_pairs_hook=OrderedDict)
    found = Configuration(ordered, SCHEMA)
    assert yaml.safe_load(yaml.safe_dump(found.portable)) == Configuration(asked, SCHEMA).portable
    assert type(found.figures["ablation"]["grids"][0]) is dict


def test_documented_calls_name_targets_before_configuration_files():
    """Snakemake takes every word behind --configfile for one more file, and behind --config for one more value."""
    calls = []
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("config/*.*")]:
        calls += re.findall(r"--config(?:file)? ([^`#\n]*)", path.read_text())
    assert len(calls) > 5
    assert not [call for call in calls if "results/" in call]


def test_messages_of_wrong_types(config):
    for keys, value, message in (
        (["archive"], {"figures": "ablation"}, "archive.figures: 'all' was expected, and 'ablation' is not of type 'array'"),
        ([*GRID, "task"], 5, "5 is not of type 'string', and 5 is not of type 'array'"),
        (["pack_size"], {"default": "8"}, "pack_size.default: '8' is not of type 'integer'.*this is text"),
        ([*GRID, "regularizers"], {"entropy": [0.1, 0.1000000000001]}, "entropy: lambdas 0.1, 0.1000000000001 are not different"),
        ([*GRID[:-2], "options"], {"ceilings": ["digits_concat_b"]}, "options.ceilings: .* is not of type 'object'"),
        ([*GRID[:-2], "options"], {"ceilings": {"scan_jump": 3}}, "options.ceilings.scan_jump: 3 is not of type 'string'"),
    ):
        wrong = copy.deepcopy(config)
        change(wrong, keys, value)
        with pytest.raises(ConfigurationError, match=message):
            Configuration(wrong, SCHEMA)
