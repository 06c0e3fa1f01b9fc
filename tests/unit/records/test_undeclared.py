"""Generators of NumPy whose seed is None are refused in plug-ins."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest
from scipy.sparse.linalg import svds

from compositional.records.undeclared import no_random_numbers


def _drawn(seed: int | None) -> float:
    return np.random.default_rng(seed).random()


# The same in a plug-in.
drawn = FunctionType(_drawn.__code__, {"np": np, "__name__": "compositional.tasks.mine"})


def test_a_generator_whose_seed_is_none_is_refused_but_not_those_within_libraries():
    message = "mine draws random numbers from default_rng with None as its seed, so each call gives another result"
    with pytest.raises(ValueError, match=message), no_random_numbers("mine"):
        drawn(None)
    with no_random_numbers("mine"):
        assert drawn(3) == drawn(3)
        svds(np.eye(4), 1, random_state=3)  # makes another generator without a seed, and does not draw from it
    drawn(None)
