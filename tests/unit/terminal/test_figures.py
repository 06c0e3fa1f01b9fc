"""The page of all figures agrees with the configuration."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.project import ROOT

from compositional.configuration.configuration import configuration
from compositional.planning.recipes import Recipes
from compositional.terminal.figures import Described, described, listing, page

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def figures():
    return described(Recipes(configuration(), Path("nowhere")), 2)


def test_the_page_agrees_with_the_configuration(figures):
    assert (DOCS / "figures.md").read_text(encoding="utf-8") == page(figures, DOCS), "docs/figures.md is out of date (make docs)"


def test_figures_are_listed_without_importing_libraries_that_take_longer():
    code = "import runpy, sys; runpy.run_path('workflow/figures.py', run_name='__main__')"
    code += "; sys.exit(any(name in sys.modules for name in ('torch', 'datasets', 'pandas')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ablation" in done.stdout


def test_every_figure_is_on_the_page_once_with_its_requirements(figures):
    known = configuration()
    assert [figure.name for figure in figures] == list(known.figures)
    assert all(figure.shows and figure.data for figure in figures)
    shown = Counter(figure.shows for figure in figures)
    assert [text for text, count in shown.items() if count > 1] == [], (
        "give these figures a description of their own in config/studies"
    )
    main = next(figure for figure in figures if figure.name == "ablation")
    assert (main.study, main.data, main.runs, main.ready) == ("compositional_regularization", ["digits", "scan"], 105, 0)
    assert 180 < main.seconds < 3600


def test_a_listing_states_what_remains_to_be_made():
    one = Described("a", "study", "What a shows.", ["scan"], 4, 2, 600.0, "not built")
    lines = listing([one], "auto").splitlines()
    assert lines == [
        "study",
        "",
        "  a: not built, about 10 min; runs: 4, 2 of them exist; data: scan",
        "    What a shows.",
        "",
        "Build one: snakemake results/figures/<name>.pdf",
    ]
    (added,) = set(listing([one], "cuda").splitlines()).difference(lines)
    assert "times are those of a CPU" in added


def test_no_time_is_derived_from_another_model_of_the_same_module():
    """A large model is estimated from its own steps or not at all: transformer_cogs is 512 wide, transformer_small_long 64."""
    paper = described(Recipes(configuration(DOCS.parent / "config" / "paper" / "language.yaml"), Path("nowhere")), 2)
    assert {figure.name: figure.seconds for figure in paper}["per_category_slog"] is None
