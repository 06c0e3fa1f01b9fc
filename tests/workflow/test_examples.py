"""The examples of docs/extending.md work, and the page shows the files unchanged."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from support.project import ROOT, Project

EXAMPLES = ROOT / "docs" / "examples"
MODULES = sorted(path.relative_to(EXAMPLES) for path in EXAMPLES.glob("*/*.py"))
PLUG_INS = [path for path in MODULES if path.parent.name != "evaluation"]
FIGURE, LENGTHS = "results/figures/my_figure", "results/figures/my_lengths"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with the examples in their folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSITIONAL_MIRROR", str(EXAMPLES / "mirror"))
        project = Project(tmp_path_factory.mktemp("examples"))
        for path in MODULES:
            shutil.copy(EXAMPLES / path, project.folder / "src" / "compositional" / path)
        settings = project.folder / "tests" / "support" / "small.yaml"
        text = settings.read_text(encoding="utf-8")
        for section, entries in yaml.safe_load((EXAMPLES / "small.yaml").read_text(encoding="utf-8")).items():
            flow = {name: yaml.safe_dump(entry, default_flow_style=True, width=1000) for name, entry in entries.items()}
            written = "".join(f"  {name}: {entry}" for name, entry in flow.items())
            text = text.replace(f"\n{section}:\n", f"\n{section}:\n{written}", 1)
        settings.write_text(text, encoding="utf-8")
        stage = project.folder / "src" / "compositional" / "stages" / "evaluate.py"
        (added,) = re.findall(r"^MORE = .*\n", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.MULTILINE)
        code, count = re.subn(r"^MORE = .*\n", added, stage.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert count == 1
        stage.write_text(code.replace(" metrics, readings,", " metrics, my_length, readings,"), encoding="utf-8")
        yield project


@pytest.mark.parametrize("path", [*map(str, MODULES), "study.yaml", "small.yaml"])
def test_the_page_shows_every_example_unchanged(path):
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert (EXAMPLES / path).read_text(encoding="utf-8") in blocks


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_an_example_is_short(path):
    lines = [line for line in (EXAMPLES / path).read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= 35


@pytest.mark.workflow
def test_every_example_passes_the_tests_of_make_check(project):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"^check:.*\n\t@?\$\(RUN\) python (.*)$", makefile, re.MULTILINE)[1].replace("$(NAME)", "my_")
    words = ["sh", "-c", f"{shlex.quote(sys.executable)} {command}"]
    done = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    assert passed >= len(PLUG_INS)
    for path in PLUG_INS:
        assert path.stem in done.stdout


@pytest.mark.workflow
def test_the_study_made_of_the_examples_can_be_built(project):
    study = yaml.safe_load((EXAMPLES / "study.yaml").read_text(encoding="utf-8"))
    for task in study["tasks"].values():
        task["training"] |= {"steps": 4, "record_every": 2, "curve_examples": 32}
    (grid,) = study["studies"]["mine"]["figures"]["my_figure"]["grids"]
    grid["seeds"] = 1
    study["studies"]["mine"]["figures"]["my_lengths"] = {
        "module": "my_figure",
        "options": {"metric": "right length"},
        "grids": [grid],
    }
    project.snakemake(f"{FIGURE}.pdf", f"{LENGTHS}.pdf", overlay=project.overlay(study))
    caption = (project.folder / f"{FIGURE}.rst").read_text(encoding="utf-8")
    assert re.search(r"Best of my_colors: [\d.]+ at lambda .*; my_opposite: ", caption)
    assert "right length on the test set" in (project.folder / f"{LENGTHS}.rst").read_text(encoding="utf-8")
