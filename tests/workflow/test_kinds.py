"""A new kind of task: three new modules, without any edit, are enough to build a figure."""

from __future__ import annotations

import pandas as pd
import pytest
from support.project import Project

pytestmark = pytest.mark.workflow

KIND = '''
"""Batches of numbers with a number as the target."""

from dataclasses import dataclass

import numpy as np
import torch
from datasets import DatasetDict

from compositional import randomness

LOSSES = ("squared",)
SAID = ("unit",)
COLUMNS = {"number": ("Value",), "target": ("Value",)}
INPUTS = ("number",)
BATCH_MULTIPLE = 4


@dataclass(frozen=True)
class Batch:
    """numbers, targets: (R, B)."""

    numbers: torch.Tensor
    targets: torch.Tensor

    def output_shape(self, about):
        return (self.numbers.shape[1],)

    def single(self):
        return self.numbers[0]

    def packed(self, outputs):
        return outputs.unsqueeze(0)

    def losses(self, outputs, loss):
        return (outputs - self.targets).square()

    def example_losses(self, losses):
        return losses

    def metrics(self, outputs):
        return {"accuracy": ((outputs - self.targets).abs() < 0.5).to(outputs.dtype)}


class NumberSplit:
    def __init__(self, numbers, targets, device):
        self.numbers, self.targets = (torch.tensor(values, dtype=torch.float32, device=device) for values in (numbers, targets))

    def __len__(self):
        return len(self.numbers)

    def batch(self, rows):
        return Batch(self.numbers[rows], self.targets[rows])

    def training_batches(self, batch_size):
        return self.batch

    def draw(self, key, steps, batch_size):
        return np.stack([randomness.generator(key, step).integers(len(self), size=batch_size) for step in steps])

    def evaluation_batches(self, runs, batch_size, limit=None):
        rows = torch.arange(min(len(self), limit or len(self)))
        return [(part, self.batch(part.expand(runs, -1))) for part in rows.split(batch_size)]


def load(folder, device):
    members = DatasetDict.load_from_disk(str(folder))
    return {name: NumberSplit(member["number"][:], member["target"][:], device) for name, member in members.items()}
'''
TASK = '''
"""Twice a number: training shows the small ones."""

from datasets import Dataset, DatasetDict

KIND = "number"
DATASET = "symbols"
PARAMETERS = {"largest": {"type": "integer", "minimum": 1, "default": 3, "description": "of the numbers that train"}}


def build(raw, parameters):
    whole = {"train": range(parameters["largest"] + 1), "test": range(parameters["largest"] + 1, 2 * parameters["largest"])}
    members = {name: Dataset.from_dict({"number": list(own), "target": [2 * n for n in own]}) for name, own in whole.items()}
    return DatasetDict(members), {
        "in_distribution": "train", "unit": "none", "disjoint": [{"columns": ["number"], "members": ["test"]}],
    }
'''
MODEL = '''
"""A line through the origin."""

import torch

KIND = "number"
REPRESENTATIONS = ()
PARAMETERS = {}


def initialize(parameters, task, source):
    return {"slope": torch.from_numpy(source.standard_normal(1, dtype="float32"))}


def forward(parameters, weights, batch, tap):
    return weights["slope"] * batch.numbers
'''
TRAINING = {"steps": 200, "batch_size": 4, "record_every": 100, "curve_examples": 16, "learning_rate": 0.1, "loss": "squared"}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    project = Project(tmp_path_factory.mktemp("kinds"))
    for name, source in {"kinds/number": KIND, "tasks/doubling": TASK, "models/line": MODEL}.items():
        (project.folder / f"src/compositional/{name}.py").write_text(source)
    return project


def overlay(training: dict) -> dict:
    grids = [{"task": "doubling", "model": "line", "regularizers": {}, "seeds": 2}]
    figures = {"ablation": {"grids": grids}}
    return {"tasks": {"doubling": {"training": training}}, "studies": {"compositional_regularization": {"figures": figures}}}


def test_a_new_kind_of_task_is_split_trained_evaluated_and_drawn(project):
    project.snakemake("results/figures/ablation.pdf", overlay=project.overlay(overlay(TRAINING)))
    table = pd.read_csv(project.folder / "results/tables/ablation.csv")
    found = table[table.metric == "accuracy"].groupby("split").value
    assert found.count().to_dict() == {"train": 2, "test": 2}
    assert found.min().to_dict() == {"train": 1.0, "test": 1.0}  # the slope is learned, so it also fits large numbers
    assert (project.folder / "results/figures/ablation.pdf").stat().st_size > 0


def test_settings_are_checked_against_the_declarations_of_a_kind(project):
    wrong = {"batch_size": 6, "loss": "hinge", "influence_examples": 16}
    message = project.snakemake("--dry-run", overlay=project.overlay(overlay(TRAINING | wrong)), succeeds=False)
    for part in (
        "training.batch_size of number tasks must be a multiple of 4, 'doubling' has 6",
        "training.loss 'hinge' is not for 'doubling', a task of kind 'number', which takes squared",
        "training.influence_examples is for tasks of kind image, point, sequence, 'doubling' is a task of kind 'number'",
    ):
        assert part in message
