"""The plan that Snakemake receives for a call: what must be made, why, and what its jobs must do."""

from __future__ import annotations

import json
import shutil

import pytest
from support.configurations import STUDIES, merged, read
from support.told import write_trained

from compositional import files
from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning.plan import Plan
from compositional.records import provenance
from compositional.records.places import recipe_in

GRID = {"task": "digits_concat", "model": "cnn", "regularizers": {}, "seeds": [0, 1, 2]}
TABLE = "results/tables/ablation.csv"
RUNS = [f"results/runs/digits_concat/cnn/none/lambda=0/seed={seed}/run.json" for seed in (0, 1, 2)]


def plan(results, *words, change=None):
    """The plan for a figure of three runs in packs of two."""
    figures = {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID]}}}}}
    sizes = {"pack_size": {"cpu": {"default": 2}, "cuda": {"default": 2}}}
    config = merged(read("config.yaml", *STUDIES), figures, sizes, change or {})
    return Plan(Configuration(config), ["/bin/snakemake", *words], results)


@pytest.fixture
def trained(tmp_path):
    """The folder in which the three runs were trained as planned."""
    write_trained(tmp_path, plan(tmp_path, TABLE).packs["train"])
    return tmp_path


def due(plan, stage="train"):
    return [plan.due(pack) for pack in plan.packs[stage]]


def test_results_that_are_up_to_date_or_missing_are_not_forced(tmp_path, trained):
    assert due(plan(trained, TABLE)) == [([], False, []), ([], False, [])]
    assert due(plan(tmp_path / "elsewhere", TABLE)) == [([], True, []), ([], True, [])]
    # Of a pack with one run left, the times of inputs could still decide something.
    shutil.rmtree((trained / RUNS[0].removeprefix("results/")).parent)
    partly = plan(trained, TABLE)
    assert due(partly) == [([], False, []), ([], False, [])]
    assert partly.needed == {partly.packs["train"][0].name}


def test_outdated_results_are_forced_with_one_line_for_all_packs_of_a_family(trained):
    longer = {"tasks": {"digits_concat": {"training": {"steps": 7}}}}
    (first, plain, reasons), (second, _, silence) = due(plan(trained, TABLE, change=longer))
    assert sorted(first + second) == RUNS
    assert len(reasons) == 1
    assert reasons[0].startswith("made again: 3 runs of digits_concat/cnn/none: steps ")
    assert reasons[0].endswith(" -> 7")
    assert silence == []
    assert plain
    # A single run is made without its neighbors.
    assert [forced for forced, *_ in due(plan(trained, RUNS[0], change=longer))] == [[RUNS[0]]]


def test_the_plan_states_why_a_table_is_made_again(trained):
    asked = plan(trained, TABLE)
    job = asked.recipes.table("ablation")
    assert asked.due(job) == ([], True, [])
    (trained / "tables").mkdir()
    (trained / "tables/ablation.csv").write_text("of nobody knows what")
    asked = plan(trained, TABLE)
    assert asked.due(job) == (
        [TABLE.replace(".csv", provenance.SUFFIX)],
        True,
        ["made again: table ablation: no valid record belongs to the existing files"],
    )


def test_a_table_of_outdated_runs_that_the_call_does_not_request_is_refused(trained):
    """Snakemake makes everything if the only target follows -R."""
    asked = plan(trained, "-R", "plot", "results/figures/ablation.pdf")
    asked.due(asked.recipes.table("ablation"))
    other = next(name for name in asked.recipes.figures if name != "ablation")
    with pytest.raises(ValueError, match=f"also make the table {other}, although it names only results/figures/ablation.pdf"):
        asked.due(asked.recipes.table(other))


def test_the_start_of_a_build_writes_the_recipes_of_its_jobs(trained):
    (trained / "runs/digits_concat/cnn/none/lambda=0/seed=2/run.json").write_text("damaged")
    asked = plan(trained, TABLE)
    table = asked.recipes.table("ablation")
    for job in (*asked.packs["train"], table):
        asked.due(job)
    (lost,) = [pack for pack in asked.packs["train"] if pack.runs[0].seed == 2]
    assert asked.needed == {lost.name, table.name}
    asked.begin()
    written = {path.stem: json.loads(path.read_text()) for path in (trained / "recipes").glob("*.json")}
    assert written == json.loads(files.json_bytes({job.name: job.content for job in (*asked.packs["train"], table)}))
    path = trained / "recipes" / f"{table.name}.json"
    path.write_text(path.read_text().replace("ablation", "comparison"))
    with pytest.raises(ValueError, match=f"{path.name} was altered or damaged. Call the same command again"):
        recipe_in(path)
    asked.begin()
    assert recipe_in(path) == written[table.name]


def test_a_list_of_targets_has_no_rules_named_by_digests(tmp_path):
    asked = plan(tmp_path, "--list-target-rules")
    assert asked.rules == {"train": [], "evaluate": [], "represent": []}
    assert asked.packs["train"]
    assert plan(tmp_path, TABLE).rules["train"]


def test_a_store_in_a_home_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^~nobody_has_this_name/store: there is no home folder"):
        plan(tmp_path, TABLE, change={"store": "~nobody_has_this_name/store"})


def test_a_pack_asks_for_no_gpu_where_it_computes_on_the_cpu(tmp_path):
    on = {device: plan(tmp_path, TABLE, change={"device": device}).packs["train"][0].resources for device in ("cpu", "auto")}
    assert on == {"cpu": {"gpu": 0, "gpu_model": "", "gres": ""}, "auto": {}}


@pytest.mark.parametrize("figure", ["learning_curves", "same_class_samples"])
def test_the_recipe_of_a_report_is_fixed_when_it_is_planned_and_counts_the_figures_of_the_same_call(tmp_path, figure):
    """Snakemake asks for it again when the job starts, and then other figures may be there; one of the two needs no runs."""
    asked = plan(tmp_path, "results/report.html", f"results/figures/{figure}.pdf")
    planned = asked.archived.report
    assert f"results/figures/{figure}.pdf" in planned.inputs
    drawn = tmp_path / f"figures/{figure}.provenance.json"
    drawn.parent.mkdir()
    drawn.write_text("{}")
    assert asked.archived.report.name == planned.name
    assert plan(tmp_path, "results/report.html").archived.report.name == planned.name
    assert plan(tmp_path / "elsewhere", "results/report.html").archived.report.name != planned.name


def test_an_archive_of_no_figure_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^archive\.figures: \[\] names no figure"):
        _ = plan(tmp_path, "results/archive.zip", change={"archive": {"figures": []}}).archived.archive


def test_the_recipe_of_a_manifest_is_fixed_when_it_is_planned(tmp_path, monkeypatch):
    known = plan(tmp_path, "results/manifest.json")
    planned = known.archived.manifest.name
    monkeypatch.setattr("compositional.planning.archived.digest_of_sources", lambda: "a note was written")
    assert known.archived.manifest.name == planned
    assert plan(tmp_path, "results/manifest.json").archived.manifest.name != planned
