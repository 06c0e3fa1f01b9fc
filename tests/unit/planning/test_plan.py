"""Packs: their size, what they are kept by, and which runs a command line asks for."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
import yaml
from support.configurations import SCHEMA, STUDIES, read

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.files import write_json
from compositional.planning import plan
from compositional.runs import Run, expand, figure_runs, run_folder


def runs(seeds, strengths, regularizer="entropy"):
    return {
        Run("scan_jump", "lstm_attention", regularizer, strength, seed): frozenset({"f"})
        for seed in seeds
        for strength in strengths
    }


def configured(change=None):
    """The shipped configuration with packs of at most four runs, and a change."""
    config = read("config.yaml", *STUDIES) | {"pack_size": {"default": 4}}
    for section, entries in (change or {}).items():
        config[section] = config[section] | entries
    return Configuration(config, SCHEMA)


def numerics(family):
    return f"code of {family[1]}"


def make(folder, wanted, configuration, code=numerics, others=False):
    """All packs of a plan, and those that are to be trained."""
    return plan.make(plan.read(folder / "plan.json"), str(folder), wanted, configuration, code, others)


def build(results, packs, configuration):
    for pack in packs:
        record = {"family": configuration.family_parameters(pack.family), "code": numerics(pack.family)}
        for run in pack.runs:
            run_folder(results, run).mkdir(parents=True)
            write_json(run_folder(results, run) / "run.json", record)


def test_families_are_cut_evenly():
    packs = plan.cut(runs(range(3), [0.1, 1, 10]) | runs(range(2), [0.1], "smoothness"), {"default": 4})
    assert [len(pack.runs) for pack in packs] == [3, 3, 3, 2]
    assert {run for pack in packs[:3] for run in pack.runs} == set(runs(range(3), [0.1, 1, 10]))
    assert all(len({run.family for run in pack.runs}) == 1 for pack in packs)
    assert len({pack.name for pack in packs}) == 4


def test_runs_that_only_another_figure_needs_are_in_other_packs():
    wanted = runs([0], [0.1, 1])
    (first, second) = wanted
    packs = plan.cut({first: frozenset({"f", "g"}), second: frozenset({"g"})}, {"default": 9})
    assert [pack.runs for pack in packs] == [(first,), (second,)]


def test_new_runs_make_new_packs_and_leave_complete_ones_alone(tmp_path):
    old, pending = make(tmp_path, runs([0, 1], [0.1, 1]), configured())
    assert pending == old
    plan.write(tmp_path / "plan.json", old)
    build(tmp_path, old, configured())
    new, pending = make(tmp_path, runs([0, 1, 2], [0.1, 1, 10]), configured())
    assert new[0] == old[0]
    assert pending == new[1:]
    assert {run for pack in pending for run in pack.runs} == set(runs([0, 1, 2], [0.1, 1, 10])) - set(old[0].runs)
    assert list(plan.work(dict.fromkeys(pending, 7)).values()) == [
        {"family": "scan_jump/lstm_attention/entropy", "runs": len(pack.runs), "steps": 7 * len(pack.runs)} for pack in pending
    ]


def test_after_a_change_only_the_runs_that_are_asked_for_are_trained_again(tmp_path):
    before, _ = make(tmp_path, runs([0, 1], [0.1, 1]), configured())
    plan.write(tmp_path / "plan.json", before)
    build(tmp_path, before, configured())
    one = runs([0], [0.1])
    assert make(tmp_path, one, configured()) == (before, [])
    longer = configured({"models": {"lstm_attention": {"training": {"steps": 7}}}})
    for packs, pending in (make(tmp_path, one, longer), make(tmp_path, one, configured(), lambda family: "other code")):
        assert packs == pending
        assert [pack.runs for pack in packs] == [tuple(one)]


def test_incomplete_packs_are_planned_anew(tmp_path):
    plan.write(tmp_path / "plan.json", make(tmp_path, runs([0, 1], [0.1, 1]), configured())[0])
    ((single,), _) = make(tmp_path, runs([0], [0.1]), configured())
    assert len(single.runs) == 1


def test_runs_that_are_no_longer_configured_are_not_planned(tmp_path):
    variant = {"models": {"lstm_attention_tall": {"module": "lstm_attention"}}}
    run = Run("scan_jump", "lstm_attention_tall", "none", 0.0, 0)
    before, _ = make(tmp_path, {run: frozenset({"runs"})}, configured(variant))
    plan.write(tmp_path / "plan.json", before)
    build(tmp_path, before, configured(variant))
    assert make(tmp_path, {}, configured(variant)) == (before, [])
    assert make(tmp_path, {}, configured()) == ([], [])


def test_an_unreadable_plan_is_no_plan(tmp_path):
    for text in ('[["nonsense"]]', "[1]", "[[1]]", "null", "[[]]", '[""]', "{", '["a"]'):
        (tmp_path / "plan.json").write_text(text)
        assert plan.read(tmp_path / "plan.json") == [], text


def test_the_command_line_says_which_runs_are_wanted():
    configuration = Configuration(read("config.yaml", *STUDIES), SCHEMA)
    ablation = set(figure_runs(configuration.figures["ablation"]))
    everything = {run for figure in configuration.figures.values() for run in figure_runs(figure)}

    def wanted(*arguments):
        return set(plan.wanted_runs(configuration, "results", arguments))

    assert wanted("results/figures/ablation.pdf") == wanted("results/tables/ablation.csv") == ablation
    # A rule, or a file elsewhere, may need any run.
    assert wanted() == wanted("all") == wanted("all", "results/figures/ablation.pdf") == everything
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
        for slash in ("", "/"):
            with pytest.raises(ConfigurationError, match=f"ask for a file, such as results/{target}{file}$"):
                wanted(f"results/{target}{slash}")
    with pytest.raises(ConfigurationError, match="did you mean"):
        wanted("results/runs/scan_jmp/lstm_attention/none/lambda=0/seed=0/run.json")
    for target, name in (("figures/ablatoin.pdf", "figure"), ("tables/ablatoin.csv", "figure"), ("splits/scan_jmp", "task")):
        with pytest.raises(ConfigurationError, match=rf"unknown {name} .*did you mean"):
            wanted(f"results/{target}")
    with pytest.raises(ConfigurationError, match=r"write this run as scan_jump/lstm_attention/entropy/lambda=0\.3/seed=7"):
        wanted("results/runs/scan_jump/lstm_attention/entropy/lambda=0.30/seed=7/metrics.csv")


def test_plan_files_hold_no_code(tmp_path):
    packs = plan.cut(runs([0], [1]), {"default": 4})
    plan.write(tmp_path / "plan.json", packs)
    assert plan.read(tmp_path / "plan.json") == packs
    assert yaml.safe_load((tmp_path / "plan.json").read_text()) == [["scan_jump/lstm_attention/entropy/lambda=1/seed=0"]]


def test_a_plan_of_another_call_is_added_to(tmp_path):
    """A lock is there: what the other call's jobs read in the plan stays, whether it is done or not."""
    theirs, _ = make(tmp_path, runs([0, 1], [1]), configured())
    plan.write(tmp_path / "plan.json", theirs)
    packs, pending = make(tmp_path, runs([1, 2], [1, 3]), configured(), others=True)
    assert packs[: len(theirs)] == theirs
    planned = [run for pack in packs for run in pack.runs]
    assert len(planned) == len(set(planned)) == 5
    assert set(pending) == set(packs)
    gone = plan.cut({Run("scan_jump", "lstm_attention", "gone", 1.0, 0): frozenset()}, {"default": 1})
    plan.write(tmp_path / "plan.json", gone)
    assert make(tmp_path, {}, configured(), others=True) == ([], [])
    plan.write(tmp_path / "plan.json", packs, beside=[*theirs, *gone])
    assert plan.read(tmp_path / "plan.json") == packs + gone  # each run once


def test_what_other_options_or_code_made_is_found_without_snakemake(tmp_path):
    results, metadata = tmp_path / "results", tmp_path / "metadata"
    wanted = runs([0], [1, 3])

    def today(change=None, code=numerics):
        return plan.today(results, ["scan_jump"], wanted, ["ablation"], configured(change), code)

    def outdated(*made_by):
        return sorted(path.relative_to(results).as_posix() for path in plan.outdated(today(*made_by), metadata))

    assert outdated() == []  # nothing was made
    for path, said in today().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, said | ({"inputs": dict.fromkeys(sorted(said["inputs"]), "digest")} if "inputs" in said else {}))
    assert outdated() == []
    records = [f"runs/scan_jump/lstm_attention/entropy/lambda={strength}/seed=0/run.json" for strength in (1, 3)]
    steps = {"tasks": {"scan_jump": {"training": {"steps": 7}}}}
    assert outdated(steps) == outdated(None, lambda family: "other") == records
    assert outdated({"tasks": {"scan_jump": {"virtual_words": 6}}}) == [*records, "splits/scan_jump.provenance.json"]
    # Of another figure that was called so: the table of other runs, and how it is drawn.
    figure = {
        "module": "tradeoff",
        "grids": [{"task": "scan_jump", "model": "transformer", "regularizers": {"entropy": [1]}, "seeds": 1}],
    }
    renamed = {"studies": {"compositional_regularization": {"figures": {"ablation": figure}}}}
    assert outdated(renamed) == ["figures/ablation.provenance.json", "tables/ablation.provenance.json"]
    # Snakemake compares the inputs of what it knows, and sees another figure in another one's options.
    for kind, said in (("figures", today()[results / "figures/ablation.provenance.json"]), ("tables", {"code": "c"})):
        known = metadata / urlsafe_b64encode(str(results / kind / "ablation.provenance.json").encode()).decode()
        write_json(known, {"params": [repr(value) for value in said.values()]})
    assert outdated(renamed) == []
    # What Snakemake made with other parameters, it makes again itself; not so if it does not know of it.
    made = results / records[0]
    known = metadata / urlsafe_b64encode(str(made).encode()).decode()
    write_json(known, {"params": [repr(value) for value in today()[made].values()]})
    assert outdated(steps) == records[1:]
    write_json(known, {"params": [repr(value) for value in today(steps)[made].values()]})
    assert outdated(steps) == records
    made.unlink()
    assert outdated(steps) == records[1:]


def test_code_that_evaluates_or_draws_counts_without_snakemake(tmp_path, monkeypatch):
    wanted = runs([0], [1])
    expected = plan.today(tmp_path, [], wanted, ["ablation"], configured(), numerics)
    for path, said in expected.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, said | ({"inputs": dict.fromkeys(said["inputs"], "digest")} if "inputs" in said else {}))
    monkeypatch.setattr(plan, "of_script", lambda script, modules: "edited")
    edited = plan.outdated(plan.today(tmp_path, [], wanted, ["ablation"], configured(), numerics), tmp_path)
    assert edited == [path for path in expected if path.name != "run.json"]
    assert len(edited) == 4


def test_a_lambda_is_that_of_its_path():
    """So that a plan that was read back names the runs of the grid."""
    grid = {"task": "a", "model": "b", "regularizers": {"c": [10**-0.5]}, "seeds": [0]}
    (_, run) = expand(grid)
    assert Run.parse(run.path) == run
    assert run.strength == 0.316227766017
