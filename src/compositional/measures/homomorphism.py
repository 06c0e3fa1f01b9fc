"""How well the representation of a whole follows from those of its parts: the relative error of one linear operator per rule.

The idea is An and Du's homomorphism error (arXiv 2601.18858). Their operator is fitted to the mean of its own inputs, which a
linear operator reproduces exactly for every network. Here the target is the representation of the whole, read alone. The operator
is fitted to wholes of the training set and evaluated on others. Errors are relative to the variance of the target, so scaling the
representations changes nothing.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from compositional.measures.compositionality import Measure

SHUFFLES = 20
_PENALTIES = np.logspace(-6, 2, 9)  # of ridge regression on inputs of variance 1, chosen by leaving out one training whole


def relative_error(wholes: np.ndarray, predicted: np.ndarray) -> float:
    """Squared errors divided by squared distances from the mean of `wholes` (n, D). 1: no better than that mean. NaN if all
    wholes are equal."""
    spread = np.square(wholes - wholes.mean(0)).sum()
    return float(np.square(wholes - predicted).sum() / spread) if spread > 0 else np.nan


def _scaled(parts: np.ndarray) -> np.ndarray:
    spread = np.sqrt(np.square(parts - parts.mean(0)).mean())
    return parts / spread if spread > 0 else parts


def held_out_error(parts: np.ndarray, wholes: np.ndarray, seen: np.ndarray) -> Measure:
    """The error on held-out wholes of an operator fitted to the seen ones. Shuffled: fitted after the seen wholes are permuted.

    Args:
        parts: (n, P), the concatenated representations of each whole's parts.
        wholes: (n, D).
        seen: (n,), boolean.
    """
    inputs, source = _scaled(parts), np.random.default_rng(0)

    def error(targets: np.ndarray) -> float:
        operator = RidgeCV(_PENALTIES).fit(inputs[seen], targets)
        return relative_error(wholes[~seen], operator.predict(inputs[~seen]))

    shuffled = [error(source.permutation(wholes[seen])) for _ in range(SHUFFLES)]
    return Measure(error(wholes[seen]), np.array(shuffled))


def seen_error(parts: np.ndarray, wholes: np.ndarray) -> float:
    """The error in distribution: each fifth of the wholes is predicted by an operator fitted to the others. Shapes as above."""
    folds = KFold(5, shuffle=True, random_state=0)
    return relative_error(wholes, cross_val_predict(RidgeCV(_PENALTIES), _scaled(parts), wholes, cv=folds))
