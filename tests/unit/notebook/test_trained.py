"""A trained run computes outputs for new inputs of every kind of task, and refuses inputs that its task does not know."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from support import small

import compositional
from compositional.layers.tap import silent_tap
from compositional.notebook.trained import TrainedRun, open_run
from compositional.runs import Run
from compositional.training.problem import buffers, initial_weights


def opened(model, task=None, status="done"):
    """An untrained run, opened like a trained one."""
    case = small.problem(model, task=task)
    weights = {name: values[None] for name, values in (initial_weights(case, 0) | buffers(case, 0)).items()}
    empty = pd.DataFrame(columns=["split", "metric", "value"])
    return TrainedRun(Run(case.task, model, "none", 0.0, 0), status, 4, case, weights, empty, empty, None)


def known_inputs(split):
    """The first five examples of a split, in the form that a user would give."""
    if hasattr(split, "pool"):
        return split.pool[split.chosen[:5]].numpy()
    for name in ("images", "points", "combinations"):
        if hasattr(split, name):
            return np.asarray(getattr(split, name))[:5]
    return None


def own_outputs(case, weights, split):
    """The outputs that evaluation computes for the first five examples of a split."""
    calibrate = getattr(case.model, "calibrate", None)
    if calibrate:
        batches = case.splits["train"].evaluation_batches(1, 256, 512)
        weights = weights | calibrate(case.model_parameters, weights, (batch for _, batch in batches))
    _, batch = split.evaluation_batches(1, 256)[0]
    with torch.no_grad():
        return case.model.forward(case.model_parameters, weights, batch, silent_tap)[0].numpy()


@pytest.mark.parametrize("kind", ["image", "composite", "combination", "point", "puzzle"])
def test_outputs_for_known_examples_equal_those_of_evaluation(kind):
    entry = small.entry("kinds", kind)
    run = opened(entry["model"], entry["task"])
    name, split = [*run.problem.splits.items()][-1]
    inputs = known_inputs(split)
    expected = own_outputs(run.problem, run.weights, split)
    np.testing.assert_allclose(run.outputs(inputs), expected[:5], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run.outputs(name)[:5], expected[:5])
    predicted = run.predict(inputs)
    if kind in ("composite", "combination"):
        assert predicted.tolist() == np.sign(expected[:5, 0]).tolist()
    else:
        assert predicted.tolist() == expected[:5].argmax(-1).tolist()
    assert all(len(values) == 5 for values in run.representations(inputs).values())


def test_the_output_for_an_expression_is_a_number():
    run = opened("lstm_regressor")
    split = run.problem.splits["test"]
    symbols = run.problem.about["symbols"]
    texts = ["".join(symbols[index] for index in split.inputs[row, : split.lengths[row]]) for row in range(5)]
    expected = own_outputs(run.problem, run.weights, split)
    np.testing.assert_allclose(run.predict(texts), expected[:5, 0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="has no symbol '%'"):
        run.predict("1%2")


def test_a_tensor_returns_all_its_entries():
    run = opened("matrix_factorization", "matrix_completion")
    assert run.outputs("test").shape == tuple(run.problem.about["shape"])
    with pytest.raises(NotImplementedError, match=r"ask for its \.outputs"):
        run.predict([1, 2])


def test_sentences_of_any_length_are_decoded_in_the_given_order():
    run = opened("gru_attention", "scan_jump")
    sentences = ["walk", "jump twice and walk left", "run"]
    written = run.predict(sentences, longest=7)
    assert written == [run.predict(sentence, longest=7) for sentence in sentences]
    assert max(len(text.split()) for text in run.predict(sentences)) <= 4 * int(run.problem.splits["train"].lengths.max())
    long = " and ".join(["jump twice"] * 30)  # longer than any command of SCAN
    assert isinstance(run.predict(long, longest=3), str)
    shown = run.representations(sentences)
    assert [values.shape for values in shown["word_embedding"]] == [(2, 12), (6, 12), (2, 12)]  # including the end symbol
    alone = run.representations("run")["word_embedding"][0]
    np.testing.assert_array_equal(shown["word_embedding"][2], alone)


@pytest.mark.parametrize(
    ("model", "task", "inputs", "message"),
    [
        (
            "gru_attention",
            "scan_jump",
            "jmp twice",
            r"task 'scan_jump' has no word 'jmp'; did you mean 'jump'\? Its 13 words: after",
        ),
        ("gru_attention", "scan_jump", [], "there are no inputs"),
        ("cnn", None, np.zeros((2, 5, 5)), r"images of task 'digits_concat' are \(n, 1, 8, 16\), these are \(2, 5, 5\)"),
        ("cnn", None, np.full((1, 8, 16), 300), "pixels from 0 to 255, these have 300 to 300"),
        ("dense_network", None, [[1, 99]], r"takes items \(n, 2\), whole numbers below"),
        ("dense_network", None, [[-1, 1]], r"takes items \(n, 2\), whole numbers below"),
        ("dense_network", None, [1, 1], r"takes items \(n, 2\), whole numbers below"),
        ("dense_network", None, [[0.9, 1]], r"takes items \(n, 2\), whole numbers below"),
        ("cnn", None, np.full((1, 8, 16), -1), "pixels from 0 to 255, these have -1 to -1"),
        ("multilayer_perceptron", None, [1, 2], r"takes points \(n, 2\), these are \(2,\)"),
        ("multilayer_perceptron", None, [[1, 2, 3]], r"takes points \(n, 2\), these are \(1, 3\)"),
    ],
)
def test_inputs_that_a_task_does_not_know_are_refused(model, task, inputs, message):
    with pytest.raises(ValueError, match=message):
        opened(model, task).predict(inputs)


@pytest.mark.parametrize(
    ("model", "task", "known"),
    [
        ("gru_attention", "scan_jump", "jump"),
        ("lstm_regressor", None, "1+2"),
        ("cnn", None, np.zeros((8, 16))),
        ("dense_network", None, [0, 0]),
        ("multilayer_perceptron", None, [0.0, 0.5]),
    ],
)
def test_inputs_of_another_type_are_refused_in_a_sentence(model, task, known):
    """A number, a mapping, an iterator, inputs of another task, one among others, and lists of unequal lengths."""
    run = opened(model, task)
    for wrong in (3, None, np.array(3), {"jump": 1}, {"jump"}, iter(["jump"]), b"jump"):
        with pytest.raises(ValueError, match=r"^inputs are a list or an array|takes "):
            run.predict(wrong)
        with pytest.raises(ValueError, match=r"^inputs are a list or an array|takes "):
            run.representations(wrong)
    other = [None] if isinstance(known, str) else ["jump"]
    for wrong in (other, [known, *other], [[1, 2], [3]], [{"jump": 1}]):
        with pytest.raises(ValueError, match=rf"task {run.problem.task!r} takes "):
            run.predict(wrong)
    if not isinstance(known, str):
        with pytest.raises(ValueError, match="takes an array of numbers, or lists of equal lengths: not"):
            run.predict("jump")


def test_sentences_have_no_outputs_of_their_own():
    run = opened("gru_attention", "scan_jump")
    for inputs in ("test", ["jump"]):
        with pytest.raises(ValueError, match=r"outputs of sentences depend on what was written before: use predict"):
            run.outputs(inputs)


def test_a_metric_is_found_by_its_name_and_member():
    run = opened("cnn")
    run.metrics = pd.DataFrame([("test", "accuracy", 0.5), ("train", "loss", 0.25)], columns=["split", "metric", "value"])
    assert (run.metric(), run.metric("loss", "train")) == (0.5, 0.25)
    with pytest.raises(KeyError, match="has no 'loss' of 'test'; it has accuracy of test, loss of train"):
        run.metric("loss")


@pytest.mark.parametrize("longest", [0, -1, 2.5, "7"])
def test_a_prediction_without_a_length_is_refused(longest):
    with pytest.raises(ValueError, match="longest must be a whole number of at least 1: it is"):
        opened("gru_attention", "scan_jump").predict("jump", longest)


def test_the_error_for_a_member_that_a_task_lacks_names_the_members():
    with pytest.raises(ValueError, match=r"task 'digits_concat' has no member 'tets'; did you mean 'test'\? Allowed: "):
        opened("cnn", "digits_concat").outputs("tets")


def test_pixels_are_not_rounded():
    run = opened("cnn", small.entry("kinds", "image")["task"])
    images = known_inputs([*run.problem.splits.values()][-1])
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 255 as pixels, these have fractions"):
        run.predict(images / 255)


def test_a_diverged_run_computes_no_outputs():
    with pytest.raises(ValueError, match="its last finite weights are not a result"):
        opened("cnn", status="diverged").predict(np.zeros((1, 8, 16)))


def test_the_error_for_a_missing_run_names_similar_runs(tmp_path):
    folder = tmp_path / "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"lambda=0\.2/seed=0 holds no trained run .*near it: .*lambda=0\.1/seed=0"):
        open_run(str(folder).replace("0.1", "0.2"))
    with pytest.raises(FileNotFoundError, match=r"cnn is not a run's folder, .*near it: .*lambda=0\.1/seed=0"):
        open_run(folder.parents[2])


def test_the_package_offers_both_functions_without_importing_libraries():
    assert compositional.open is open_run
    with pytest.raises(AttributeError, match="no attribute 'opne'; it offers open, train"):
        compositional.opne  # noqa: B018
    code = "import compositional, sys; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
