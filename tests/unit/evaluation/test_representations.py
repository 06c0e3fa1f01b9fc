"""Representations of networks: probes, activations, swaps, and the stage that writes them."""

from __future__ import annotations

import json
import math
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file, save_file
from support.told import told
from support.trained import untrained

from compositional.datasets import scan
from compositional.evaluation import conjunctions, metrics, representations, stimuli
from compositional.evaluation.activations import on_stimuli
from compositional.kinds.image import ImageSplit, load
from compositional.kinds.sequence import SequenceSplit
from compositional.kinds.tensor import TensorSplit
from compositional.language import lexicon
from compositional.language.vocabulary import END, Vocabulary
from compositional.measures.compositionality import linear_cka
from compositional.plugins import defaults
from compositional.records import integrity, provenance
from compositional.runs import Run, run_folder
from compositional.stages import evaluate, represent
from compositional.stages import train as training
from compositional.stages.aggregate import aggregate
from compositional.stages.shared import trained_runs
from compositional.stages.split import make_split
from compositional.tables import activations, run
from compositional.tasks import scan_length

COMMANDS = [command for command, _ in scan.commands()]
ACTIONS = [actions for _, actions in scan.commands()]
SOURCE, TARGET = Vocabulary.of(COMMANDS), Vocabulary.of(ACTIONS)


@pytest.fixture
def scan_problem(problem):
    made = problem("primitive_attention")
    made.about |= {"dataset": "scan"}
    return made


@pytest.fixture(scope="module")
def digit_task(tmp_path_factory):
    """A split of pairs of digits whose evaluation members contain every pair of classes."""
    folder = tmp_path_factory.mktemp("splits") / "digits_concat"
    parameters = defaults("tasks.digits_concat") | {"train_pairs": 200, "test_pairs": 1000}
    make_split("digits_concat", "tasks.digits_concat", parameters, folder / "no_raw", folder)
    return folder


@pytest.fixture
def digit_problem(problem, digit_task):
    made = problem("cnn")
    made.about |= {"dataset": "digits", "component_width": 8}
    made.splits = load(digit_task, "cpu")
    return made


def test_the_probe_of_scan_has_every_command_of_one_phrase_once(scan_problem, tmp_path):
    probe = stimuli.of(scan_problem, tmp_path, 2)
    assert len(probe.items) == len(set(probe.items)) == 72
    assert set(probe.items) <= set(COMMANDS)
    assert probe.names == ("verb", "manner", "direction", "count")
    assert len(np.unique(probe.factors, axis=0)) == 72
    named = dict(zip(probe.items, probe.factors.tolist(), strict=True))
    assert named["jump opposite left twice"] == [list(scan.ACTIONS).index("jump"), 1, 0, 1]
    # Batches are sorted by length; their row numbers identify the items.
    for places, batch in probe.batches:
        decoded = [SOURCE.decode(row) for row in batch.inputs[0].tolist()]
        assert [probe.items[place] for place in places] == decoded[: len(places)]


def test_words_that_occur_nowhere_do_not_change_the_probe(scan_problem, tmp_path):
    train = scan_problem.splits["train"]
    plain = stimuli.of(scan_problem, tmp_path, 1)
    source = Vocabulary((*SOURCE.words, "<virtual0>"))
    more = SequenceSplit(train.input_sentences(), train.output_sentences(), source, train.target, "cpu")
    scan_problem.splits = scan_problem.splits | {"train": more}
    scan_problem.about["virtual_words"] = ["<virtual0>"]
    assert stimuli.of(scan_problem, tmp_path, 1).items == plain.items
    assert len(stimuli.phrases(scan_problem, 1).items) == 84


def test_repeated_items_have_different_labels():
    probe = stimuli.Stimuli(["a b", "c", "a b", "a b"], [], None, (), None)
    assert probe.labels() == ["a b", "c", "a b (2)", "a b (3)"]


def test_commands_with_one_verb_have_the_factors_verb_and_template(scan_problem):
    probe = stimuli.phrases(scan_problem, 1)
    assert len(probe.items) == len(set(probe.items)) == 84
    assert {command for command in COMMANDS if "turn" not in command and "and" not in command and "after" not in command} == set(
        probe.items
    )
    verbs = {tuple(row): item for row, item in zip(probe.factors.tolist(), probe.items, strict=True)}
    assert verbs[3, 0] == "jump"
    assert all(verbs[verb, 5].replace(name, "walk") == verbs[0, 5] for verb, name in enumerate(scan.ACTIONS))


def test_measures_of_a_probe_and_their_mean_over_factors_by_hand():
    factors = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 2, 0)
    probe = stimuli.Stimuli([""] * 8, [], factors, ("first", "second"), None)
    means = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    found = representations._geometry(probe, "r", np.repeat(means, 2, 0) + np.tile([[-3.0, 0.0], [3.0, 0.0]], (4, 1)))
    # For the means: cosines 1 / sqrt(2) and, for a vector of length zero, 0 (tests/unit/measures/test_compositionality.py).
    assert found["parallelism_score of first in r"] == pytest.approx(1 / math.sqrt(2))
    assert found["parallelism_score of second in r"] == 0
    assert found["parallelism_score in r"] == pytest.approx(1 / math.sqrt(8))
    # Distances 0, 1, sqrt(2), 1, sqrt(2), 1 against 1, 1, 2, 2, 1, 1: ranks 1, 3, 5.5, 3, 5.5, 3 and 2.5 (four), 5.5 (two).
    assert found["topographic_similarity in r"] == pytest.approx(4.5 / math.sqrt(12 * 15))


def test_ccgp_is_computed_from_items_and_not_from_their_means():
    factors = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 2, 0)
    probe = stimuli.Stimuli([""] * 8, [], factors, ("first", "second"), None)
    # The first factor moves the mean from -1 to 1, with half of its items on the other side; the second factor moves nothing.
    rows = np.array([[-3.0], [1.0], [-3.0], [1.0], [-1.0], [3.0], [-1.0], [3.0]])
    assert representations._geometry(probe, "r", rows)["ccgp of first in r"] == 0.5


def test_salience_of_verb_and_template_on_scan(scan_problem):
    verbs = torch.tensor([SOURCE.words.index(verb) for verb in scan.ACTIONS])

    def forward(parameters, weights, batch, tap):
        # Scaled by the length, so that the mean over positions is the sum.
        length = batch.input_lengths[..., None, None]
        is_verb = (batch.inputs[..., None] == verbs).float() * length
        tap("verbs", is_verb, batch.input_mask)
        others = torch.nn.functional.one_hot(batch.inputs, len(SOURCE)).float() * length
        others[..., verbs] = 0
        tap("both", torch.cat([is_verb, others], -1), batch.input_mask)

    scan_problem.model = replace(scan_problem.model, forward=forward)
    (found,) = conjunctions.measure(scan_problem, {"none": torch.zeros(1, 1)})
    saliences = {name: found["all", f"salience of {name} in verbs"] for name in ("verb", "template", "verb+template")}
    assert saliences == pytest.approx({"verb": 1, "template": 0, "verb+template": 0}, abs=1e-6)
    # A bag of words is the sum of the verb's part and the template's part, which is larger.
    assert found["all", "salience of template in both"] > found["all", "salience of verb in both"] > 0.2
    assert found["all", "salience of verb+template in both"] == pytest.approx(0, abs=1e-6)
    assert ("all", "additivity") not in found


def test_other_tasks_made_of_scan_are_probed_with_their_own_inputs(scan_problem, tmp_path):
    train = scan_problem.splits["train"]
    words = Vocabulary((*SOURCE.words, "means"))
    test = SequenceSplit(["jump means walk", "walk", "walk means jump twice"], ["I_JUMP"] * 3, words, TARGET, "cpu")
    scan_problem.splits = {"train": SimpleNamespace(source=words, target=train.target), "test": test}
    probe = stimuli.of(scan_problem, tmp_path, 1)
    assert sorted(probe.items) == ["jump means walk", "walk", "walk means jump twice"]
    assert probe.factors is None
    # Words to insert, delete or replace.
    expected = {
        frozenset(("jump means walk", "walk")): 2,
        frozenset(("jump means walk", "walk means jump twice")): 3,
        frozenset(("walk", "walk means jump twice")): 3,
    }
    assert probe.distances.tolist() == [expected[frozenset(pair)] for pair in combinations(probe.items, 2)]


def test_the_probe_of_pairs_has_every_pair_of_classes(digit_problem, digit_task):
    probe = stimuli.of(digit_problem, digit_task, 1)
    found, counts = np.unique(probe.factors, axis=0, return_counts=True)
    assert len(found) == 100
    assert counts.max() == stimuli.PER_COMBINATION
    assert len(probe.labels()) == 100
    labels = np.concatenate([batch.labels[0].numpy() for _, batch in probe.batches])
    assert (labels == probe.factors[:, 0]).all()


def test_images_without_components_are_compared_pixel_by_pixel():
    split = ImageSplit(np.array([[[0, 0]], [[0, 255]], [[255, 255]]]), np.array([0, 1, 1]), None, "cpu")
    probe = stimuli._examples(SimpleNamespace(splits={"test": split}, task="test"), 1)
    assert probe.items == ["test 0", "test 1", "test 2"]
    assert probe.distances.tolist() == pytest.approx([1, math.sqrt(2), 1])  # Euclidean distances between pixels from 0 to 1


def test_a_split_without_sentences_or_labels_cannot_be_probed(scan_problem):
    split = TensorSplit([2, 2], np.ones(2), "cpu", entries=np.array([0, 3]))
    with pytest.raises(ValueError, match="sentences and labelled examples, 'test' has neither"):
        stimuli._examples(replace(scan_problem, splits={"train": split, "test": split}), 1)


def test_word_vectors_are_the_rows_of_the_tables(scan_problem):
    weights = untrained(scan_problem, range(2))
    found = representations.word_vectors(scan_problem, weights, ["walk", "jump", "and"])
    rows = [SOURCE.words.index(word) for word in ("walk", "jump", "and")]
    assert list(found) == ["word_embedding", "word_embedding_2"]
    for name, table in zip(found, ("primitive_embedding", "function_embedding"), strict=True):
        np.testing.assert_allclose(found[name], weights[table][:, rows].numpy(), rtol=1e-6)


def test_the_limit_on_kept_activations_does_not_change_distances_between_words(scan_problem, tmp_path, monkeypatch):
    weights = untrained(scan_problem, range(1))
    (whole,) = representations.measure(scan_problem, weights, tmp_path)
    monkeypatch.setattr(representations, "WORDS", 3)
    (cut,) = representations.measure(scan_problem, weights, tmp_path)
    assert cut.measures == whole.measures
    assert {metric for _, metric in whole.measures} > {f"relative_distance of {verb} in word_embedding" for verb in scan.ACTIONS}
    kept, vectors = cut.vectors["word_embedding"]
    assert kept == whole.vectors["word_embedding"][0][:3]
    assert vectors.tolist() == whole.vectors["word_embedding"][1][:3].tolist()


def test_a_diverged_run_has_no_predictions(scan_problem, tmp_path):
    for seed, status in enumerate(("done", "diverged")):
        folder = tmp_path / f"scan_jump/primitive_attention/none/lambda=0/seed={seed}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"status": status}))
    folders = sorted(tmp_path.glob("scan_jump/*/*/*/*"))
    evaluate._write(scan_problem, untrained(scan_problem, range(2)), folders, StringIO())
    healthy, lost = (pd.read_csv(folder / "predictions.csv") for folder in folders)
    assert len(healthy) > 0
    assert list(lost) == list(healthy)
    assert len(lost) == 0
    assert pd.read_csv(folders[1] / "metrics.csv").query("metric == 'accuracy'").value.isna().all()


def test_activations_of_sequences_are_means_over_words_with_the_end(scan_problem, tmp_path):
    weights = untrained(scan_problem, range(1))
    probe = stimuli.of(scan_problem, tmp_path, 1)
    shown = on_stimuli(scan_problem, weights, probe)["word_embedding"]
    table = weights["primitive_embedding"][0].numpy()
    for place in (0, 35, 71):
        tokens = [*(SOURCE.words.index(word) for word in probe.items[place].split()), END]
        np.testing.assert_allclose(shown[0, place], table[tokens].mean(0), rtol=1e-5, atol=1e-6)


def test_a_runs_measures_do_not_depend_on_its_neighbors(scan_problem, digit_problem, digit_task, tmp_path):
    types = [[("jump", "I_JUMP"), ("walk", "I_WALK")]]
    for made, folder in ((scan_problem, tmp_path), (digit_problem, digit_task)):
        found = []
        for seeds in (range(2), range(1, 2)):
            weights = untrained(made, seeds)
            shown = on_stimuli(made, weights, stimuli.of(made, folder, len(seeds)))
            found.append((shown, representations.swap_consistency(made, weights, types)))
        (together, swapped), (alone, swapped_alone) = found
        for name in together:
            np.testing.assert_array_equal(together[name][1], alone[name][0])
            assert (together[name][0] != together[name][1]).any()
        assert swapped[1].value == swapped_alone[0].value


class Speaker:
    """A sequence model with given answers: `answer(command)` is its output, one symbol per position."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def forward(self, parameters, weights, batch, tap):
        logits = torch.zeros(len(batch.inputs), len(batch.layout.positions), len(TARGET))
        said = [[*map(TARGET.words.index, self.answer(SOURCE.decode(row)).split()), END] for row in batch.inputs[0].tolist()]
        for place, (row, step) in enumerate(batch.layout.positions.tolist()):
            symbols = said[row]
            logits[:, place, symbols[step] if step < len(symbols) else END] = 1
        return logits


def test_swap_consistency_of_known_speakers(scan_problem):
    right = dict(scan.commands())
    train = scan_problem.splits["train"]
    types = lexicon.infer(train.input_sentences(), train.output_sentences())
    assert ["jump", "look", "run", "walk"] in [[word for word, _ in own] for own in types]

    def of(answer) -> tuple[float, float]:
        scan_problem.model = replace(scan_problem.model, forward=Speaker(answer).forward)
        (found,) = representations.swap_consistency(scan_problem, {"none": torch.zeros(1, 1)}, types)
        return found.value, found.shuffled.mean()

    # Perfect: it follows every swap.
    value, shuffled = of(right.__getitem__)
    assert value == 1
    assert shuffled < 0.2
    # It answers "run" for every verb, which is consistent with all swaps except those with "run".
    value, _ = of(lambda command: re.sub("WALK|JUMP|LOOK", "RUN", right[command]))
    swaps = [words for _, _, words, _ in representations._swaps(scan_problem, types)]
    assert value == pytest.approx(np.mean(["run" not in words for words in swaps]))
    assert 0.5 < value < 1
    # It always gives the same answer, which no swap changes. Shuffling reveals it.
    assert of(lambda command: "") == (1, 1)


def test_swap_consistency_of_images(digit_problem):
    classes = torch.arange(10.0)

    def of(score) -> float:
        digit_problem.model = replace(digit_problem.model, forward=lambda parameters, weights, batch, tap: score(batch))
        return representations.swap_consistency(digit_problem, {"none": torch.zeros(1, 1)}, [])[0].value

    def by(part):
        return lambda batch: -(part(batch.images).sum((2, 3, 4)).unsqueeze(-1) % 10 - classes).abs()

    assert of(by(lambda images: images[..., :8])) == 1
    assert of(by(lambda images: images[..., 8:])) < 0.5
    # Images without components have nothing to swap.
    digit_problem.splits["test"].component_width = None
    assert representations.swap_consistency(digit_problem, {"none": torch.zeros(1, 1)}, []) == []


@pytest.fixture(scope="module")
def trained(digit_task, tmp_path_factory):
    """Four short runs on pairs of digits, trained, evaluated and measured stage by stage."""
    results = tmp_path_factory.mktemp("results")
    shutil.copytree(digit_task, results / "splits/digits_concat")
    base = {
        "task": "digits_concat",
        "model": "cnn",
        "model_module": "models.cnn",
        "model_parameters": defaults("models.cnn") | {"width": 4, "dense_width": 8},
        "settings": defaults("training.settings") | {"steps": 4, "batch_size": 16, "record_every": 4, "curve_examples": 16},
    }
    folders = []
    for name, strength in (("none", 0.0), ("additivity", 1.0)):
        family = base | {"regularizer": name}
        if name != "none":
            family |= {"regularizer_module": f"regularizers.{name}", "regularizer_parameters": {}}
        runs = [Run("digits_concat", "cnn", name, strength, seed) for seed in (0, 1)]
        for stage in (training, evaluate, represent):
            log = (results / "log").open("w")
            stage.perform(told(stage.__name__.rsplit(".", 1)[1], family, runs), log, results)
        folders.append(([run_folder(results, run) for run in runs], family))
    return folders


def test_the_stage_writes_measures_activations_and_vectors(trained):
    folder = trained[0][0][0]
    table = pd.read_csv(folder / "representations.csv")
    assert list(table) == ["split", "metric", "value"]
    assert table.value.notna().all()
    values = table.set_index("metric").value
    assert 0 <= values["swap_consistency"] <= 1
    for metric in ("tree_reconstruction_error in penultimate", "parallelism_score of left in penultimate", "ccgp in penultimate"):
        assert values[f"{metric} (2.5 %)"] <= values[f"{metric} (shuffled)"] <= values[f"{metric} (97.5 %)"]
    assert load_file(folder / "activations.safetensors")["penultimate"].shape == (100, 8)
    vectors = pd.read_csv(folder / "vectors.csv")
    assert list(vectors) == ["representation", "item", "dimension", "value"]
    assert len(vectors) == 800
    wide = vectors.pivot(index="item", columns="dimension", values="value").loc["3 7"]
    np.testing.assert_allclose(wide, load_file(folder / "activations.safetensors")["penultimate"][37])


def test_measuring_again_gives_the_same_bytes_and_trains_nothing(trained):
    folders, family = trained[0]
    names = ("representations.csv", "activations.safetensors", "vectors.csv", "weights.safetensors")
    before = [(folders[1] / name).read_bytes() for name in names]
    (folders[1] / "representation.json").unlink()
    represent.perform(told("represent", family, [Run.of_folder(folders[1])]), StringIO(), folders[1].parents[5])
    assert [(folders[1] / name).read_bytes() for name in names] == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("compositional.evaluation.representations.measure", "a measure of representations may read its task's folder only"),
        ("compositional.stages.shared.trained_runs.read_problem", "a kind of task may read its task's folder only"),
    ],
)
def test_a_measure_or_a_kind_that_reads_another_file_is_refused(trained, tmp_path, monkeypatch, place, message):
    """Nothing would notice that it changes."""
    folders, family = trained[0]
    (tmp_path / "words.txt").write_text("red blue")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, lambda *given: Path("words.txt").read_text())
    record = folders[1] / "representation.json"
    kept = record.read_bytes()
    record.unlink()
    with pytest.raises(PermissionError, match=rf"{message}, .*: not {tmp_path}/words\.txt"):
        represent.perform(told("represent", family, [Run.of_folder(folders[1])]), StringIO(), folders[1].parents[5])
    record.write_bytes(kept)


def test_a_killed_job_measures_only_what_it_had_not_measured(trained, monkeypatch):
    """Runs that compute together are recorded when they are measured, here one after the other, not at the end of the job."""
    folders, family = trained[0]
    results, runs = folders[0].parents[5], [Run.of_folder(folder) for folder in folders]
    monkeypatch.setattr(trained_runs, "width_of", lambda problem: 1)
    for folder in folders:
        (folder / "evaluation.json").unlink()

    def evaluated(stops_at: Path | None) -> list[Path]:
        measured: list[Path] = []

        def write(problem, weights, group, log):
            if group == [stops_at]:
                raise KeyboardInterrupt
            measured.extend(group)
            own(problem, weights, group, log)

        with monkeypatch.context() as patched, nullcontext() if stops_at is None else pytest.raises(KeyboardInterrupt):
            own = evaluate._write
            patched.setattr(evaluate, "_write", write)
            evaluate.perform(told("evaluate", family, runs), StringIO(), results)
        return measured

    assert evaluated(stops_at=folders[1]) == folders[:1]
    assert evaluated(stops_at=None) == folders[1:]
    assert evaluated(stops_at=None) == []
    assert all((folder / "evaluation.json").exists() for folder in folders)


def test_untrained_networks_are_measured_for_each_seed(trained):
    (plain, _), (own, family) = trained
    results = own[0].parents[5]
    more = results / "runs/digits_concat/cnn/additivity/lambda=2/seed=0"
    shutil.copytree(own[0], more)
    folders = [own[1], own[0], more]
    for folder in folders:
        (folder / "evaluation.json").unlink()
    evaluate.perform(told("evaluate", family, list(map(Run.of_folder, folders))), StringIO(), results)

    def before(folder):
        table = pd.read_csv(folder / "metrics.csv")
        return table[table.split == "initialization"].set_index("metric").value.to_dict()

    assert before(plain[0])
    assert before(more) == before(own[0]) == before(plain[0])
    assert before(own[1]) == before(plain[1]) != before(plain[0])


def test_a_run_is_evaluated_again_if_its_task_asks_for_other_references(trained, monkeypatch):
    """The digest of a task's examples does not include such parts of its description, because training does not read them."""
    folders, family = trained[0]
    results, load_problem = folders[0].parents[5], evaluate.load_problem

    def found(references: dict[str, float]) -> tuple[str, dict[str, float]]:
        def load(*given):
            problem = load_problem(*given)
            return replace(problem, about=problem.about | {"references": references})

        monkeypatch.setattr(evaluate, "load_problem", load)
        log = StringIO()
        evaluate.perform(told("evaluate", family, [Run.of_folder(folders[0])]), log, results)
        table = pd.read_csv(folders[0] / "metrics.csv")
        return log.getvalue(), table[table.split == "reference"].set_index("metric").value.to_dict()

    found({"a rule": 0.25})
    for expected, references in ((0, {"a rule": 0.5}), (1, {"a rule": 0.5}), (0, {})):
        log, written = found(references)
        assert f"{expected} runs were measured before" in log
        assert written == references


def test_a_diverged_run_has_no_measures(trained):
    folders, family = trained[0]
    folder = folders[0].with_name("seed=9")
    shutil.copytree(folders[0], folder)
    described = provenance.vouched(folder / "run.json") | {"status": "diverged"}
    provenance.write(folder / "run.json", described, {}, [folder / name for name in described["files"]])
    (folder / "representation.json").unlink()
    represent.perform(told("represent", family, [Run.of_folder(folder)]), StringIO(), folder.parents[5])
    assert pd.read_csv(folder / "representations.csv").value.isna().all()
    assert pd.read_csv(folder / "vectors.csv").value.isna().all()
    assert np.isnan(load_file(folder / "activations.safetensors")["penultimate"]).all()


def test_a_table_of_several_files_has_measures_costs_and_comparisons_of_runs(trained, tmp_path):
    folders = [folder for own, _ in trained for folder in own]
    names = ("metrics.csv", "representations.csv", "run.json", "activations.safetensors")
    aggregate([folder / name for name in names for folder in folders], tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv")
    assert list(table) == ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]
    own = table[(table.regularizer == "additivity") & (table.seed == 1)].set_index("metric").value
    assert own["steps"] == 4
    assert own["wall_seconds"] == json.loads((folders[3] / "run.json").read_text())["wall_seconds"]
    assert "ccgp in penultimate" in own.index
    shown = [load_file(folder / "activations.safetensors")["penultimate"] for folder in folders]
    assert own["cka_between_seeds in penultimate"] == pytest.approx(linear_cka(shown[3], shown[2], 1).value)
    assert own["cka_with_plain in penultimate"] == pytest.approx(linear_cka(shown[3], shown[1], 1).value)


def test_runs_are_compared_with_seeds_of_their_own_cell_and_with_the_plain_run(tmp_path):
    source = np.random.default_rng(0)
    plain = [source.normal(size=(8, 3)) for _ in range(3)]
    paths = {}
    for strength, regularizer in ((0.0, "none"), (1.0, "entropy")):
        for seed, rows in enumerate(plain):
            path = tmp_path / f"{regularizer}{seed}.safetensors"
            # Rotated, shifted and scaled for entropy: the same to linear CKA. One run diverged.
            values = rows if regularizer == "none" else rows[:, ::-1] * 2 + 1
            lost = np.nan if (regularizer, seed) == ("entropy", 2) else 1
            save_file({"encoder_states": np.ascontiguousarray(values * lost)}, path)
            paths[Run("scan_jump", "lstm_attention", regularizer, strength, seed)] = path
    found = {(one.regularizer, one.seed, metric): value for one, _, metric, value in activations.collect(paths)}
    assert found["entropy", 0, "cka_with_plain in encoder_states"] == pytest.approx(1)
    assert np.isnan(found["entropy", 2, "cka_with_plain in encoder_states"])
    assert np.isnan(found["entropy", 2, "cka_between_seeds in encoder_states"])
    alone = linear_cka(plain[0], plain[1], 1).value
    assert found["entropy", 0, "cka_between_seeds in encoder_states"] == pytest.approx(alone)
    expected = np.mean([linear_cka(plain[0], plain[other], 1).value for other in (1, 2)])
    assert found["none", 0, "cka_between_seeds in encoder_states"] == pytest.approx(expected)
    assert ("none", 0, "cka_with_plain in encoder_states") not in found
    alone = next(iter(paths))
    ((_, _, metric, value),) = activations.collect({alone: paths[alone]})
    assert metric == "cka_between_seeds in encoder_states"
    assert np.isnan(value)


def test_costs_come_from_run_json(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"steps": 10, "wall_seconds": 2.5}))
    one = Run("scan_jump", "lstm_attention", "none", 0.0, 0)
    assert list(run.collect({one: tmp_path / "run.json"})) == [(one, "train", "steps", 10), (one, "train", "wall_seconds", 2.5)]


def test_files_with_other_columns_are_refused(trained, tmp_path, monkeypatch):
    folder = trained[0][0][0]
    with pytest.raises(ValueError, match=r"of metrics\.csv: split, metric, value; of vectors\.csv: representation, item"):
        aggregate([folder / "metrics.csv", folder / "vectors.csv"], tmp_path / "table.csv")
    with pytest.raises(ValueError, match=r"of history\.csv: step, split, metric, value; of run\.json: split, metric, value\."):
        aggregate([folder / "history.csv", folder / "run.json"], tmp_path / "table.csv")
    other = folder.with_name("seed=8") / "metrics.csv"
    other.parent.mkdir()
    shutil.copy(folder / "history.csv", other)
    monkeypatch.setattr(integrity, "verify", lambda path: None)  # this file has no record
    with pytest.raises(ValueError, match=r"seed=8/metrics\.csv has the columns step, split, .*, other files split, metric"):
        aggregate([folder / "metrics.csv", other], tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


def test_scan_test_sets_have_categories_by_the_parts_of_a_command():
    pairs = dict(scan.commands())
    for command, expected in (
        ("jump", "conjunction/none; manner/plain; count/once; length/1-8"),
        ("turn left twice", "conjunction/none; manner/direction; count/twice; length/1-8"),
        ("walk opposite left and jump around right thrice", "conjunction/and; manner/around; count/thrice; length/25-32"),
        ("walk twice and jump thrice", "conjunction/and; manner/plain; count/thrice; length/1-8"),
        ("jump around left", "conjunction/none; manner/around; count/once; length/1-8"),  # of 8 actions
        ("walk after jump around left", "conjunction/after; manner/around; count/once; length/9-16"),
    ):
        assert scan.category(command, pairs[command]) == expected
    members, _ = scan_length.build(None, defaults("tasks.scan_length"))
    assert "category" not in members["train"].column_names
    assert len(set(members["test"]["category"])) > 10


def test_accuracy_of_several_categories_of_one_example():
    right = torch.tensor([[1.0, 0.0, 1.0]])
    categories = np.array(["manner/around; count/once", "manner/plain; count/once", "manner/around; count/twice"])
    (found,) = metrics.by_category(right, categories)
    # "manner" and "count" contain every example, so they are not reported as categories.
    assert found == {"manner/around": 1.0, "manner/plain": 0.0, "count/once": 0.5, "count/twice": 1.0}
