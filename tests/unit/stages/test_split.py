"""Tasks: contents, distributions, audits and bytes."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from datasets import Array2D, Array3D, Dataset, DatasetDict, Features, Value

from compositional.datasets import digits, scan
from compositional.language import lexicon
from compositional.plugins import defaults
from compositional.records import integrity, provenance
from compositional.stages import split
from compositional.stages.shared import task_checks
from compositional.stages.split import OverlapError, audit, make_split
from compositional.tasks import digits_concat, scan_jump
from compositional.tasks.shared import sentence_pairs, side_by_side

# sha256 of the sorted lines of the published files (github brendenlake/SCAN, c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f).
PUBLISHED = {
    "all": (20910, "345bff3c25864652f326ba1960aa515d156b63f45067ea57268f71d7362a2440"),
    "train": (14670, "1e5ab3357dc958267480a6012d3970953f35bb098a115b1754a1ad36d371b7cb"),
    "test": (7706, "48956239771e67ded4d090164919ab79d21756218a3e94f9abc2cbe346c0cd1c"),
}


def digest(pairs_of_text) -> tuple[int, str]:
    lines = sorted(f"IN: {command} OUT: {actions}" for command, actions in pairs_of_text)
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_generated_scan_equals_the_published_files_as_multisets():
    assert digest(scan.commands()) == PUBLISHED["all"]
    members, _ = scan_jump.build(None, defaults("tasks.scan_jump"))
    for name, member in members.items():
        assert digest(zip(member["input"], member["output"], strict=True)) == PUBLISHED[name]


def test_deduplicated_scan_jump_shows_the_primitive_once():
    members, _ = scan_jump.build(None, defaults("tasks.scan_jump") | {"deduplicate": True})
    assert Counter(members["train"]["input"])["jump"] == 1
    assert len(members["train"]) == 13204


@pytest.mark.parametrize("setting", ["A", "B"])
def test_pairs_have_the_distribution_of_their_setting(setting):
    members, about = side_by_side.build(
        digits.load(None), defaults("tasks.digits_concat") | {"setting": setting, "train_pairs": 4000, "test_pairs": 3000}
    )
    offsets = {name: Counter(((np.array(m["right_label"]) - np.array(m["label"])) % 10).tolist()) for name, m in members.items()}
    seen = {0, 1} if setting == "A" else set(range(10))
    assert set(offsets["train"]) == set(offsets["validation"]) == seen
    assert set(offsets["test"]) == set(range(2, 10))
    for name, counts in offsets.items():
        expected = len(members[name]) / len(counts)
        assert max(abs(count - expected) for count in counts.values()) < 5 * np.sqrt(expected)
    source = digits.load(None)
    for name, member in members.items():
        images, labels = source["train" if name == "train" else "test"]
        left, right = (np.array(member[key]) for key in ("left_index", "right_index"))
        assert np.array_equal(np.array(member["image"]), np.concatenate([images[left], images[right]], 2))
        assert np.array_equal(labels[left], np.array(member["label"]))
        assert np.array_equal(labels[right], np.array(member["right_label"]))
        assert len({*left, *right}) > 0.98 * len(images)  # draws are uniform: so many leave out hardly any image
    assert about["component_width"] == 8
    audited = [
        {"columns": ["image"], "members": ["validation", "test"]},
        {"columns": ["label", "right_label"], "members": ["test"]},
    ]
    assert about["disjoint"] == (audited if setting == "A" else audited[:1])


def test_audit_counts_and_refuses_overlap():
    members = DatasetDict(train=Dataset.from_dict({"input": ["a", "b"]}), test=Dataset.from_dict({"input": ["b", "c", "b"]}))
    with pytest.raises(OverlapError, match="2 of 3 items of test"):
        audit(members, [{"columns": ["input"], "members": ["test"]}])
    clean = audit(members, [{"columns": ["input"], "members": []}])
    assert clean == []


def test_what_lambda_is_chosen_by_may_not_be_in_the_test_set():
    found = {"train": ["a"], "compositional": ["b", "c"], "test": ["c", "d"]}
    members = DatasetDict({name: Dataset.from_dict({"input": values}) for name, values in found.items()})
    with pytest.raises(OverlapError, match=r"1 distinct items of compositional, .*, are in test \(by input\)"):
        audit(members, [{"columns": ["input"], "members": ["test"]}])


def test_audit_counts_examples_and_distinct_inputs_separately():
    """3 of 4 examples of the test set, but only 1 of 2 distinct inputs, occur in training."""
    members = DatasetDict(train=Dataset.from_dict({"input": ["a", "b"]}), test=Dataset.from_dict({"input": ["b", "c", "b", "b"]}))
    (count,) = audit(members, [{"columns": ["input"], "members": ["test"], "by_design": "drawn independently"}])
    assert (count["items"], count["in_training"], count["share"]) == (4, 3, 0.75)
    assert (count["distinct_items"], count["distinct_in_training"], count["distinct_share"]) == (2, 1, 0.5)


def test_how_examples_are_shown_is_part_of_their_digest(tmp_path):
    """Tasks may have the same members: a canvas, a distance or virtual words are applied only when members are read."""

    def content(module, **parameters):
        folder = tmp_path / "split"
        make_split("task", f"tasks.{module}", defaults(f"tasks.{module}") | parameters, tmp_path, folder)
        about = json.loads((folder / "task.json").read_text())
        return about["content_sha256"]

    small = {"train_pairs": 20, "test_pairs": 20, "canvas_height": 32, "canvas_width": 64}
    assert content("is_same_digit", **small) == content("is_same_digit", **small)
    assert content("is_same_digit", **small) != content("is_same_digit", **small, distance=4)
    assert content("scan_jump") != content("scan_jump", virtual_words=6)


def test_the_digest_of_a_split_is_of_all_columns_and_of_what_training_reads(tmp_path, monkeypatch):
    def content(outputs=("A", "B"), **more):
        rows = {"train": {"input": ["a", "b"], "output": [*outputs]}, "test": {"input": ["a b"], "output": ["A B"]}}
        members = DatasetDict({name: Dataset.from_dict(columns) for name, columns in rows.items()})
        about = {"in_distribution": "train", "disjoint": [{"columns": ["input"], "members": ["test"]}]}
        about |= {"source_words": ["a", "b"], "target_words": ["A", "B"]}
        monkeypatch.setattr(scan_jump, "build", lambda raw, parameters: (members, about | more))
        make_split("mine", "tasks.scan_jump", {}, tmp_path, tmp_path / "split")
        return json.loads((tmp_path / "split" / "task.json").read_text())["content_sha256"]

    assert content() == content(references={"accuracy": 0.5}) == content(decoding={"beam": 5, "bleu": True})
    assert len({content(), content(("B", "A")), content(virtual_words=["c"])}) == 3


def test_a_task_may_take_its_options_with_pop(tmp_path, monkeypatch):
    own = scan_jump.build
    monkeypatch.setattr(scan_jump, "build", lambda raw, parameters: own(raw, {key: parameters.pop(key) for key in [*parameters]}))
    parameters = defaults("tasks.scan_jump")
    make_split("task", "tasks.scan_jump", parameters, tmp_path, tmp_path / "split")
    assert (
        json.loads((tmp_path / "split" / "task.json").read_text())["parameters"]
        == parameters
        == defaults("tasks.scan_jump")
        != {}
    )


def test_a_leaking_split_leaves_nothing_behind(tmp_path, monkeypatch):
    leaking = DatasetDict(
        train=Dataset.from_dict({"input": ["a"], "output": ["A"]}), test=Dataset.from_dict({"input": ["a"], "output": ["A"]})
    )
    rule = {"in_distribution": "train", "disjoint": [{"columns": ["input"], "members": ["test"]}]}
    rule |= {"source_words": ["a"], "target_words": ["A"]}
    monkeypatch.setattr(scan_jump, "build", lambda raw, parameters: (leaking, dict(rule)))
    with pytest.raises(OverlapError):
        make_split("leak", "tasks.scan_jump", {}, tmp_path / "raw", tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("trained", "tested"),
    [("draw a  star", " draw a star\n"), ([1.0, -0.0], [1.0, 0.0]), (["a b", "c"], ["a  b", "c"])],
)
def test_examples_that_a_model_sees_alike_overlap(trained, tested):
    members = DatasetDict(train=Dataset.from_dict({"input": [trained]}), test=Dataset.from_dict({"input": [tested]}))
    with pytest.raises(OverlapError, match="1 of 1 items of test"):
        audit(members, [{"columns": ["input"], "members": ["test"]}])


@pytest.mark.parametrize(
    ("trained", "tested"),
    [
        ({"input": ["ab"], "output": ["c"]}, {"input": ["a"], "output": ["bc"]}),
        ({"input": [2**24], "output": ["c"]}, {"input": [2**24 + 1], "output": ["c"]}),  # equal in single precision
    ],
)
def test_examples_that_a_model_sees_differently_do_not_overlap(trained, tested):
    members = DatasetDict(train=Dataset.from_dict(trained), test=Dataset.from_dict(tested))
    (count,) = audit(members, [{"columns": ["input", "output"], "members": ["test"]}])
    assert (count["items"], count["in_training"]) == (1, 0)


RULE = {"columns": ["image"], "members": ["test"]}
BLANK, SHARES = (Features({"image": Array2D((2, 2), dtype), "label": Value("int64")}) for dtype in ("uint8", "float32"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_distribution": None}, "in_distribution is None, must be 'validation', the first of its members among"),
        ({"in_distribution": "validaton"}, "in_distribution is 'validaton', must be 'validation'"),
        ({"in_distribution": "train"}, "in_distribution is 'train', must be 'validation'"),
        ({"disjoint": None}, "disjoint is None, must be a list of"),
        ({"disjoint": RULE}, "disjoint is {.*must be a list of"),
        ({"disjoint": ["test"]}, r"disjoint is \['test'\], must be"),
        ({"disjoint": [RULE | {"members": ["tset"]}]}, r"'tset'.*some of \['train', 'validation', 'test'\]"),
        ({"disjoint": [RULE | {"columns": ["images"]}]}, r"'images'.*some of \['image', 'label'\]"),
        ({"disjoint": [RULE | {"members": "test"}]}, "'members': 'test'"),
        ({"disjoint": []}, r"disjoint is \[\] and does not compare 'test' by what a model sees"),
        ({"disjoint": [RULE | {"members": ["validation"]}]}, "does not compare 'test'"),
        (
            {"disjoint": [RULE | {"columns": ["image", "label"]}]},
            "does not compare 'test' by.* State columns among image in which",
        ),
        ({"disjoint": [RULE | {"members": []}]}, "'members': \\[\\]"),
        ({"disjoint": [RULE | {"columns": []}]}, "'columns': \\[\\]"),
        ({"disjoint": [RULE | {"by_desing": "why"}]}, "'by_desing'"),
        ({"disjoint": [RULE | {"by_design": " "}]}, "'by_design': ' '"),
        ({"disjoint": [RULE | {"by_design": True}]}, "'by_design': True"),
        ({"classes": "2"}, "classes is '2', must be the number of classes"),
        ({"classes": 1}, r"train has the label 1; labels must be whole numbers from 0 to 0"),
        ({"features": None}, r"its column image is .*, must be of the feature Array2D or Array3D"),
        (
            {"left_out": "image_shape"},
            "its task.json has no image_shape; tasks of kind 'image' need image_shape, classes",
        ),
        ({"members": dict}, r"its members are dict \[.*\], must be a DatasetDict with 'train'"),
        ({"unlabelled": True}, r"its column label is None in test, must be of the feature Value"),
        ({"classes": np.int64(2)}, r"classes cannot be written to task\.json \(.*int64.*\); write int\(\.\.\.\), float"),
        ({"image_shape": None}, r"image_shape is None, must be \[channels, height, width\]"),
        ({"references": [0.5]}, r"references is \[0.5\], must be a dictionary of numbers"),
        ({"references": {"accuracy": "0.5"}}, "references is {'accuracy': '0.5'}, must be a dictionary of numbers"),
        ({"names": ["train", "validation", "test", "test 2"]}, "a member is called 'test 2'; write a letter"),
        ({"image_shape": [1, 2, 3]}, r"image_shape is \[1, 2, 3\], images of train have the shape \[1, 2, 2\]"),
        ({"component_width": 2}, "component_width is 2, must be between 1 and 1, or None"),
        ({"features": SHARES}, "an image of train has the value 0.5; images must be of whole numbers from 0 to 255"),
        ({"virtual_words": "foo bar"}, r"virtual_words is 'foo bar', must be a list of words without spaces"),
        ({"decoding": {"beam": 5, "bleu": True}}, "decoding is {'beam': 5.*, but outputs of tasks of its kind are no sentences"),
        ({"about": None}, "must return its members and a dict for task.json, the latter is None"),
        ({"names": ["test"]}, r"its members are DatasetDict \['test'\], must be a DatasetDict with 'train'"),
    ],
)
def test_the_return_values_of_a_task_are_checked(tmp_path, monkeypatch, change, message):
    good = {"features": BLANK, "members": DatasetDict, "names": ["train", "validation", "test"]}
    good |= {"in_distribution": "validation", "disjoint": [RULE | {"by_design": "one image"}]}
    good |= {"image_shape": [1, 2, 2], "classes": 2, "component_width": 1}

    def build(raw, parameters):
        about = good | parameters
        scale = 2 if about["features"] == SHARES else 1
        rows, make = {"image": [[[0, 1 / scale], [2, 3]]], "label": [1]}, about.pop("members")
        members = make({name: Dataset.from_dict(rows, about["features"]) for name in about.pop("names")})
        if about.pop("unlabelled", False):
            members["test"] = members["test"].remove_columns("label")
        said = {key: value for key, value in about.items() if key not in ("features", about.get("left_out"))}
        return members, about.get("about", said)

    monkeypatch.setattr(digits_concat, "build", build)
    make_split("good", "tasks.digits_concat", {}, tmp_path, tmp_path / "good")
    with pytest.raises(ValueError, match=f"^task 'mine': .*{message}"):
        make_split("mine", "tasks.digits_concat", change, tmp_path, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_virtual_words_are_in_both_vocabularies_and_in_no_sentence(tmp_path):
    options = defaults("tasks.scan_jump") | {"virtual_words": 6, "deduplicate": True}
    make_split("scan", "tasks.scan_jump", options, tmp_path / "none", tmp_path / "scan")
    about = json.loads((tmp_path / "scan" / "task.json").read_text())
    words = set(lexicon.virtual_words(6))
    assert words < set(about["source_words"])
    assert words < set(about["target_words"])
    assert len(about["source_words"]) == 3 + 13 + 6  # including <pad>, <start> and <end>
    sentences = DatasetDict.load_from_disk(str(tmp_path / "scan"))["train"]["input"]
    assert not words & {word for sentence in sentences for word in sentence.split()}


@pytest.mark.parametrize(
    "asked", [["beam"], {"beam": 0, "bleu": True}, {"beam": 2}, {"bleu": True}, {"beam": 2, "bleu": "word"}, {"semantics": True}]
)
def test_a_wrong_decoding_is_refused_before_anything_is_trained(asked):
    members = {name: [("a", name)] for name in ("train", "test")}
    built = sentence_pairs.task(members, "train", decoding=asked)
    with pytest.raises(ValueError, match=f"^task 'toy': decoding is {re.escape(repr(asked))}, must be a dictionary with beam"):
        task_checks.check("toy", "sequence", *built)


@pytest.mark.parametrize("words", ["foo bar", ["foo bar"], ["foo", 5], [""], None])
def test_virtual_words_that_are_no_list_of_words_are_refused(words):
    members = {"train": [("one", "1")], "test": [("two", "2")]}
    built = sentence_pairs.task(members, "train", virtual_words=words)
    with pytest.raises(ValueError, match=f"^task 'toy': virtual_words is {re.escape(repr(words))}, must be a list of words"):
        task_checks.check("toy", "sequence", *built)


def test_a_split_describes_its_items_and_no_raw_file_of_another_task(tmp_path):
    options = defaults("tasks.digits_concat") | {"train_pairs": 50, "test_pairs": 20}
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "of another task").touch()
    make_split("digits", "tasks.digits_concat", options, tmp_path / "raw", tmp_path / "one")
    about = json.loads((tmp_path / "one" / "task.json").read_text())
    assert about["items"] == {"train": 50, "validation": 20, "test": 20}
    assert about["raw_sha256"] == {}
    assert {count["in_training"] for count in about["audit"]} == {0}
    assert DatasetDict.load_from_disk(str(tmp_path / "one"))["train"].num_rows == 50


def test_a_task_is_not_built_from_damaged_files(tmp_path):
    """The files are another task's folder and metrics of runs, each with its record."""
    split, run = tmp_path / "splits" / "puzzles", tmp_path / "runs" / "seed=0"
    for folder, name in ((split, "task.json"), (run, "metrics.csv")):
        folder.mkdir(parents=True)
        (folder / name).write_text("as it was made")
    for record, made in ((tmp_path / "splits/puzzles.provenance.json", split), (run / "evaluation.json", run / "metrics.csv")):
        provenance.write(record, {"inputs": {}}, {}, [made])
    for damaged, given in ((split / "task.json", {"splits": [split]}), (run / "metrics.csv", {"metrics": [run / "metrics.csv"]})):
        damaged.write_text("something else")
        with pytest.raises(integrity.DamagedFileError, match=re.escape(str(damaged))):
            make_split("mine", "tasks.digits_concat", {}, tmp_path, tmp_path / "mine", **given)
        damaged.write_text("as it was made")
    assert not (tmp_path / "mine").exists()


def test_raw_files_are_checked_before_a_task_is_built_from_them(tmp_path):
    (tmp_path / "train.tsv").write_text("a sentence\ta form\tprimitive\n")
    with pytest.raises(ValueError, match=r"train\.tsv was altered or damaged after it was fetched"):
        make_split("mine", "tasks.cogs", defaults("tasks.cogs"), tmp_path, tmp_path / "mine", raw_files=["train.tsv"])
    assert not (tmp_path / "mine").exists()


def test_a_raw_file_that_changes_while_it_is_read_gives_no_split(tmp_path, monkeypatch):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "numbers.csv").write_text("as published")

    def build(raw, parameters):
        (raw / "numbers.csv").write_text("altered")
        return DatasetDict(), {}

    def verify(dataset, path):
        if path.read_text() != "as published":
            raise ValueError("altered or damaged")

    monkeypatch.setattr(split.plugins, "load", lambda *names: SimpleNamespace(build=build, DATASET="mine", PARALLEL=False))
    monkeypatch.setattr(split.download, "verify", verify)
    with pytest.raises(ValueError, match="altered or damaged"):
        make_split("mine", "tasks.mine", {}, tmp_path / "raw", tmp_path / "mine", raw_files=["numbers.csv"])
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(("made", "said"), [(None, "NoneType"), ((DatasetDict(), {}, 3), r"\(DatasetDict, dict, int\)")])
def test_a_task_that_returns_something_else_is_refused_by_its_file(tmp_path, monkeypatch, made, said):
    task = SimpleNamespace(build=lambda raw, parameters: made, DATASET="mine", PARALLEL=False)
    monkeypatch.setattr(split.plugins, "load", lambda contract, module: task)
    message = rf"tasks/mine\.py: build must return \(members, content of task.json\), it returns {said}"
    with pytest.raises(TypeError, match=message):
        make_split("mine", "tasks.mine", {}, tmp_path, tmp_path / "mine")


@pytest.mark.parametrize("draw", [random.random, np.random.standard_normal, lambda: torch.randperm(3)])
def test_a_task_that_draws_without_a_seed_is_refused(tmp_path, monkeypatch, draw):
    task = SimpleNamespace(build=lambda raw, parameters: (draw(), {}), DATASET="mine", PARALLEL=False)
    monkeypatch.setattr(split.plugins, "load", lambda contract, module: task)
    with pytest.raises(ValueError, match=r"tasks/mine\.py: build draws random numbers from a global generator"):
        make_split("mine", "tasks.mine", {}, tmp_path, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", ["labels.csv", "raw/undeclared.csv"])
def test_a_task_that_reads_other_files_than_its_dataset_s_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("raw").mkdir()
    for file in ("raw/declared.csv", name):
        Path(file).write_text("numbers")

    def build(raw, parameters):
        assert (raw / "declared.csv").read_text() == "numbers"
        Path("notes.txt").write_text("what is written needs no notice")
        return Path(name).read_text()

    task = SimpleNamespace(build=build, DATASET="mine", PARALLEL=False)
    monkeypatch.setattr(split.plugins, "load", lambda contract, module: task)
    monkeypatch.setattr(split.download, "verify", lambda dataset, path: None)
    with pytest.raises(PermissionError, match=f"a task reads the files that its dataset lists .*: not {tmp_path}/{name}"):
        make_split("mine", "tasks.mine", {}, Path("raw"), tmp_path / "mine", raw_files=["declared.csv"])
    assert Path(name).read_text() == "numbers"


def test_a_task_that_reads_a_file_outside_the_project_is_refused(tmp_path, monkeypatch):
    """Its changes would go unnoticed, too. Files of libraries, and their caches, may be read."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for path in (project / "notes", elsewhere / "labels.csv", elsewhere / ".cache" / "known", tmp_path / "hub" / "known"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("numbers")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def build(raw, parameters):
        for path in (elsewhere / ".cache" / "known", tmp_path / "hub" / "known", Path("/etc/passwd"), Path(os.__file__)):
            path.read_bytes()
        return (elsewhere / "labels.csv").read_text()

    task = SimpleNamespace(build=build, DATASET="mine", PARALLEL=False)
    monkeypatch.setattr(split.plugins, "load", lambda contract, module: task)
    with pytest.raises(PermissionError, match=f"a task reads the files that its dataset lists .*: not {elsewhere}/labels.csv"):
        make_split("mine", "tasks.mine", {}, Path("raw"), tmp_path / "mine")


def test_an_evaluation_member_without_examples_is_refused_by_name():
    with pytest.raises(ValueError, match="no pairs are left for in_distribution: change the task's options"):
        scan_jump.build(None, defaults("tasks.scan_jump") | {"held_out": 0.00001})
    members = DatasetDict({name: Dataset.from_dict({"input": words}) for name, words in {"train": ["a"], "test": []}.items()})
    with pytest.raises(ValueError, match="task 'toy': no examples are left for test"):
        task_checks.check("toy", "sequence", members, {})


@pytest.mark.parametrize("points", [[[0, 1], [1, 0]], [[0.0, 1.0 + 1e-12]]])
def test_the_audit_compares_numbers_as_they_are_trained_on(points):
    members = DatasetDict({"train": Dataset.from_dict({"point": [[0.0, 1.0]]}), "test": Dataset.from_dict({"point": points})})
    with pytest.raises(OverlapError, match=rf"1 of {len(points)} items of test"):
        audit(members, [{"columns": ["point"], "members": ["test"]}])


@pytest.mark.parametrize(
    ("point", "label", "said"),
    [
        ([0.0, float("nan")], 0, "column point of test has numbers that are not finite"),
        ([0.0, 1.0], 2, "test has the label 2; labels must be whole numbers from 0 to 1"),
        ([0.0, 1.0], 0.7, "test has the label 0.7; labels must be whole"),
        ([0.0, 1.0], "cat", "test has the label 'cat'; labels must be whole"),
    ],
)
def test_numbers_that_no_kind_can_read_are_refused(point, label, said):
    members = DatasetDict(test=Dataset.from_dict({"point": [point], "label": [label]}))
    with pytest.raises(ValueError, match=f"task 'toy': {said}"):
        task_checks.check_values("toy", members, {"point": (), "label": ("Value",)}, {"classes": 2})


@pytest.mark.parametrize(("column", "value"), [("label", 1), ("output", "walk left")])
def test_a_training_set_with_one_answer_is_refused(column, value):
    members = DatasetDict({name: Dataset.from_dict({column: [value] * 3}) for name in ("test", "train")})
    with pytest.raises(
        ValueError, match=f"task 'toy': every example of train has the {column} {value!r}, so there is nothing to"
    ):
        task_checks.check_values("toy", members, {column: ("Value",)}, {"classes": 2})


@pytest.mark.parametrize(
    ("column", "values", "wrong"),
    [("target", ["1.5"], "'1.5'"), ("value", [1.0, None], "None"), ("point", [["a"]], "'a'"), ("point", [[1], [2, 3]], r"\[1\]")],
)
def test_text_and_gaps_among_numbers_are_refused(column, values, wrong):
    members = DatasetDict(train=Dataset.from_dict({column: values}))
    with pytest.raises(ValueError, match=f"^task 'toy': column {column} of train has {wrong}, must be numbers, as many in every"):
        task_checks.check_values("toy", members, {column: ()}, {})


@pytest.mark.parametrize("items", [[0, 3], [-1, 0], [0, 1, 1], [0.5, 1.0]])
def test_items_that_a_task_does_not_have_are_refused(items):
    members = DatasetDict(train=Dataset.from_dict({"items": [items]}))
    with pytest.raises(ValueError, match=re.escape(f"train has the items {items}; they must be whole numbers")):
        task_checks.check_values("toy", members, {"items": ()}, {"sizes": [2, 3]})


def test_a_target_that_is_neither_a_number_nor_a_sign_is_refused():
    members = DatasetDict(train=Dataset.from_dict({"items": [[0, 1]]}))
    with pytest.raises(ValueError, match="task 'toy': target is 'signs', must be 'number' or 'sign'"):
        task_checks.check_values("toy", members, {"items": ()}, {"sizes": [2, 3], "target": "signs"})


@pytest.mark.parametrize(
    ("largest", "about", "message"),
    [
        (1, {}, "no image of train has a number above 1"),
        (255, {"mean": 0.4, "std": 0.2}, "mean is 0.4; mean and std must be lists of one number per channel"),
        (255, {"mean": [99.0], "std": [40.0]}, r"mean is \[99.0\]"),
        (255, {"mean": [0.4], "std": [0.0]}, r"std is \[0.0\]"),
        (255, {"mean": [0.4]}, r"mean is \[0.4\]"),
    ],
)
def test_images_in_other_units_are_refused(largest, about, message):
    shape = Features({"image": Array2D((8, 8), "uint8")})
    members = DatasetDict(train=Dataset.from_dict({"image": [np.full((8, 8), largest, np.uint8)]}, shape))
    with pytest.raises(ValueError, match=message):
        task_checks.check_values("toy", members, {"image": ()}, {"image_shape": [1, 8, 8], **about})


def test_images_whose_last_axis_has_the_channels_are_refused():
    shape = Features({"image": Array3D((8, 8, 3), "uint8")})
    members = DatasetDict(train=Dataset.from_dict({"image": [np.zeros((8, 8, 3), np.uint8)]}, shape))
    with pytest.raises(ValueError, match=r"images of train have the shape \[8, 8, 3\], must be \[channels, height, width\]"):
        task_checks.check_values("toy", members, {"image": ()}, {"image_shape": [8, 8, 3]})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("two", 2)], r"train has the row \('two', 2\); it must be \(input, output\) or \(input, output, category\), all text"),
        ([("one", float("nan"))], r"train has the row \('one', nan\)"),
        ([("one", "1", "odd", "more")], r"train has the row \('one', '1', 'odd', 'more'\)"),
        (["one 1"], "train has the row 'one 1'"),
        ([("one", "1"), ("two", "2", "even")], r"train has the rows .*; either all rows have a category or none"),
    ],
)
def test_pairs_that_are_no_text_or_have_a_category_in_some_rows_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        sentence_pairs.task({"train": rows, "test": [("three", "3")]}, "test")


@pytest.mark.parametrize(
    ("words", "pair", "message"),
    [
        (["one", "two"], ["one", "two three"], "column output of train has the word 'three', which target_words does not list"),
        (None, ["one", "two"], "column input of train has the word 'one', which source_words does not list"),
        (["one", "two"], ["one", None], "column output of train has None, must be text"),
    ],
)
def test_sentences_with_words_that_a_task_does_not_list_are_refused(words, pair, message):
    members = DatasetDict(train=Dataset.from_dict({"input": [pair[0]], "output": [pair[1]]}))
    with pytest.raises(ValueError, match=message):
        task_checks.check_values("toy", members, {"input": (), "output": ()}, {"source_words": words, "target_words": words})


def test_a_category_that_is_no_text_is_refused():
    pairs = {"train": [("one", "1")], "test": [("three", "3")]}
    with pytest.raises(ValueError, match=r"test has the row \('three', '3', None\)"):
        sentence_pairs.task(pairs, "test", categorize=lambda source, target: None)
