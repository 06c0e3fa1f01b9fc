"""Compositionality measures on cases with a known answer: perfectly compositional, perfectly entangled, random, constant."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from compositional.measures import compositionality as measures

SIZES = (4, 2, 3, 3)  # SCAN's verbs, directions, manners, counts
FACTORS = np.array(list(product(*map(range, SIZES))))


def one_hot_sum() -> np.ndarray:
    """Every item is the sum of its factors' unit vectors: perfectly compositional, and all factors are alike."""
    return np.concatenate([np.eye(size)[FACTORS[:, index]] for index, size in enumerate(SIZES)], 1)


def sum_of_parts(width: int = 64, seed: int = 0) -> np.ndarray:
    """Every item is the sum of random vectors of its factors: perfectly compositional."""
    source = np.random.default_rng(seed)
    return sum(source.normal(size=(size, width))[FACTORS[:, index]] for index, size in enumerate(SIZES))


def entangled() -> np.ndarray:
    """Every item has its own direction: all distances are equal and nothing is shared."""
    return np.eye(len(FACTORS))


def random(width: int = 64, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(FACTORS), width))


def constant() -> np.ndarray:
    return np.ones((len(FACTORS), 5))


def by_factor(measure, representations: np.ndarray) -> list[float]:
    return [measure(representations, FACTORS, index, shuffles=3).value for index in range(len(SIZES))]


def test_factor_distances_count_the_factors_that_differ():
    assert measures.factor_distances(np.array([[0, 0, 0], [0, 1, 0], [2, 1, 5]])).tolist() == [1, 3, 2]


def test_topographic_similarity():
    distances = measures.factor_distances(FACTORS)
    # Distances between one-hot sums are sqrt(2 x number of different factors), so their order is the same.
    assert measures.topographic_similarity(one_hot_sum(), distances, 5).value == pytest.approx(1)
    assert measures.topographic_similarity(-3 * one_hot_sum() + 7, distances, 5).value == pytest.approx(1)
    assert measures.topographic_similarity(entangled(), distances, 5).value == 0
    assert measures.topographic_similarity(constant(), distances, 5).value == 0
    found = measures.topographic_similarity(random(), distances)
    low, high = np.quantile(found.shuffled, [0.005, 0.995])
    assert low <= found.value <= high
    assert abs(found.shuffled.mean()) < 0.02


def test_topographic_similarity_is_spearmans():
    # Three items on a line at 0, 1, 3: distances 1, 3, 2 against inputs 1, 2, 3: rho = 1 - 6 (0 + 1 + 1) / (3 x 8) = 0.5.
    line = np.array([[0.0], [1.0], [3.0]])
    assert measures.topographic_similarity(line, np.array([1.0, 2.0, 3.0]), 2).value == pytest.approx(0.5)


def test_tree_reconstruction_error():
    assert measures.tree_reconstruction_error(sum_of_parts(), FACTORS, 5).value == pytest.approx(0, abs=1e-12)
    assert measures.tree_reconstruction_error(sum_of_parts() * 1e-4, FACTORS, 5).value == pytest.approx(0, abs=1e-12)
    # Shuffling rows of an identity is a rotation, which changes no error.
    assert measures.tree_reconstruction_error(entangled(), FACTORS, 5).value == pytest.approx(1)
    assert measures.tree_reconstruction_error(random(), FACTORS).value == pytest.approx(1, abs=0.03)
    assert measures.tree_reconstruction_error(constant(), FACTORS, 5).value == 1


def test_tree_reconstruction_error_of_two_bits():
    # The best sum for exclusive or is its mean, 1/2: every error is 1/4.
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    xor = np.array([[0.0], [1.0], [1.0], [0.0]])
    found = measures.tree_reconstruction_error(xor, bits, shuffles=2000)
    # A third of the shuffles of two ones and two zeros is exclusive or, with error 1/4; the rest is a single bit, with error 0.
    assert found.value == pytest.approx(3, rel=0.1)
    assert np.unique(found.shuffled.round(3) > 1).tolist() == [False, True]


def test_parallelism_score():
    assert by_factor(measures.parallelism_score, sum_of_parts()) == pytest.approx([1, 1, 1, 1])
    # Coding vectors in different contexts share no coordinate.
    assert by_factor(measures.parallelism_score, entangled()) == pytest.approx([0, 0, 0, 0], abs=1e-12)
    assert by_factor(measures.parallelism_score, constant()) == [0, 0, 0, 0]
    assert by_factor(measures.parallelism_score, random()) == pytest.approx([0, 0, 0, 0], abs=0.05)


def test_parallelism_score_of_hand_computed_vectors():
    factors = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    # First factor: r(0, .) - r(1, .) = (-1, 0) and (-1, -1): cosine 1 / sqrt(2). Second: (0, 0) and (0, -1): undefined, so 0.
    assert measures.parallelism_score(rows, factors, 0, 2).value == pytest.approx(1 / np.sqrt(2))
    assert measures.parallelism_score(rows, factors, 1, 2).value == 0
    # Items with the same combination are averaged.
    twice = np.concatenate([rows + 0.5, rows - 0.5])
    assert measures.parallelism_score(twice, np.concatenate([factors, factors]), 0, 2).value == pytest.approx(1 / np.sqrt(2))


def test_parallelism_score_needs_all_combinations():
    with pytest.raises(ValueError, match="71 of 72 combinations"):
        measures.parallelism_score(random()[1:], FACTORS[1:], 0)


def test_ccgp():
    assert by_factor(measures.ccgp, sum_of_parts()) == [1, 1, 1, 1]
    chance = [1 / size for size in SIZES]
    assert by_factor(measures.ccgp, random(width=8)) == pytest.approx(chance, abs=0.2)
    shuffled = [measures.ccgp(sum_of_parts(), FACTORS, index).shuffled.mean() for index in (0, 1)]
    assert shuffled == pytest.approx(chance[:2], abs=0.08)


def test_ccgp_distinguishes_decodable_from_generalizing_representations():
    # Left or right is decodable in every manner, but with opposite sign in one of the three, so not across conditions.
    direction, manner = 2 * FACTORS[:, 1] - 1, FACTORS[:, 2]
    flipped = np.where(manner == 2, -direction, direction)
    rows = np.stack([flipped, np.zeros(len(FACTORS))], 1)
    within = measures.ccgp(np.stack([direction, 0 * direction], 1), FACTORS, 1, 2).value
    assert within == 1
    # Manner 2 left out: all wrong. A verb or a count left out: at best 2/3 right. Manner 0 or 1 left out: the rest cancels out.
    assert measures.ccgp(rows, FACTORS, 1, 2).value < 2 / 3


def test_ccgp_of_unequal_classes_equals_the_hand_computed_value():
    # Three items of class 0 at -1 and one of class 1 at 3 in both conditions. At unit variance these are -1/sqrt(3) and sqrt(3),
    # and the mean of the targets is -1/2, so the slope is 2 sqrt(3) / (4 + 1) and the rare item gets 6/5 - 1/2 > 0.
    rows = np.array([[-1.0], [-1.0], [-1.0], [3.0]] * 2)
    factors = np.array([[0, 0], [0, 0], [0, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 1]])
    assert measures.ccgp(rows, factors, 0, 2).value == 1
    assert measures.ccgp(rows / 100, factors, 0, 2).value == 1  # the penalty is one at unit variance
    # If the classes are hardly separated, every item gets the larger class, and three of four are right.
    near = np.array([[-1.0], [1.0], [0.5], [0.3]] * 2)
    assert measures.ccgp(near, factors, 0, 2).value == 0.75


def test_linear_cka():
    rows = random(16)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(16, 16)))[0]
    assert measures.linear_cka(rows, 5 * rows @ rotation + 3, 2).value == pytest.approx(1)
    assert measures.linear_cka(rows, np.ones((len(rows), 3)), 2).value == 0
    # The biased estimate for two random representations whose width equals the number of items would be far above 0.
    wide = [random(512, seed) for seed in (3, 4)]
    assert measures.linear_cka(*wide, 2).value == pytest.approx(0, abs=0.05)
    found = measures.linear_cka(rows, rows, 100)
    assert abs(found.shuffled.mean()) < 0.05


def test_linear_cka_is_the_unbiased_estimator_of_its_definition():
    # Song et al. 2012: the mean of K_ij L_ij + K_ij L_qr - 2 K_ij L_iq over distinct (i, j, q, r).
    source = np.random.default_rng(5)
    first, second = source.normal(size=(6, 2)), source.normal(size=(6, 3))

    def independence(k: np.ndarray, m: np.ndarray) -> float:
        terms = [
            k[i, j] * m[i, j] + k[i, j] * m[q, r] - 2 * k[i, j] * m[i, q]
            for i, j, q, r in product(range(6), repeat=4)
            if len({i, j, q, r}) == 4
        ]
        return float(np.mean(terms))

    kernels = [rows @ rows.T for rows in (first, second)]
    expected = independence(*kernels) / np.sqrt(independence(kernels[0], kernels[0]) * independence(kernels[1], kernels[1]))
    assert measures.linear_cka(first, second, 2).value == pytest.approx(expected)


def test_relative_distance():
    def between(rows: np.ndarray) -> np.ndarray:
        return np.linalg.norm(rows[:, None] - rows, axis=-1)

    # Distances of the pairs: 1, 3, 4, 2, 3, 1; mean 14 / 6. From the first to the second and third: (1 + 3) / 2.
    line = np.array([[0.0], [1.0], [3.0], [4.0]])
    assert measures.relative_distance(between(line), 0, [0, 1, 2]).value == pytest.approx(2 / (14 / 6))
    assert measures.relative_distance(between(5 * line - 1), 0, [2, 0, 1]).value == pytest.approx(2 / (14 / 6))
    # Words of the same kind coincide; the others are elsewhere.
    kinds = np.repeat(np.eye(3), 4, 0)
    found = measures.relative_distance(between(kinds), 5, [4, 5, 6, 7])
    assert found.value == 0
    assert found.shuffled.mean() > 0.5
    assert measures.relative_distance(np.zeros((4, 4)), 0, [0, 1]).value == 0
    # Two of the others, at 1, 3 and 4, are drawn, never the item itself: means 2, 2.5 and 3.5.
    drawn = measures.relative_distance(between(line), 0, [0, 1, 2]).shuffled * 14 / 6
    assert np.unique(drawn.round(9)).tolist() == [2, 2.5, 3.5]


def test_means_are_by_combination_and_sorted():
    factors = np.array([[1, 0], [0, 1], [1, 0]])
    rows, found = measures.means(np.array([[2.0], [5.0], [4.0]]), factors)
    assert found.tolist() == [[0, 1], [1, 0]]
    assert rows.tolist() == [[5], [3]]


def test_rows_contain_the_value_and_its_null_distribution():
    rows = measures.Measure(0.5, np.arange(41.0)).rows("ccgp")
    # A share of 0.025 of 0, 1, ..., 40 is below 1, and a share of 0.975 is below 39.
    assert rows == pytest.approx({"ccgp": 0.5, "ccgp (shuffled)": 20, "ccgp (2.5 %)": 1, "ccgp (97.5 %)": 39})


def test_a_mean_of_measures_is_one_under_each_shuffle():
    mean = measures.Measure.mean([measures.Measure(0.5, np.array([0.0, 0.1])), measures.Measure(1.0, np.array([0.2, 0.5]))])
    assert mean.value == pytest.approx(0.75)
    assert mean.shuffled == pytest.approx([0.1, 0.3])


def test_every_measure_is_shuffled_by_the_same_permutations():
    source = np.random.default_rng(0)
    orders = [source.permutation(len(FACTORS)) for _ in range(2)]
    rows, other = random(), random(seed=2)
    found = measures.linear_cka(rows, other, 2)
    assert found.shuffled == pytest.approx([measures.linear_cka(rows[order], other, 1).value for order in orders])
    found = measures.parallelism_score(rows, FACTORS, 0, 2)
    assert found.shuffled == pytest.approx([measures.parallelism_score(rows[order], FACTORS, 0, 1).value for order in orders])


def test_the_same_input_gives_the_same_bits():
    first, second = (measures.topographic_similarity(random(), pdist(random(3)), 4) for _ in range(2))
    assert first.value == second.value
    assert first.shuffled.tolist() == second.shuffled.tolist()
