"""Loading files never runs code, and no name in a configuration or command line leads out of the results folder."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

import pytest
from support.configurations import STUDIES, read
from support.project import Project

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.planning import targets
from compositional.runs import Run

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for place in ("src", "workflow", "benchmarks", "tests", "envs") for path in (ROOT / place).rglob("*.py"))
# Modules and calls that execute what they load, and options that make other calls do so.
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "jsonpickle"}
CALLS = {"eval", "exec", "torch.load", "torch.hub.load", "torch.jit.load", "pd.read_pickle", "pandas.read_pickle", "yaml.load"}
CALLS |= {"yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen", "np.loads", "numpy.loads"}
OPTIONS = {"trust_remote_code", "allow_pickle", "shell"}


def _dangers(tree: ast.AST) -> list[str]:
    """The places in a module that could run code from data."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS or name.endswith((".to_pickle", ".read_pickle", ".load_state_dict_from_url")):
                found.append(f"line {node.lineno}: {name}")
            for keyword in node.keywords:
                if keyword.arg in OPTIONS and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
                    found.append(f"line {node.lineno}: {name}({keyword.arg}=...)")
    return found


def test_no_module_loads_pickles_or_remote_code():
    assert {path: found for path in SOURCES if (found := _dangers(ast.parse(path.read_text())))} == {}


def test_the_rules_run_scripts_only():
    """Their commands consist of a script's name and of placeholders for names or quoted paths."""
    commands = []
    for path in [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]:
        words = [line.strip() for line in path.read_text().splitlines()]
        assert not {"run:", "script:", "notebook:"} & set(words), path
        commands += [words[place + 1] for place, word in enumerate(words) if word == "shell:"]
        assert not any(word.startswith(("import pickle", "exec(", "eval(")) for word in words), path
    recipe = r'results/recipes/(\{params\.recipe\}|\w+_"\$\(basename \{log:q\} \.log\)")\.json \{log:q\}( \{threads\})?'
    told = rf"({recipe}|\{{output:q\}} \{{log:q\}} \$COMPOSITIONAL_SOURCES)"
    called = re.escape("python3 -P -m compositional.stages.shared.forks")
    assert len(commands) == 10
    for command in commands:
        assert re.fullmatch(rf"""'{called} "\$COMPOSITIONAL_SCRIPTS/\w+\.py" {told}'""", command), command


@pytest.mark.parametrize(
    "code", ["import pickle", "from joblib import load", "torch.load(x)", "np.load(x, allow_pickle=True)", "eval(text)"]
)
def test_the_check_sees_dangers(code):
    assert _dangers(ast.parse(code))


HOSTILE = [
    "../outside",
    "/tmp/outside",
    "a/../../outside",
    "..",
    ".hidden",
    "a b",
    "a\n",
    "A",
    "a;touch outside",
    "$(touch outside)",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_in_the_configuration_is_refused(name):
    whole = read("config.yaml", *STUDIES)
    grid = {"task": "digits_concat", "model": "cnn", "regularizers": {}, "seeds": [0]}
    figure = {"module": "ablation", "grids": [grid]}
    changes = [
        {"tasks": {name: {"module": "digits_concat"}}},
        {"tasks": {"new": {"module": name}}},
        {"models": {name: {"module": "cnn"}}},
        {"models": {"new": {"module": name}}},
        {"regularizers": {name: {"module": "entropy"}}},
        {"studies": {name: {"figures": {}}}},
        {"studies": {"new": {"figures": {name: figure}}}},
        {"studies": {"new": {"figures": {"f": figure | {"module": name}}}}},
        {"studies": {"new": {"figures": {"f": {"module": "ablation", "grids": [grid | {"task": name}]}}}}},
        {"studies": {"new": {"figures": {"f": {"module": "ablation", "grids": [grid | {"model": name}]}}}}},
        {"studies": {"new": {"figures": {"f": {"module": "ablation", "grids": [grid | {"regularizers": {name: [1]}}]}}}}},
        {"studies": {"new": {"figures": {"f": {"module": "ablation", "grids": [grid | {"seeds": [name]}]}}}}},
        {"archive": {"figures": [name], "data": False}},
    ]
    for change in changes:
        config = copy.deepcopy(whole)
        for section, value in change.items():
            config[section] = value if section == "archive" else config[section] | value
        with pytest.raises(ConfigurationError):
            Configuration(config)


@pytest.mark.parametrize(
    "run",
    [
        *("../../x/y/z/lambda=1/seed=0", "a/b/../lambda=1/seed=0", "a/b/c/lambda=../seed=0", "a/b/c/lambda=1/seed=../0"),
        *("a/b/c/lambda=1/seed=0\n", "a/b\n/c/lambda=1/seed=0"),
    ],
)
def test_a_run_requested_by_a_hostile_path_is_refused(run):
    with pytest.raises(ValueError, match="is not <task>"):
        Run.parse(run)
    configuration = Configuration(read("config.yaml", *STUDIES))
    with pytest.raises((ValueError, ConfigurationError)):
        targets.wanted_runs(configuration, [f"results/runs/{run}/metrics.csv"])


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    return Project(tmp_path_factory.mktemp("safety") / "project")


@pytest.mark.workflow
@pytest.mark.parametrize(
    "target", ["results/figures/../../outside.pdf", "results/tables/..%2Foutside.csv", "results/splits/../outside"]
)
def test_a_hostile_target_makes_nothing(project, target):
    project.snakemake(target, succeeds=False)
    assert list(project.folder.parent.rglob("*outside*")) == []
    assert not (project.folder / "results").exists()
