"""The workflow is used from elsewhere: as a module of another workflow, and with --snakefile and --directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from support.project import FIGURE, Project, call

pytestmark = pytest.mark.workflow
GRID = {"task": "digits_concat", "model": "cnn", "regularizers": {}, "seeds": [0]}
STUDIES = {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID]}}}}
RUN = "results/runs/digits_concat/cnn/none/lambda=0/seed=0/run.json"
WORKFLOW = f"""
configfile: "mine.yaml"

onstart:
    print("mine begins")

module compositional:
    snakefile: config["place"] + "/Snakefile"
    config: config["compositional"]

use rule * from compositional as theirs_*

rule paper:
    default_target: True
    input: "{RUN}"
    output: "paper.json"
    shell: "cp {{input}} {{output}}"
"""


def said_by(folder: Path, *words: str, succeeds: bool = True) -> str:
    done = call(list(words), folder)
    assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    project.overlay({"studies": STUDIES})
    return project


def test_another_workflow_uses_this_one_as_a_module(project, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "Snakefile").write_text(WORKFLOW)
    tiny = yaml.safe_load((project.folder / "tests/support/tiny.yaml").read_text()) | {"studies": STUDIES}
    mine.joinpath("mine.yaml").write_text(yaml.safe_dump({"place": "../mine/../project", "compositional": tiny, "own": True}))
    (tmp_path / "project").symlink_to(project.folder)
    said = said_by(mine, "--cores", "2")
    assert "mine begins" in said
    assert (mine / "paper.json").read_bytes() == (mine / RUN).read_bytes()
    assert "Nothing to be done" in said_by(mine, "-n")
    # This option is about the configuration files of the other workflow.
    assert "Nothing to be done" in said_by(mine, "-n", "--configfile", "mine.yaml", "--replace-workflow-config")
    assert not (project.folder / "results").exists()
    # Errors name the module's own keys, and changed options are noticed.
    (mine / "mine.yaml").write_text(yaml.safe_dump({"place": "../project", "compositional": tiny | {"devise": "cpu"}}))
    assert "unknown key 'devise'" in said_by(mine, "-n", succeeds=False)
    (mine / "mine.yaml").write_text(yaml.safe_dump({"place": "../project", "compositional": 5}))
    assert "the module gets the configuration 5, must be a mapping" in said_by(mine, "-n", succeeds=False)
    tiny["tasks"]["digits_concat"]["training"]["learning_rate"] = 0.1
    (mine / "mine.yaml").write_text(yaml.safe_dump({"place": "../project", "compositional": tiny}))
    assert "learning_rate 0.001 -> 0.1" in said_by(mine, "-n")


def test_snakefile_directory_and_profile_are_found_from_elsewhere(project, tmp_path):
    """The Snakefile is the one where catalogs of workflows expect it."""
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "config.yaml").write_text("cores: 1\n")
    place = Path(os.path.relpath(project.folder, tmp_path))
    overlays = [str(place / name) for name in ("tests/support/tiny.yaml", "overlay.yaml")]
    words = ["--snakefile", str(place / "workflow" / "Snakefile"), "--directory", "work", "--profile", "profile", "-n", FIGURE]
    said = said_by(tmp_path, *words, "--configfile", *overlays)
    assert "train_digits_concat__cnn__none" in said
    # The shipped profile finds its overlays at paper scale.
    words[1], words[5] = str(place / "Snakefile"), str(place / "local-gpu")
    assert "train_mnist_concat__cnn__none" in said_by(tmp_path, *words)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflow/Snakefile"])
def test_a_wrong_overlay_is_named_from_elsewhere(project, tmp_path, snakefile):
    place = os.path.relpath(project.folder, tmp_path)
    said = said_by(tmp_path, "-s", f"{place}/{snakefile}", "-n", "--configfile", f"{place}/config/papr.yaml", succeeds=False)
    assert said.splitlines()[1:] == [
        f"--configfile {place}/config/papr.yaml: there is no such file; did you mean {place}/config/paper.yaml?"
    ]
