"""`make new` writes plug-ins that work without changes."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import pandas as pd
import pytest
from support.project import ROOT, Project

MADE = {"dataset": "my_data", "figure": "my_figure", "kind": "my_kind", "model": "my_model", "regularizer": "my_term"}
MADE |= {"network": "my_network", "task": "my_task"}
SAID: dict[str, str] = {}  # by kind, what `make new` printed


def new(project: Project, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "workflow/new.py", *words]
    return subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A copy of the project with a new plug-in of each kind."""
    project = Project(tmp_path_factory.mktemp("new"))
    for kind, name in MADE.items():
        done = new(project, kind, name)
        assert done.returncode == 0, done.stderr
        assert f"/{name}.py" in done.stdout
        SAID[kind] = done.stdout
    return project


@pytest.mark.workflow
def test_new_plugins_pass_their_contract_tests(project):
    folders = [f"tests/unit/{kind}s/test_contract.py" for kind in MADE if kind != "network"]  # a network is a kind of model
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(MADE.values()), *folders]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.workflow
def test_a_figure_made_of_new_plugins_can_be_built(project):
    grids = [
        {"task": "digits_concat", "model": ["my_model", "my_network"], "regularizers": {"my_term": [0.1]}, "seeds": [0, 1]},
        {"task": "my_task", "model": "multilayer_perceptron", "regularizers": {}, "seeds": [0]},
    ]
    tasks = {"my_task": {"training": {"steps": 4, "record_every": 2, "curve_examples": 32}}}
    overlay = project.overlay({"tasks": tasks, "studies": {"new": {"figures": {"my_figure": {"grids": grids}}}}})
    project.snakemake("results/figures/my_figure.pdf", overlay=overlay)
    caption = (project.folder / "results/figures/my_figure.rst").read_text(encoding="utf-8")
    assert "digits_concat, my_model, my_term, 0.1" in caption
    assert "digits_concat, my_network, my_term, 0.1" in caption
    assert "my_task, multilayer_perceptron, none, 0.0" in caption


def follow(project: Project, said: str) -> list[str]:
    """Write the study that `make new` printed where it says, and return the words of the command that it printed."""
    path, study = re.search(r"write these lines to (\S+):\n\n(.+?)\n\n", said, re.DOTALL).groups()
    (project.folder / path).write_text(study + "\n")
    return re.search(r"^  snakemake (.+)$", said, re.MULTILINE)[1].split()


@pytest.mark.workflow
def test_what_make_new_prints_builds_a_figure_with_each_plugin(project):
    """Word by word, at a small scale. A dataset and a kind are used by a task, which `make new` writes."""
    targets = [target for kind in ("figure", "model", "network", "regularizer", "task") for target in follow(project, SAID[kind])]
    assert "results/figures/my_figure.pdf" in targets
    for kind in ("dataset", "kind"):
        (task,) = re.findall(r"make new KIND=task NAME=(\w+), write$", SAID[kind], re.MULTILINE)
        targets += follow(project, new(project, "task", task).stdout)
        for literal, file in re.findall(r"^  (.+) into ([^,\n]+)", SAID[kind], re.MULTILINE):
            path = project.folder / file.replace("the file of this task", f"src/compositional/tasks/{task}.py")
            text, count = re.subn(rf"^{literal.split()[0]} = .*$", literal, path.read_text(), flags=re.MULTILINE)
            assert count == 1
            path.write_text(text)
    training = {"training": {"steps": 4, "record_every": 2, "curve_examples": 32}}
    tasks = dict.fromkeys(("my_task", "my_data_task", "my_kind_task"), training)
    project.snakemake(*targets, overlay=project.overlay({"tasks": tasks}))
    for figure in ("my_figure", *(f"{name}_curves" for name in ("my_model", "my_network", "my_term", *tasks))):
        assert (project.folder / f"results/figures/{figure}.pdf").exists()
    for path in (project.folder / "config/studies").glob("my_*.yaml"):
        path.unlink()  # other tests define figures of these names, too


def test_every_bar_of_the_new_figure_is_named():
    columns = ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]
    rows = [
        ("scan_jump", "cgps", term, strength, 0, "test", "accuracy", 0.5) for term, strength in (("none", 0.0), ("mine", 0.1))
    ]
    template = runpy.run_path(str(ROOT / "workflow/templates/figure.py"))
    figure, _ = template["draw"](pd.DataFrame(rows, columns=columns), {"metric": "accuracy"})
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["SCAN: add jump, CGPS, mine, 0.1", "SCAN: add jump, CGPS, plain, 0.0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("modle", "mine"), "KIND=modle: there is no such kind of plug-in; did you mean 'model'? Allowed: dataset, "),
        (("model", "cnn"), "NAME=cnn: src/compositional/models/cnn.py already exists; taken: "),
        (("kind", "shared"), "NAME=shared: choose another name, because Python or this project uses this one"),
        (("model", "class"), "NAME=class: choose another name"),
        (("model", "MyModel"), "NAME='MyModel': a letter, then letters, digits and _, all lower case"),
        (("task", "../x"), "NAME='../x': a letter, then letters, digits and _, all lower case"),
        (("task", "mine\n"), "NAME='mine\\n': a letter"),
        (("regularizer", "none"), "'none' is the plain run (lambda = 0)"),
        (("model",), "KIND is one of dataset, figure, kind, model, network, regularizer, task"),
    ],
)
def test_invalid_requests_are_refused_and_nothing_is_written(project, words, message):
    before = sorted(project.folder.rglob("*.py"))
    done = new(project, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert sorted(project.folder.rglob("*.py")) == before
