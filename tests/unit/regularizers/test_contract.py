"""What every regularizer must do with every compatible model, on small problems (support/small.yaml).

models/test_contract.py tests that lambda = 0 equals none, and that runs do not depend on their neighbors.
"""

from __future__ import annotations

import pytest
import torch
from support import small

from compositional.training.pack import Pack
from compositional.training.problem import prepare, width_of
from compositional.training.state import fresh_state

REGULARIZERS = small.names("regularizers")
COMBINATIONS = list(small.combinations())


def pack_of(model: str, regularizer: str) -> Pack:
    """Two runs, the second without the term (lambda = 0); only one if the model computes runs one after the other."""
    case = small.problem(model, regularizer)
    runs = [(0, 0.1), (1, 0.0)][: width_of(case)]
    pack = Pack(case, [fresh_state(case, seed, strength) for seed, strength in runs], prepare(case))
    size = case.settings["batch_size"]
    pack.rows.copy_(torch.from_numpy(pack.train.draw(0, range(len(runs)), size).copy()))
    pack.noise.draw(0)
    pack.dropout.draw(0)
    return pack


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_every_kind_of_task_that_it_applies_to_has_a_small_model(regularizer):
    asked = small.configuration()
    applies = small.entry("regularizers", regularizer).get("kinds") or asked.declared("regularizers", regularizer)["APPLIES_TO"]
    models = {model for model, other in COMBINATIONS if other == regularizer}
    tasks = [small.entry("models", model)["trains_on"] for model in models]
    assert {asked.declared("tasks", task)["KIND"] for task in tasks} == set(applies)


@pytest.mark.parametrize(("model", "regularizer"), COMBINATIONS)
def test_the_penalty_is_one_number_per_run_with_a_gradient_only_for_that_runs_weights(model, regularizer):
    pack = pack_of(model, regularizer)
    _, penalty = pack._objective()
    assert penalty.shape == (len(pack.states),)
    assert penalty.isfinite().all()
    if not penalty.requires_grad:  # it acts on representations only
        assert pack.problem.regularizer.perturb
        return
    gradients = torch.autograd.grad(penalty[0], list(pack.weights.values()), allow_unused=True)
    gradient = torch.cat([gradient.flatten(1) for gradient in gradients if gradient is not None], 1)
    assert gradient.isfinite().all()
    assert gradient[0].abs().sum() > 0
    assert gradient[1:].abs().sum() == 0


@pytest.mark.parametrize(("model", "regularizer"), small.of_each_kind())
def test_a_step_stays_on_the_device_and_computes_the_same(model, regularizer, assert_stays):
    assert_stays(small.problem(model, regularizer))
