"""Which runs a call requests."""

from __future__ import annotations

import pytest
from support.configurations import STUDIES, read

from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning import targets
from compositional.runs import Run, figure_runs


def test_the_command_line_determines_the_requested_runs():
    configuration = Configuration(read("config.yaml", *STUDIES))
    ablation = set(figure_runs(configuration.figures["ablation"]))
    everything = {run for figure in configuration.figures.values() for run in figure_runs(figure)}

    def wanted(*arguments):
        return set(targets.wanted_runs(configuration, arguments))

    assert wanted("results/figures/ablation.pdf") == wanted("results/tables/ablation.csv") == ablation
    assert wanted() == everything
    generation = "raven_evolved_loop0_generation2"
    assert wanted("results/figures/ablation.pdf", f"results/splits/{generation}") == ablation | set(
        configuration.built_from(generation)[1]
    )
    assert wanted("results/raw/geoquery/geography-logic.txt") == wanted("results/splits/scan_jump") == set()
    for target, what in (("geoqery/geography-logic.txt", "dataset"), ("geoquery/geography.txt", "file of geoquery")):
        with pytest.raises(ConfigurationError, match=f"there is no {what} .*did you mean"):
            wanted(f"results/raw/{target}")
    run = Run("scan_jump", "lstm_attention", "smoothness", 0.5, 77)
    for name in ("weights.safetensors", "metrics.csv"):
        assert wanted(f"results/runs/{run.path}/{name}") == {run}
    for target, file in ((f"runs/{run.path}", "/metrics.csv"), ("figures/ablation", ".pdf"), ("tables/ablation", ".csv")):
        with pytest.raises(ConfigurationError, match=f"ask for a file, such as results/{target}{file}$"):
            wanted(f"results/{target}")
    with pytest.raises(ConfigurationError, match="did you mean"):
        wanted("results/runs/scan_jmp/lstm_attention/none/lambda=0/seed=0/run.json")
    for target, name in (("figures/ablatoin.pdf", "figure"), ("tables/ablatoin.csv", "figure"), ("splits/scan_jmp", "task")):
        with pytest.raises(ConfigurationError, match=rf"unknown {name} .*did you mean"):
            wanted(f"results/{target}")
    with pytest.raises(ConfigurationError, match=r"write this run as scan_jump/lstm_attention/entropy/lambda=0\.3/seed=7"):
        wanted("results/runs/scan_jump/lstm_attention/entropy/lambda=0.30/seed=7/metrics.csv")


def test_each_run_has_the_targets_that_need_it_or_a_run_that_is_made_of_it():
    config = read("config.yaml", *STUDIES)
    config["archive"]["figures"] = ["ablation"]
    configuration = Configuration(config)
    runs = (run for figure in configuration.figures.values() for run in figure_runs(figure))
    run = next(run for run in runs if configuration.built_from(run.task)[1])
    found = targets.wanted_runs(configuration, [f"results/splits/{run.task}", f"results/runs/{run.path}/metrics.csv"])
    assert found == {run: {"runs"}} | {earlier: {"splits", "runs"} for earlier in configuration.built_from(run.task)[1]}
    found = targets.wanted_runs(configuration, ["results/archive.zip"])
    assert found == {run: {"ablation"} for run in figure_runs(configuration.figures["ablation"])}


def test_targets_are_the_results_among_the_words_of_snakemakes_command_line():
    words = ["-n", "./results/figures/a.pdf", "results//tables/b.csv", "all", "--configfile", "x.yaml", "results/splits/c/"]
    expected = ["results/figures/a.pdf", "results/tables/b.csv", "results/splits/c"]
    for program in ("/usr/bin/snakemake", "/venv/lib/site-packages/snakemake/__main__.py"):
        assert targets.targets([program, *words]) == expected
    # The arguments of another program are ignored.
    assert targets.targets(["snakemake", "all"]) == targets.targets(["study.py", "results/figures/a.pdf"]) == []
