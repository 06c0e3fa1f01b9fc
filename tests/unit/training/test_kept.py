"""Plug-ins that keep what they computed are refused: their numbers would depend on other runs, and on interruptions."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import compositional.regularizers
from compositional.evaluation import metrics
from compositional.regularizers import smoothness
from compositional.training.loop import train_runs
from compositional.training.plugin_errors import PluginError
from compositional.training.state import fresh_state

HEAD = """
import torch
KEPT = {}
def prepare(parameters, split):
    return {}
"""
FIRST = """
def penalty(step):
    start = KEPT if %r else step.prepared
    for name, weight in step.weights.items():
        start.setdefault(name, weight.detach().clone())
    return sum((weight - start[name]).square().flatten(1).sum(1) for name, weight in step.weights.items())
"""
PREVIOUS = """
def penalty(step):
    shown = next(iter(step.representations)).values
    now = shown.flatten(1)
    before = KEPT.get("states", now.detach())
    KEPT["states"] = now.detach()
    return (now - before.mean()).square().mean(1)
"""
IN_PLACE = """
def perturb(step, shown):
    return shown.values.add_(0.1 * step.normal(shown.values.shape[1:]))
def penalty(step):
    return sum(shown.squared_norm() for shown in step.representations)
"""


def trained(case, seeds=(0, 1)):
    train_runs(case, [fresh_state(case, seed, 0.1) for seed in seeds], metrics.measure)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (FIRST % True, "the penalty changes with what was computed before"),
        (FIRST % False, "the penalty changes with what was computed before"),
        (PREVIOUS, "the penalty .*changes"),
        (IN_PLACE, "perturb: it changes"),
    ],
)
def test_a_regularizer_that_keeps_or_changes_what_it_is_shown_is_refused(problem, tmp_path, monkeypatch, source, complaint):
    (tmp_path / "keeps.py").write_text(HEAD + source)
    monkeypatch.setattr(compositional.regularizers, "__path__", [*compositional.regularizers.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "compositional.regularizers.keeps", raising=False)
    module = import_module("compositional.regularizers.keeps")
    case = problem("cnn", "entropy")
    own = replace(case.regularizer, penalty=module.penalty, prepare=module.prepare, perturb=getattr(module, "perturb", None))
    with pytest.raises(PluginError, match=complaint):
        trained(replace(case, regularizer=own))


def test_a_regularizer_that_reads_a_file_is_refused(problem, tmp_path, monkeypatch):
    """Nothing would be made again if the file changed."""
    (tmp_path / "vectors.txt").write_text("2.0")
    monkeypatch.chdir(tmp_path)
    case = problem("cnn", "entropy")

    def penalty(step):
        return float(Path("vectors.txt").read_text()) * sum(shown.squared_norm() for shown in step.representations)

    with pytest.raises(PermissionError, match=r"may read no file, .*: not .*vectors\.txt"):
        trained(replace(case, regularizer=replace(case.regularizer, penalty=penalty)))


class Plain(nn.Module):
    def __init__(self, parameters, task):
        super().__init__()
        self.output, self.mean = nn.Linear(int(np.prod(task["image_shape"])), task["classes"]), None
        self.words, self.key = np.array(["left", "right"]), 2**64  # may be there

    def forward(self, images):
        return self.output(images.flatten(1))


def standardizes_by_the_first_batch(self, images):
    if self.mean is None:
        self.mean = images.mean()
    return self.output((images - self.mean).flatten(1))


def test_a_network_that_keeps_a_statistic_of_the_first_batch_is_refused(problem):
    case = problem("cnn")
    network = type("Network", (Plain,), {"forward": standardizes_by_the_first_batch})
    with pytest.raises(PluginError, match="the output changes with what was computed before"):
        trained(replace(case, model=replace(case.model, Network=network, REPRESENTATIONS={})))


def test_words_and_large_numbers_in_a_network_are_allowed(problem):
    case = problem("cnn")
    trained(replace(case, model=replace(case.model, Network=Plain, REPRESENTATIONS={})), (0,))


nan = float("nan")


def with_a_constant(scale, step):
    return scale * smoothness.penalty(step)


def test_a_partial_function_next_to_a_constant_that_is_not_a_number_is_allowed(problem):
    case = problem("lstm_attention", "smoothness")
    penalty = functools.partial(with_a_constant, 2.0)
    trained(replace(case, regularizer=replace(case.regularizer, penalty=penalty)))


def test_outputs_of_a_member_that_a_task_does_not_have_are_refused(problem):
    case = problem("cnn")
    case.settings["record_outputs"] = ["tset"]
    with pytest.raises(ValueError, match=r"training\.record_outputs: task .* has no 'tset'\. Allowed: train, "):
        trained(case)
