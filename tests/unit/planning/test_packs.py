"""Packs: how runs are grouped, which packs stay together, and what the recipes of their jobs contain."""

from __future__ import annotations

import json
import re
import runpy
import sys

import pytest
from support.configurations import STUDIES, merged, read
from support.project import ROOT
from support.told import write_trained

from compositional.configuration.configuration import Configuration
from compositional.files import write_json
from compositional.planning import pack_sizes, packs
from compositional.planning.recipes import Recipes
from compositional.records import provenance
from compositional.records.places import record_of_run
from compositional.runs import Run, expand, run_folder


def runs(seeds, strengths, regularizer="entropy"):
    return {
        Run("scan_jump", "lstm_attention", regularizer, strength, seed): frozenset({"f"})
        for seed in seeds
        for strength in strengths
    }


def today(results, change=None):
    """Today's recipes for the shipped configuration with packs of at most four runs and, if given, a change."""
    config = merged(read("config.yaml", *STUDIES), change or {}) | {"pack_size": {"cpu": {"default": 4}, "cuda": {"default": 4}}}
    return Recipes(Configuration(config), results)


def planned(results, wanted, change=None):
    return packs.plan("train", wanted, today(results, change))


def members(planned):
    return [pack.runs for pack in planned]


def test_families_are_cut_evenly():
    cut = packs.cut(runs(range(3), [0.1, 1, 10]) | runs(range(2), [0.1], "smoothness"), lambda family: 4)
    assert [len(pack) for pack in cut] == [3, 3, 3, 2]
    assert {run for pack in cut[:3] for run in pack} == set(runs(range(3), [0.1, 1, 10]))
    assert all(len({run.family for run in pack}) == 1 for pack in cut)


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A function that shares out runs of a family, each of which takes so many seconds, and returns the sizes of their packs."""

    def sizes(number, seconds, cores, change=None, most=8):
        config = merged(read("config.yaml", *STUDIES), change or {}) | {
            "pack_size": {"cpu": {"default": most}, "cuda": {"default": most}}
        }
        recipes = Recipes(Configuration(config), tmp_path)
        monkeypatch.setattr(recipes.costs, "seconds", lambda stage, name: seconds)
        wanted = {Run("scan_jump", "lstm_attention", "entropy", 0.1, seed): frozenset({"f"}) for seed in range(number)}
        found = packs.shared_out("evaluate", wanted, recipes, cores)
        assert sorted(run for pack in found for run in pack) == sorted(wanted)
        return [len(pack) for pack in found]

    monkeypatch.setattr(pack_sizes, "GPU", ())
    return sizes


@pytest.mark.parametrize(
    ("number", "seconds", "cores", "expected"),
    [
        (8, 30, 1, [8]),
        (8, 30, 2, [4, 4]),
        (8, 30, 16, [1] * 8),  # a run is the least
        (24, 30, 2, [6, 6, 6, 6]),  # three packs of eight would leave a core idle for the time of eight runs
        (16, 30, 2, [8, 8]),
        (5, 1, 2, [3, 2]),
        (8, 0.25, 16, [4, 4]),  # packs that take less than a second save little
        (8, 0.1, 16, [8]),
        (8, None, 16, [8]),  # nothing like it was ever timed
        (8, 30, None, [8]),  # jobs run elsewhere
    ],
)
def test_packs_are_smaller_if_cores_would_be_idle(shared, number, seconds, cores, expected):
    assert shared(number, seconds, cores) == expected


def test_the_gain_of_smaller_packs_is_estimated_per_figure(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cores.py", "16", "interaction_ablation"])
    runpy.run_path(str(ROOT / "benchmarks" / "cores.py"), run_name="__main__")
    said = re.fullmatch(r"interaction_ablation: (\d+) -> (\d+) packs, (\d+) -> (\d+) s, [\d.]+ times\n", capsys.readouterr().out)
    usual, smaller, before, after = map(int, said.groups())
    assert usual < smaller
    assert before > 2 * after


def test_only_packs_of_a_known_cost_become_smaller(tmp_path, monkeypatch):
    recipes = today(tmp_path, {"device": "cpu"})
    monkeypatch.setattr(recipes.costs, "seconds", lambda stage, name: None if name.endswith("none") else 30.0)
    found = packs.shared_out("evaluate", runs(range(4), [0.0], "none") | runs(range(4), [0.1]), recipes, 4)
    assert [len(pack) for pack in found] == [1, 1, 1, 1, 4]


@pytest.mark.parametrize(
    ("device", "gpu", "expected"), [("auto", True, [8]), ("cuda", True, [8]), ("cpu", True, [4, 4]), ("auto", False, [4, 4])]
)
def test_packs_keep_their_sizes_on_a_gpu(shared, monkeypatch, tmp_path, device, gpu, expected):
    monkeypatch.setattr(pack_sizes, "GPU", (tmp_path,) if gpu else (tmp_path / "absent",))
    assert shared(8, 30, 2, {"device": device}) == expected


def test_runs_that_only_another_figure_needs_are_in_other_packs():
    (first, second) = runs([0], [0.1, 1])
    cut = packs.cut({first: frozenset({"f", "g"}), second: frozenset({"g"})}, lambda family: 9)
    assert cut == [[first], [second]]


def test_new_runs_make_new_packs_and_leave_complete_ones_alone(tmp_path):
    old = planned(tmp_path, runs([0, 1], [0.1, 1]))
    write_trained(tmp_path, old)
    wanted = runs([0, 1, 2], [0.1, 1, 10])
    new = planned(tmp_path, wanted)
    assert new[0] == old[0]
    assert {run for pack in new[1:] for run in pack.runs} == set(wanted) - set(old[0].runs)


def test_a_finished_run_stays_in_the_pack_in_which_it_was_made(tmp_path):
    old = planned(tmp_path, runs([0, 1], [0.1, 1]))
    write_trained(tmp_path, old)
    assert planned(tmp_path, runs([0], [0.1])) == old


@pytest.mark.parametrize("lose", ["run.json", "weights.safetensors"])
def test_a_run_that_is_made_again_does_not_retrain_runs_that_were_not_requested(tmp_path, lose):
    (old,) = planned(tmp_path, runs([0, 1], [0.1, 1]))
    write_trained(tmp_path, [old])
    (lost, *_) = old.runs
    (run_folder(tmp_path, lost) / lose).unlink()
    assert members(planned(tmp_path, {lost: frozenset({"f"})})) == [(lost,)]
    # If all runs are requested, they stay together, so the results of the pack do not change.
    assert members(planned(tmp_path, runs([0, 1], [0.1, 1]))) == [old.runs]
    # If some are requested, no job contains both up-to-date and outdated runs.
    some = {run: frozenset({"f"}) for run in old.runs[:3]}
    assert members(planned(tmp_path, some)) == [old.runs[1:3], (lost,)]


def test_after_a_change_only_the_requested_runs_are_trained_again(tmp_path):
    write_trained(tmp_path, planned(tmp_path, runs([0, 1], [0.1, 1])))
    one = runs([0], [0.1])
    longer = {"models": {"lstm_attention": {"training": {"steps": 7}}}}
    assert members(planned(tmp_path, one, longer)) == [tuple(one)]
    lines = packs.reasons("train", runs([0, 1], [0.1, 1]), today(tmp_path, longer))
    family = ("scan_jump", "lstm_attention", "entropy")
    assert lines == {family: ["made again: 4 runs of scan_jump/lstm_attention/entropy: steps 2000 -> 7"]}


def test_runs_that_are_no_longer_configured_are_in_no_pack(tmp_path):
    """Their task, model or regularizer may have been renamed or removed."""
    old = planned(tmp_path, runs([0, 1], [0.1, 1]))
    write_trained(tmp_path, old)
    for record in old[0].records:
        said = provenance.vouched(tmp_path / record)
        said["pack"] = [*said["pack"], "scan_jump/gone/entropy/lambda=1/seed=0"]
        provenance.write(tmp_path / record, said, said["recipe"], [])
    assert members(planned(tmp_path, runs([0], [0.1]))) == [tuple(runs([0], [0.1]))]


def test_the_recipe_file_of_a_job_contains_everything_it_needs(tmp_path):
    recipes = today(tmp_path)
    (pack,) = packs.plan("evaluate", runs([0], [0.1, 1]), recipes)
    write_json(tmp_path / f"{pack.name}.json", pack.content)
    other = packs.pack_of("train", list(pack.runs), recipes)
    write_json(tmp_path / f"{other.name}.json", other.content)
    write_json(tmp_path / "split_scan_jump__0123.json", {})
    (found,) = packs.read(tmp_path, ["snakemake", "--target-jobs", f"{pack.name}:", "--mode", "remote"])
    assert (found.name, found.runs, found.inputs, found.outputs) == (pack.name, pack.runs, pack.inputs, pack.outputs)
    assert packs.read(tmp_path, ["snakemake"]) == []
    assert (found.title, packs.counted(1, found.family)) == (
        "2 runs of scan_jump/lstm_attention/entropy",
        "1 run of scan_jump/lstm_attention/entropy",
    )
    assert packs.by_stage([found]) == {"train": [], "evaluate": [found], "represent": []}
    run = pack.runs[0]
    assert found.content["common"] | found.content["runs"][run.path] == recipes.recipe(record_of_run(run, "evaluation.json"))
    # Predictions are declared only if there are any; the record is written last.
    names = [path.rsplit("/", 1)[1] for path in pack.outputs]
    assert list(dict.fromkeys(names)) == ["metrics.csv", "predictions.csv", "evaluation.json"]
    assert json.loads((tmp_path / f"{pack.name}.json").read_text())["job"]["device"] == "auto"


def test_a_lambda_equals_the_one_in_its_path():
    """Otherwise a record that is read back would not name the runs of the grid."""
    grid = {"task": "a", "model": "b", "regularizers": {"c": [10**-0.5]}, "seeds": [0]}
    (_, run) = expand(grid)
    assert Run.parse(run.path) == run
    assert run.strength == 0.316227766017


def test_representations_are_measured_only_if_a_figure_or_a_target_needs_them(tmp_path):
    plain, shown, asked = runs([0, 1, 2], [0.1])
    wanted = {plain: frozenset({"curves"}), shown: frozenset({"curves", "vectors"}), asked: frozenset({"runs"})}
    figures = {"curves": {"sources": ["history.csv"]}, "vectors": {"sources": ["metrics.csv", "vectors.csv"]}}
    assert packs.needed("represent", wanted, figures) == {shown: wanted[shown], asked: wanted[asked]}
    assert packs.needed("evaluate", wanted, figures) == packs.needed("train", wanted, figures) == wanted
