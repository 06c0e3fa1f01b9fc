"""Generators whose seed is None are refused in plug-ins."""

from __future__ import annotations

import random
from types import FunctionType

import numpy as np
import pytest
from scipy.sparse.linalg import svds

from compositional.records.undeclared import no_random_numbers


def _drawn(make, seed):
    return make(seed)


# The same in a plug-in.
drawn = FunctionType(_drawn.__code__, {"__name__": "compositional.tasks.mine"})


@pytest.mark.parametrize(
    ("make", "generator"),
    [
        (lambda: np.random.default_rng, "default_rng"),
        (lambda: random.Random, "random.Random"),
        (lambda: random.Random(3).seed, "random.Random"),
    ],
)
def test_a_generator_whose_seed_is_none_is_refused_but_not_those_within_libraries(make, generator):
    message = f"mine draws random numbers from {generator} with None as its seed, so each call gives another result"
    with pytest.raises(ValueError, match=message), no_random_numbers("mine"):
        drawn(make(), None)
    with no_random_numbers("mine"):
        drawn(make(), 3)
        svds(np.eye(4), 1, random_state=3)  # makes another generator without a seed, and does not draw from it
    drawn(make(), None)
