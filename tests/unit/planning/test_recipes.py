"""Recipes: what they contain, how they differ, and which results are outdated according to their records."""

from __future__ import annotations

import json
import os
from importlib import import_module

import pytest
from support import small
from support.configurations import STUDIES, merged, read

from compositional import files
from compositional.configuration.configuration import Configuration
from compositional.kinds.sequence import SequenceSplit
from compositional.planning import recipes as module
from compositional.planning.recipes import Recipes, difference
from compositional.records import provenance
from compositional.records.order import in_order
from compositional.records.places import record_of, record_of_run
from compositional.runs import Run, run_folder

RUN = Run("digits_concat", "cnn", "none", 0.0, 0)
SPLIT, TRAINED = record_of("splits", RUN.task), record_of_run(RUN, "run.json")
EVALUATED, TABLE, FIGURE = (
    record_of_run(RUN, "evaluation.json"),
    record_of("tables", "ablation"),
    record_of("figures", "ablation"),
)
CHAIN = [SPLIT, TRAINED, EVALUATED, TABLE, FIGURE]
GRID = {"task": RUN.task, "model": RUN.model, "regularizers": {}, "seeds": [0]}


@pytest.fixture
def built(tmp_path):
    """All results for a figure of one run, written like jobs write them; and a function that returns today's recipes."""

    def today(change=None):
        figures = {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [GRID]}}}}}
        return Recipes(Configuration(merged(read("config.yaml", *STUDIES), figures, change or {})), tmp_path)

    recipes = today()
    of_run = {"data": "content", "device": "cpu", "run": RUN.path}
    weights, metrics = (str(run_folder("", RUN) / name) for name in ("weights.safetensors", "metrics.csv"))
    inputs = {SPLIT: [], TRAINED: [], EVALUATED: [weights], TABLE: [metrics], FIGURE: ["tables/ablation.csv"]}
    for record in CHAIN:
        made = [tmp_path / name for name in recipes.made(record)]
        for path in [path / "task.json" if record == SPLIT else path for path in made]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
        said = {"inputs": provenance.digests(tmp_path, [tmp_path / name for name in inputs[record]])}
        if record == SPLIT:
            said["content_sha256"] = "content"
        elif record == TRAINED:
            said |= of_run
            said["inputs"][f"splits/{RUN.task}"] = "content"
        provenance.write(tmp_path / record, said, recipes.recipe(record), made)
    return tmp_path, today


def outdated(recipes):
    return {record: why for record in CHAIN if (why := recipes.outdated(record)) is not None}


def test_results_with_todays_recipes_are_up_to_date_whatever_their_times(built):
    folder, today = built
    assert outdated(today()) == {}
    for record in reversed(CHAIN):
        os.utime(folder / record, (1, 1))
    assert outdated(today()) == {}


@pytest.mark.parametrize(
    ("change", "first", "reason"),
    [
        ({"tasks": {"digits_concat": {"test_pairs": 7}}}, SPLIT, "test_pairs 4000 -> 7"),
        ({"tasks": {"digits_concat": {"training": {"learning_rate": 0.25}}}}, TRAINED, "learning_rate 0.001 -> 0.25"),
        ({"device": "cuda"}, TRAINED, "device cpu -> cuda"),
        ({"pack_size": {"cpu": {"default": 1}}, "checkpoint_seconds": 7, "mirror": "/elsewhere"}, None, None),
    ],
)
def test_a_changed_option_outdates_everything_that_depends_on_it_and_nothing_else(built, change, first, reason):
    _, today = built
    affected = CHAIN[CHAIN.index(first) :] if first else []
    found = outdated(today(change))
    assert list(found) == affected
    assert list(found.values())[:1] == ([reason] if first else [])
    assert not any(list(found.values())[1:])  # only the first result has a reason of its own


@pytest.mark.parametrize("record", [SPLIT, TRAINED, EVALUATED, TABLE, FIGURE])
def test_the_content_of_a_file_newer_than_its_record_is_checked(built, record):
    folder, today = built
    path = folder / today().made(record)[0]
    path = path / "task.json" if record == SPLIT else path
    later = (folder / record).stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    assert outdated(today()) == {}  # touched
    path.write_text("damaged")
    os.utime(path, ns=(later, later))
    found = outdated(today())
    assert list(found) == CHAIN[CHAIN.index(record) :]
    assert "was altered or damaged after it was made" in found[record]


@pytest.mark.parametrize("record", CHAIN)
def test_a_file_that_a_power_cut_left_empty_is_noticed_although_it_is_older_than_its_record(built, record):
    folder, today = built
    path, written = folder / today().made(record)[-1], (folder / record).stat().st_mtime_ns
    path = path / "task.json" if record == SPLIT else path
    path.write_text("")
    os.utime(path, (1, 1))
    os.utime(folder / record, ns=(written, written))  # the file's status must not be newer, either
    found = outdated(today())
    assert list(found) == CHAIN[CHAIN.index(record) :]
    assert f"{path.name} was altered or damaged after it was made" in found[record]


@pytest.mark.parametrize("record", CHAIN)
@pytest.mark.parametrize("text", ["{", "[]", '{"files": null}', None])
def test_a_record_whose_digest_of_itself_is_wrong_counts_as_missing(built, record, text):
    folder, today = built
    edited = (folder / record).read_text().replace('"recipe_digest"', '"x": 1, "recipe_digest"')
    (folder / record).write_text(text or edited)
    found = outdated(today())
    assert list(found) == CHAIN[CHAIN.index(record) :]
    assert found[record] == "no valid record belongs to the existing files"


def test_missing_results_are_left_to_snakemake(built):
    folder, today = built
    for record in (SPLIT, TRAINED, EVALUATED):
        for name in [record, *today().made(record)]:
            path = folder / name
            (path / "task.json" if path.is_dir() else path).unlink()
    (folder / "splits/digits_concat").rmdir()
    assert outdated(today()) == {}


def test_records_must_agree(built):
    """A result can be made again by the same recipe and still differ, for example on another device."""
    folder, today = built
    weights = run_folder(folder, RUN) / "weights.safetensors"
    weights.write_text("trained elsewhere")
    record = provenance.vouched(folder / TRAINED)
    made = [weights.with_name(name) for name in record["files"]]
    provenance.write(folder / TRAINED, record, record["recipe"], made)
    found = outdated(today())
    assert list(found) == [EVALUATED, TABLE, FIGURE]
    assert found[EVALUATED].endswith("weights.safetensors changed after it was used")
    record = provenance.vouched(folder / SPLIT)
    provenance.write(folder / SPLIT, record | {"content_sha256": "other"}, record["recipe"], [folder / "splits/digits_concat"])
    assert list(outdated(today())) == [TRAINED, EVALUATED, TABLE, FIGURE]


def test_changed_code_outdates_the_results_of_its_stage_and_all_later_ones(built, monkeypatch):
    _, today = built
    code = module.code
    for stage, first in (("stages.split", SPLIT), ("training.loop", TRAINED), ("stages.train", TRAINED), ("stages.plot", FIGURE)):

        def edited(*modules, stage=stage):
            return code(*modules) | ({"fingerprint": "edited"} if modules[0] == stage else {})

        monkeypatch.setattr(module, "code", edited)
        found = outdated(today())
        assert list(found) == CHAIN[CHAIN.index(first) :]
        assert found[first] == ("the code that writes it" if stage == "stages.train" else "its code")

    def upgraded(*modules):
        known = code(*modules)
        return known | {"libraries": known["libraries"] | ({"torch": "99"} if "torch" in known["libraries"] else {})}

    monkeypatch.setattr(module, "code", upgraded)
    assert next(iter(outdated(today()).values())).startswith('torch "')


def test_a_recipe_contains_the_code_of_each_plug_in_that_makes_its_result(tmp_path):
    recipes = Recipes(Configuration(read("config.yaml", *STUDIES)), tmp_path)
    network = {"kinds.image", "models.cnn", "regularizers.additivity"}
    training = {"training.loop", "training.reading", "evaluation.learning_curves", "stages.shared.devices"}
    run = Run("digits_concat", "cnn", "additivity", 0.1, 0)
    expected = {
        SPLIT: {"tasks.digits_concat"},
        record_of_run(run, "run.json"): network | training,
        record_of_run(run, "evaluation.json"): network,
        record_of_run(run, "representation.json"): network,
        record_of("tables", "metrics"): {"tables.activations"},
        record_of("tables", "same_class_samples"): {"tables.examples", "kinds.image"},
        record_of("figures", "metrics"): {"figures.metrics"},
    }
    for record, modules in expected.items():
        assert modules <= set(recipes.recipe(record)["code"]["modules"]), record


def test_differences_are_named():
    old = {"settings": {"steps": 4, "clip": None}, "code": {"fingerprint": "a", "libraries": {"torch": "1"}}, "of": {"x": "1"}}
    new = json.loads(json.dumps(old))
    assert difference(old, new) == ""
    new["of"] = {"x": "2"}
    assert difference(old, new) == ""
    new["settings"] |= {"steps": 8, "decay": 0.5}
    new["code"] = {"fingerprint": "b", "libraries": {"torch": "2"}}
    assert difference(old, new) == 'steps 4 -> 8, its code, torch "1" -> "2", decay not set -> 0.5'
    assert difference(old | {"of": {"x": "1", "y": "2"}}, old) == "1 input removed"
    runs = {f"runs/t/m/r/lambda=1/seed={seed}/{name}.json": "1" for seed in (0, 1) for name in ("run", "evaluation")}
    assert difference(old, old | {"of": old["of"] | runs}) == "2 runs added"


def test_differences_of_options_are_named_with_the_option_that_they_are_in():
    old = {"options": {"style": {}, "labels": {"a": "A"}}, "order": [["style", None], ["labels", ["a"]]], "of": {}}
    new = {"options": {"style": {"width": 5}, "labels": {}}, "order": [["style", ["width"]], ["labels", None]], "of": {"x": "1"}}
    assert difference(old, new) == 'labels.a "A" -> not set, style.width not set -> 5, 1 input added'
    assert difference(old, old | {"order": old["order"][::-1], "of": {}}) == "the order of its options"


def test_a_task_that_is_built_from_runs_depends_on_them(tmp_path):
    """This holds for every generation."""
    recipes = Recipes(Configuration(read("config.yaml", *STUDIES)), tmp_path)
    splits = [f"raven_evolved_loop0_generation{number}" for number in (1, 2, 3)]
    split = recipes.recipe(record_of("splits", splits[1]))
    evaluated = f"runs/{split['runs'][0]}/evaluation.json"
    assert split["of"][evaluated] == recipes.digest(evaluated)
    assert {"results/splits/raven", f"results/runs/{split['runs'][0]}/metrics.csv"} <= set(recipes.split(splits[1]).inputs)
    longer = {"models": {"graph_structured": {"training": {"steps": 7}}}}
    other = Recipes(Configuration(merged(read("config.yaml", *STUDIES), longer)), tmp_path)
    same = [recipes.digest(record_of("splits", name)) == other.digest(record_of("splits", name)) for name in splits]
    assert same == [True, False, False]


@pytest.mark.parametrize("kind", small.names("kinds"))
def test_runs_have_predictions_if_their_splits_are_sentences_that_are_decoded(kind, tmp_path):
    task = small.entry("kinds", kind)["task"]
    train = import_module(f"compositional.kinds.{kind}").load(small.split(task), "cpu")["train"]
    assert Recipes(small.configuration(), tmp_path).decoded(task) == isinstance(train, SequenceSplit)


def test_recipes_hold_no_path_of_this_machine(built):
    folder, today = built
    text = files.json_bytes([today().recipe(record) for record in CHAIN]).decode()
    assert str(folder) not in text
    assert str(provenance.ROOT) not in text


def test_a_recipe_keeps_the_order_of_a_figures_options(built):
    """The order of panels, for example, changes the figure, and JSON with sorted keys would lose it."""
    _, today = built
    labels = {"second": "2", "first": "1"}

    def recipe(labels):
        options = {"ablation": {"options": {"labels": labels}}}
        return today({"studies": {"compositional_regularization": {"figures": options}}}).recipe(FIGURE)

    read_back = json.loads(files.json_bytes(recipe(labels)))
    assert list(read_back["options"]["labels"]) == ["first", "second"]
    assert list(in_order(read_back["options"], read_back["order"])["labels"].items()) == [*labels.items()]
    assert files.digest(recipe(labels)) != files.digest(recipe(dict(sorted(labels.items()))))
