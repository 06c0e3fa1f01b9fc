"""How compositional a representation is: measures of a matrix of representations, given what its rows are made of.

Everywhere `representations` is (n, D), one row per item; `factors` is (n, F) of integers, the value of each of F factors (a
command's verb, direction, ...; a picture's left and right digit). Every measure comes with its shuffled value: the same
computation after the rows of the representations are permuted at random, so that the same vectors belong to other items. This
keeps the geometry of the vectors and destroys every relation to structure. (`relative_distance` draws other items instead.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.linear_model import ridge_regression
from sklearn.preprocessing import OneHotEncoder

SHUFFLES = 100


@dataclass(frozen=True)
class Measure:
    """A value, and its values under shuffling (S,)."""

    value: float
    shuffled: np.ndarray

    @staticmethod
    def mean(measures: Sequence[Measure]) -> Measure:
        """The mean of several measures; shuffled values are averaged per shuffle."""
        return Measure(float(np.mean([one.value for one in measures])), np.mean([one.shuffled for one in measures], axis=0))

    def rows(self, name: str) -> dict[str, float]:
        """The value, and the mean and the 2.5 % and 97.5 % quantiles of the shuffles, by name."""
        low, high = np.quantile(self.shuffled, [0.025, 0.975])
        mean = float(np.mean(self.shuffled))
        null = {"shuffled": mean, "2.5 %": float(low), "97.5 %": float(high)}
        return {name: self.value} | {f"{name} ({kind})": value for kind, value in null.items()}


def _against_shuffles(compute: Callable[[np.ndarray], float], count: int, shuffles: int) -> Measure:
    """compute: the value if item i has the representation of item order[i], given order (count,)."""
    # All networks use the same permutations, so that they are compared under the same null distribution.
    source = np.random.default_rng(0)
    return Measure(compute(np.arange(count)), np.array([compute(source.permutation(count)) for _ in range(shuffles)]))


def means(representations: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean representation of every combination of factors that occurs, (m, D), and these m combinations, (m, F), sorted."""
    found, inverse, counts = np.unique(factors, axis=0, return_inverse=True, return_counts=True)
    sums = np.zeros((len(found), representations.shape[1]))
    np.add.at(sums, inverse.reshape(-1), representations)
    return sums / counts[:, None], found


def factor_distances(factors: np.ndarray) -> np.ndarray:
    """The number of factors in which two items differ, for every pair of items: condensed, (n (n - 1) / 2,)."""
    return pdist(factors, "hamming") * factors.shape[1]


def topographic_similarity(representations: np.ndarray, distances: np.ndarray, shuffles: int = SHUFFLES) -> Measure:
    """Whether similar items have similar representations: Brighton and Kirby (Artificial Life, 2006).

    Spearman's correlation, over pairs of items, between the distance of the inputs and the Euclidean distance of the
    representations. 1: same order; 0: unrelated (the shuffled values have mean 0, which makes it a Mantel test). Also 0 if all
    representations, or all inputs, are equally far apart, because then there is no order.

    Args:
        distances: of the inputs, condensed (n (n - 1) / 2,), as returned by `factor_distances`.
    """
    if len(set(distances)) < 2:
        return Measure(0.0, np.zeros(shuffles))

    scale = np.abs(representations - representations.mean(0)).max()
    rows = representations / scale if scale > 0 else representations

    def compute(order: np.ndarray) -> float:
        # Rounded, so that distances that differ only in the last bits are ties.
        own = np.round(pdist(rows[order]), 10)
        return 0.0 if np.ptp(own) == 0 else float(spearmanr(distances, own).statistic)

    return _against_shuffles(compute, len(rows), shuffles)


def tree_reconstruction_error(representations: np.ndarray, factors: np.ndarray, shuffles: int = SHUFFLES) -> Measure:
    """The deviation of representations from a sum of parts: TRE, Andreas (ICLR 2019), equation 2.

    Composition is addition and the distance is squared Euclidean. The best parts are then an exact least-squares fit of one
    vector per value of each factor (and a common one). The error, a mean over items, depends on the scale of the vectors, so it
    is divided by its mean over derivations shuffled among the items. 0: every representation is exactly the sum of its factors'
    vectors; 1: no better than with the factors of other items. Also 1 if all representations are equal.
    """
    design = OneHotEncoder(sparse_output=False).fit_transform(factors)
    span, strengths, _ = np.linalg.svd(design, full_matrices=False)  # contains constants: the columns of a factor sum to 1
    span = span[:, strengths > 1e-9 * strengths[0]]

    centered = representations - representations.mean(0)

    def compute(order: np.ndarray) -> float:
        rows = centered[order]
        return float(np.square(rows - span @ (span.T @ rows)).sum(1).mean())

    error = _against_shuffles(compute, len(centered), shuffles)
    usual = float(error.shuffled.mean())
    if not usual > 0:
        return Measure(1.0, np.ones(shuffles))
    return Measure(error.value / usual, error.shuffled / usual)


def parallelism_score(representations: np.ndarray, factors: np.ndarray, factor: int, shuffles: int = SHUFFLES) -> Measure:
    """Whether a factor changes the representation in the same direction for all values of the others: Bernardi et al. (Cell,
    2020).

    For two values a, b of the factor, every combination of the other factors (a context) gives a coding vector r(a, context) -
    r(b, context). The score is the mean cosine between coding vectors of different contexts, over all pairs of contexts and then
    of values. Because the factors are named, the pairing of contexts is given, as in Ito et al. (NeurIPS 2022), and not searched
    for. 1: parallel; 0: unrelated. A coding vector of length zero counts as unrelated to all others.

    Args:
        factors: every combination must occur; the items of a combination are averaged.
        factor: the number of its column.

    Raises:
        ValueError: combinations are missing.
    """
    rows, cells = means(representations, factors)
    sizes = [len(np.unique(column)) for column in cells.T]
    if len(cells) != np.prod(sizes):
        raise ValueError(f"parallelism_score: {len(cells)} of {np.prod(sizes)} combinations of factors occur, all must")

    def compute(order: np.ndarray) -> float:
        # `means` sorts the combinations, so reshaping gives one axis per factor.
        grid = np.moveaxis(rows[order].reshape(*sizes, -1), factor, 0).reshape(sizes[factor], -1, rows.shape[1])
        scores = []
        for one, other in combinations(range(sizes[factor]), 2):
            vectors = grid[one] - grid[other]
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 1e-9 * np.abs(grid).max())
            contexts = len(units)
            scores.append((np.square(units.sum(0)).sum() - np.square(units).sum()) / (contexts * (contexts - 1)))
        return float(np.mean(scores))

    return _against_shuffles(compute, len(rows), shuffles)


def ccgp(representations: np.ndarray, factors: np.ndarray, factor: int, shuffles: int = 20) -> Measure:
    """Cross-condition generalization performance: does a linear decoder of one factor work in conditions not used to train it?

    Bernardi et al. (Cell, 2020). A linear classifier (ridge, penalty 1 at unit variance) of the factor's values is trained on the
    items with all values but one of another factor, and tested on the items with the value left out. The result is the mean
    accuracy over other factors and values left out. Shuffled, it is at chance, 1 / number of values.
    """
    centered = representations - representations.mean(0)
    scale = np.sqrt(np.square(centered).mean())
    scaled = centered / scale if scale > 0 else centered
    values, labels = np.unique(factors[:, factor], return_inverse=True)
    targets = 2.0 * np.eye(len(values))[labels] - 1
    tests = [
        factors[:, other] == value
        for other in range(factors.shape[1])
        if other != factor
        for value in np.unique(factors[:, other])
    ]

    def compute(order: np.ndarray) -> float:
        rows, scores = scaled[order], []
        for test in tests:
            mean, offset = rows[~test].mean(0), targets[~test].mean(0)
            # The same as RidgeClassifier, without its checks, which would take most of the time of such small fits.
            weight = ridge_regression(
                rows[~test] - mean, targets[~test] - offset, alpha=1.0, solver="cholesky", check_input=False
            )
            scores.append(np.mean(((rows[test] - mean) @ weight.T + offset).argmax(1) == labels[test]))
        return float(np.mean(scores))

    return _against_shuffles(compute, len(scaled), shuffles)


def _independence(first: np.ndarray, second: np.ndarray) -> float:
    """Unbiased Hilbert-Schmidt independence criterion of kernels (n, n): Song et al. (JMLR 2012), equation 5."""
    count = len(first)
    first, second = first - np.diag(np.diag(first)), second - np.diag(np.diag(second))
    return float(
        np.sum(first * second)
        + first.sum() * second.sum() / ((count - 1) * (count - 2))
        - 2 * first.sum(0) @ second.sum(0) / (count - 2)
    ) / (count * (count - 3))


def linear_cka(first: np.ndarray, second: np.ndarray, shuffles: int = SHUFFLES) -> Measure:
    """Similarity of two networks' representations of the same items: centered kernel alignment, Kornblith et al. (ICML 2019).

    Kernels are linear and estimates unbiased (Nguyen, Raghu, Kornblith, ICLR 2021), so two random representations of any width
    have mean similarity 0. 1: equal up to rotation, scale and shift. 0 if one of them is constant.

    Args:
        first, second: (n, D1) and (n, D2), with n of at least 4.
    """
    first, second = ((rows - rows.mean(0)) for rows in (first, second))
    first, second = (rows / scale if (scale := np.abs(rows).max()) > 0 else rows for rows in (first, second))
    own, other = first @ first.T, second @ second.T
    norms = _independence(own, own) * _independence(other, other)
    if not norms > 1e-24:
        return Measure(0.0, np.zeros(shuffles))

    def compute(order: np.ndarray) -> float:
        return _independence(own[np.ix_(order, order)], other) / np.sqrt(norms)

    return _against_shuffles(compute, len(own), shuffles)


def relative_distance(distances: np.ndarray, item: int, kind: Sequence[int], shuffles: int = SHUFFLES) -> Measure:
    """The mean distance of an item to the others of its kind, divided by the mean distance between any two items.

    0: the item coincides with its kind, like an embedding that encodes only the kind of a word; 1: as far away as any item.
    Shuffled: its distance to equally many other items drawn at random.

    Args:
        distances: (n, n) between all items, such as the embeddings of all words.
        kind: the places of the items of its kind, including itself, such as those of the verbs; at least two.
    """
    source = np.random.default_rng(0)
    usual = distances.sum() / (len(distances) * (len(distances) - 1))
    if not usual > 0:
        return Measure(0.0, np.zeros(shuffles))
    own = distances[item] / usual
    others = np.delete(np.arange(len(own)), item)
    drawn = [own[source.choice(others, len(kind) - 1, replace=False)].mean() for _ in range(shuffles)]
    return Measure(float(own[[place for place in kind if place != item]].mean()), np.array(drawn))
