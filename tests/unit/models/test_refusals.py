"""Options of models that do not fit a task or each other are refused before training."""

from __future__ import annotations

import numpy as np
import pytest

from compositional.models import hierarchical_tensor_factorization, kernel_machine
from compositional.plugins import defaults


@pytest.mark.parametrize(("shares", "problem"), [([1, 1], "must sum to 1; their sum is 2"), ([1.0], "must be 2 numbers")])
def test_shares_of_a_kernel_must_be_one_per_component_and_sum_to_1(shares, problem):
    options = defaults("models.kernel_machine") | {"activation": "relu", "similarities": [], "grid": 0, "shares": shares}
    with pytest.raises(ValueError, match=problem):
        kernel_machine.family(options, 2)


def test_a_matricization_names_modes_of_the_tensor():
    options = defaults("models.hierarchical_tensor_factorization") | {"widths": [4]}
    with pytest.raises(ValueError, match=r"matricizations \[\[1, 3\]\] name modes beyond 2, the order of the task's tensor"):
        hierarchical_tensor_factorization.initialize(options, {"shape": [8, 8]}, np.random.default_rng(0))
