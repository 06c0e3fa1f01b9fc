"""How well a whole's representation follows from those of its parts: the relative error of one linear operator per rule.

The idea is An and Du's homomorphism error (arXiv 2601.18858). Theirs is fitted to the mean of the operator's own inputs, which a
linear operator gives exactly, whatever the network. Here the target is the representation of the whole, read alone; the operator
is fitted on wholes of training and judged on others; and errors are relative to the variance of what is predicted, so that
scaling the representations changes nothing.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from compositional.measures.compositionality import Measure

SHUFFLES = 20
_PENALTIES = np.logspace(-6, 2, 9)  # of ridge regression, chosen by leaving out one training whole; inputs have variance 1


def relative_error(wholes: np.ndarray, predicted: np.ndarray) -> float:
    """Squared errors over squared distances from the mean of `wholes` (n, D): 1 is no better than that mean. NaN where all wholes
    are the same."""
    spread = np.square(wholes - wholes.mean(0)).sum()
    return float(np.square(wholes - predicted).sum() / spread) if spread > 0 else np.nan


def _scaled(parts: np.ndarray) -> np.ndarray:
    spread = np.sqrt(np.square(parts - parts.mean(0)).mean())
    return parts / spread if spread > 0 else parts


def held_out_error(parts: np.ndarray, wholes: np.ndarray, seen: np.ndarray) -> Measure:
    """The error on wholes that training does not show, of an operator fitted on those that it does. Shuffled: fitted on wholes
    that were permuted among those seen.

    Args:
        parts: (n, P), the representations of a whole's parts side by side. wholes: (n, D). seen: (n,), boolean.
    """
    inputs, source = _scaled(parts), np.random.default_rng(0)

    def error(targets: np.ndarray) -> float:
        operator = RidgeCV(_PENALTIES).fit(inputs[seen], targets)
        return relative_error(wholes[~seen], operator.predict(inputs[~seen]))

    shuffled = [error(source.permutation(wholes[seen])) for _ in range(SHUFFLES)]
    return Measure(error(wholes[seen]), np.array(shuffled))


def seen_error(parts: np.ndarray, wholes: np.ndarray) -> float:
    """The error in distribution: each fifth of the wholes is predicted by an operator fitted on the others. Shapes as above."""
    folds = KFold(5, shuffle=True, random_state=0)
    return relative_error(wholes, cross_val_predict(RidgeCV(_PENALTIES), _scaled(parts), wholes, cv=folds))
