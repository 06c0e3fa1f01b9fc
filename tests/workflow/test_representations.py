"""The figures of representations in the real workflow: they are measured from saved weights and never retrain anything."""

from __future__ import annotations

import copy

import pandas as pd
import pytest
from support.configurations import STUDIES, change, read
from support.project import Project

from compositional.configuration.configuration import Configuration, ConfigurationError

FIGURE = "results/figures/metrics_images.pdf"
RUN = "results/runs/digits_concat/cnn/none/lambda=0/seed=0"
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("built"))
    grid = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [1]}, "seeds": [0, 1]}
    figures = {"metrics_images": {"grids": [grid]}, "tradeoff": {"grids": [grid]}}
    # There must be enough test pairs to contain all pairs of classes.
    project.overlay(
        {"tasks": {"digits_concat": {"test_pairs": 1000}}, "studies": {"representations": {"figures": figures}}},
    )
    project.snakemake(FIGURE, overlay="overlay.yaml")
    return project


def test_the_figure_is_drawn_from_measures_metrics_and_comparisons(built):
    table = pd.read_csv(built.folder / "results/tables/metrics_images.csv")
    metrics = set(table.metric)
    for metric in ("accuracy", "swap_consistency", "ccgp of left in penultimate", "cka_with_plain in penultimate"):
        assert metric in metrics
    assert "* swap consistency" in (built.folder / "results/figures/metrics_images.rst").read_text()


def test_a_changed_measure_trains_and_evaluates_nothing(built):
    path = built.folder / "src/compositional/measures/compositionality.py"
    text = path.read_text()
    path.write_text(text.replace("alpha=1.0", "alpha=2.0", 1))
    try:
        jobs = built.jobs(FIGURE, overlay="overlay.yaml")
    finally:
        path.write_text(text)
    assert set(jobs) == {"represent_digits_concat__cnn__none", "represent_digits_concat__cnn__entropy", "aggregate", "plot"}


def test_another_figure_of_the_same_runs_measures_nothing(built):
    assert set(built.jobs("results/figures/tradeoff.pdf", overlay="overlay.yaml")) == {"aggregate", "plot"}


def test_measures_of_a_single_run_can_be_requested_by_its_path(built):
    assert built.jobs(f"{RUN}/representations.csv", overlay="overlay.yaml") == {}


def test_figures_of_representations_are_refused_for_tasks_that_cannot_be_probed():
    config = copy.deepcopy(read("config.yaml", *STUDIES))
    grid = {"task": "quadrants", "model": "multilayer_perceptron", "regularizers": {}, "seeds": [0]}
    change(config, ["studies", "representations", "figures", "embeddings", "grids"], [grid])
    with pytest.raises(ConfigurationError, match="representations are measured of image and sequence tasks, 'quadrants'"):
        Configuration(config)
