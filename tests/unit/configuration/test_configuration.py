"""Checks of a complete configuration, and of runs that are requested by their path."""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict
from pathlib import Path

import pytest
import yaml
from snakemake.profiles import ProfileConfigFileParser
from support.configurations import PAPER, ROOT, STUDIES, merged, read, refusal

from compositional.configuration.configuration import Configuration, ConfigurationError, configuration
from compositional.runs import Run, figure_runs


@pytest.mark.parametrize("overlay", [[], ["gpu.yaml"], *([name] for name in PAPER)])
def test_shipped_configurations_are_valid(overlay):
    figures = Configuration(read("config.yaml", *STUDIES, *overlay)).figures
    assert all(figure_runs(figure) or figure["sources"] == ["split"] for figure in figures.values())


@pytest.mark.parametrize("overlay", PAPER)
def test_a_studys_overlay_has_the_same_figures_alone_and_with_all_other_overlays(overlay):
    """Otherwise a call with another overlay would make the runs again."""
    alone, together = (Configuration(read("config.yaml", *STUDIES, *names)) for names in ([overlay], PAPER))
    figures = [name for study in read(overlay)["studies"].values() for name in study["figures"]]
    assert [alone.figures[name] for name in figures] == [together.figures[name] for name in figures]
    families = {run.family for name in figures for run in figure_runs(alone.figures[name])}
    for family in families:
        assert alone.family_parameters(family) == together.family_parameters(family)
        assert alone.split_parameters(family[0]) == together.split_parameters(family[0])
    assert alone.config["device"] == "cuda"
    sizes = [{task: one.config["pack_size"].get(task) for task, *_ in families} for one in (alone, together)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("overlay", PAPER)
def test_an_entry_that_names_its_module_in_an_overlay_keeps_no_option_of_laptop_scale(overlay):
    laptop = read("config.yaml", *STUDIES)
    for section in ("tasks", "models"):
        for name, entry in read(overlay).get(section, {}).items():
            if "module" in entry:
                assert set(laptop[section].get(name, {})) <= set(entry), f"{section}.{name}"


def test_the_overlay_for_a_gpu_changes_where_runs_train_and_how_many_together_and_nothing_else():
    here, there = (Configuration(read("config.yaml", *STUDIES, *names)) for names in ([], ["gpu.yaml"]))
    assert here.figures == there.figures
    for family in {run.family for figure in here.figures.values() for run in figure_runs(figure)}:
        on_cpu, on_gpu = here.family_parameters(family), there.family_parameters(family)
        on_gpu["settings"] |= {"cuda_width": on_cpu["settings"]["cuda_width"]}
        assert on_cpu == on_gpu
    assert there.config["device"] == "cuda"


def test_the_overlay_for_a_gpu_computes_as_many_runs_together_as_figures_have_seeds():
    configuration = Configuration(read("config.yaml", *STUDIES, "gpu.yaml"))
    seeds: dict[str, int] = {}
    for figure in configuration.figures.values():
        for (family, _), count in Counter((run.family, run.strength) for run in figure_runs(figure)).items():
            seeds[family[1]] = max(count, seeds.get(family[1], 0))
    widths = {name: options["training"]["cuda_width"] for name, options in read("gpu.yaml")["models"].items()}
    assert widths == {name: seeds[name] for name in widths}


@pytest.mark.parametrize("profile", ["slurm", "local-gpu"])
def test_profiles_name_every_overlay_wherever_snakemake_is_called(profile, tmp_path, monkeypatch):
    def overlays(path: Path) -> list[str]:
        with path.open() as stream:
            return ProfileConfigFileParser().parse(stream)["configfile"]

    own, copied = ROOT / profile / "config.v9+.yaml", tmp_path / "config.yaml"
    copied.write_bytes(own.read_bytes())
    monkeypatch.chdir(ROOT)
    assert overlays(own.relative_to(ROOT)) == overlays(copied) == [f"config/{name}" for name in PAPER]
    monkeypatch.chdir(tmp_path)
    assert overlays(Path(os.path.relpath(own))) == [os.path.relpath(ROOT / "config" / name) for name in PAPER]


def test_pack_sizes_name_known_tasks():
    message = refusal(["pack_size", "cuda"], {"default": 4, "scan_jmp": 8})
    assert "pack_size.cuda: unknown task 'scan_jmp'; did you mean 'scan_jump'?" in message


@pytest.mark.parametrize(("device", "expected"), [("cpu", (30, 8)), ("auto", (30, 8)), ("cuda", (64, 64))])
def test_pack_sizes_depend_on_the_configured_device(config, device, expected):
    """The plan for `auto` is the same with and without a GPU."""
    given = {"cpu": {"default": 30, "scan_jump": 8}, "cuda": {"default": 64}}
    sizes = Configuration(config | {"device": device, "pack_size": given}).config["pack_size"]
    assert (sizes["default"], sizes.get("scan_jump", sizes["default"])) == expected


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run("scan_jump", "cnn", "none", 0, 0), "is for image tasks"),
        (
            Run("scan_jump", "lstm_attention", "entropy", 0, 0),
            "; ask for none/lambda=0, or for a regularizer with a lambda above 0",
        ),
        (Run("scan_jump", "lstm_attention", "none", 1, 0), "if and only if"),
        (Run("scan_jum", "lstm_attention", "none", 0, 0), "did you mean 'scan_jump'"),
    ],
)
def test_runs_requested_by_path_are_checked(run, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Configuration(read("config.yaml", *STUDIES)).check_run(run)


@pytest.mark.parametrize("overlay", [[], PAPER])
def test_a_portable_configuration_laid_over_the_shipped_one_stays_the_same(overlay):
    """As in an archive, where it is the overlay of a rebuild."""
    asked = Configuration(read("config.yaml", *STUDIES, *overlay))
    again = Configuration(merged(read("config.yaml", *STUDIES), json.loads(json.dumps(asked.portable))))
    assert again.config == asked.config | {"mirror": None}


def test_a_configuration_from_json_has_plain_dictionaries_like_one_from_yaml():
    asked = read("config.yaml", *STUDIES)
    ordered = json.loads(json.dumps(asked), object_pairs_hook=OrderedDict)
    found = Configuration(ordered)
    assert yaml.safe_load(yaml.safe_dump(found.portable)) == Configuration(asked).portable
    assert type(found.figures["ablation"]["grids"][0]) is dict


GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["tasks", "mine\n"], {"module": "scan_jump"}, r"tasks: 'mine\n' does not match"),
        (["models", "mine\n"], {"module": "cnn"}, r"models: 'mine\n' does not match"),
        (["tasks", "raven"], {"target": "constant_color\n"}, r"tasks.raven.target: 'constant_color\n' does not match"),
        ([*GRID, 0, "seeds"], 10**9, "1000000000 is greater than the maximum of 100000"),
        ([*GRID, 0, "seeds"], [2**40], "1099511627776 is greater than the maximum of 4294967295"),
        (["tasks", "raven"], {"series": {"puzzle_seed": 10**8}}, "100000000 is greater than the maximum of 1000"),
        (
            ["tasks", "raven"],
            {"series": dict.fromkeys(("puzzle_seed", "loop", "generation"), 1000)},
            "these are 1000000000 tasks",
        ),
        (
            [*GRID, 0],
            {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [*range(1, 11)]}, "seeds": 100_000},
            "ablation.grids.0: these are 1100000 runs, must be at most 1000000",
        ),
        ([*GRID, 0, "regularizers"], {"entropy": [1e39]}, "lambda 1e+39 is inf in single precision, in which training computes"),
        ([*GRID, 0, "regularizers"], {"entropy": [1e-46]}, "lambda 1e-46 is 0 in single precision"),
    ],
)
def test_values_that_no_run_can_have_are_refused(path, value, reason):
    assert reason in refusal(path, value)


@pytest.mark.parametrize(("strength", "single"), [("1e+39", "inf"), ("1e-46", "0"), ("1e+300", "inf")])
def test_lambdas_requested_by_path_must_fit_single_precision(strength, single):
    run = Run.parse(f"digits_concat/cnn/entropy/lambda={strength}/seed=0")
    with pytest.raises(ConfigurationError, match=f"is {single} in single precision"):
        Configuration(read("config.yaml", *STUDIES)).check_run(run)


def test_a_problem_is_named_with_its_file(tmp_path):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text("tasks: {scan_jump: {deduplicat: true}}")
    with pytest.raises(ConfigurationError, match=rf"{overlay.name}: tasks.scan_jump: unknown key 'deduplicat'"):
        configuration(overlay)
