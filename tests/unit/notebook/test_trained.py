"""A trained run answers for new inputs of every kind of task, and says what it does not know."""

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
    """A run as it is before training."""
    case = small.problem(model, task=task)
    weights = {name: values[None] for name, values in (initial_weights(case, 0) | buffers(case, 0)).items()}
    empty = pd.DataFrame(columns=["split", "metric", "value"])
    return TrainedRun(Run(case.task, model, "none", 0.0, 0), status, 4, case, weights, empty, empty, None)


def known_inputs(split):
    """The first five examples of a split, as someone would give them."""
    if hasattr(split, "pool"):
        return split.pool[split.chosen[:5]].numpy()
    for name in ("images", "points", "combinations"):
        if hasattr(split, name):
            return np.asarray(getattr(split, name))[:5]
    return None


def own_outputs(case, weights, split):
    """What evaluation computes of the first five examples of a split."""
    calibrate = getattr(case.model, "calibrate", None)
    if calibrate:
        batches = case.splits["train"].evaluation_batches(1, 256, 512)
        weights = weights | calibrate(case.model_parameters, weights, (batch for _, batch in batches))
    _, batch = split.evaluation_batches(1, 256)[0]
    with torch.no_grad():
        return case.model.forward(case.model_parameters, weights, batch, silent_tap)[0].numpy()


@pytest.mark.parametrize("kind", ["image", "composite", "combination", "point", "puzzle"])
def test_what_a_run_makes_of_a_known_example_is_what_evaluation_makes_of_it(kind):
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


def test_an_expression_gives_a_number():
    run = opened("lstm_regressor")
    split = run.problem.splits["test"]
    symbols = run.problem.about["symbols"]
    texts = ["".join(symbols[index] for index in split.inputs[row, : split.lengths[row]]) for row in range(5)]
    expected = own_outputs(run.problem, run.weights, split)
    np.testing.assert_allclose(run.predict(texts), expected[:5, 0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="has no symbol '%'"):
        run.predict("1%2")


def test_a_tensor_is_asked_for_all_its_entries():
    run = opened("matrix_factorization", "matrix_completion")
    assert run.outputs("test").shape == tuple(run.problem.about["shape"])
    with pytest.raises(NotImplementedError, match=r"ask for its \.outputs"):
        run.predict([1, 2])


def test_sentences_are_written_in_the_order_asked_for_and_of_any_length():
    run = opened("gru_attention", "scan_jump")
    sentences = ["walk", "jump twice and walk left", "run"]
    written = run.predict(sentences, longest=7)
    assert written == [run.predict(sentence, longest=7) for sentence in sentences]
    assert max(len(text.split()) for text in run.predict(sentences)) <= 4 * int(run.problem.splits["train"].lengths.max())
    long = " and ".join(["jump twice"] * 30)  # no command of SCAN is so long
    assert isinstance(run.predict(long, longest=3), str)
    shown = run.representations(sentences)
    assert [values.shape for values in shown["word_embedding"]] == [(2, 12), (6, 12), (2, 12)]  # with the end of a sentence
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
        ("dense_network", None, [[1, 99]], r"takes items \(n, 2\), below"),
        ("multilayer_perceptron", None, [[1, 2, 3]], r"takes points \(n, 2\), these are \(1, 3\)"),
    ],
)
def test_what_a_task_does_not_know_is_refused(model, task, inputs, message):
    with pytest.raises(ValueError, match=message):
        opened(model, task).predict(inputs)


def test_a_run_that_diverged_answers_nothing():
    with pytest.raises(ValueError, match="its last finite weights are not a result"):
        opened("cnn", status="diverged").predict(np.zeros((1, 8, 16)))


def test_a_run_that_is_not_there_is_answered_with_its_neighbors(tmp_path):
    folder = tmp_path / "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"lambda=0\.2/seed=0 holds no trained run .*near it: .*lambda=0\.1/seed=0"):
        open_run(str(folder).replace("0.1", "0.2"))


def test_the_package_offers_both_and_imports_nothing_for_it():
    assert compositional.open is open_run
    with pytest.raises(AttributeError, match="no attribute 'opne'; it offers open, train"):
        compositional.opne  # noqa: B018
    code = "import compositional, sys; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
