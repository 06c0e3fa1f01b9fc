"""The kernel theory: kernels and saliences compared with the source's numbers, tasks, fits, networks, additivity, and figures."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from scipy.special import comb
from sklearn.kernel_ridge import KernelRidge
from support.configurations import STUDIES, read
from support.project import Project
from support.trained import problem_of, train_plain, weights_of
from torch.nn import functional

from compositional.configuration.configuration import Configuration
from compositional.evaluation import conjunctions, learning_curves, metrics
from compositional.figures import (
    composites,
    conjunction_values,
    kernel_addition,
    kernel_context,
    kernel_margins,
    network_addition,
    network_equivalence,
    regularized_salience,
    salience_layers,
)
from compositional.figures.shared import item_values, kernel_theory
from compositional.kinds.combination import Batch, CombinationSplit
from compositional.kinds.composite import CompositeSplit
from compositional.kinds.composite import load as load_composites
from compositional.kinds.image import load as load_images
from compositional.layers.tap import silent_tap
from compositional.measures import additivity, kernels
from compositional.models import kernel_machine
from compositional.plugins import defaults
from compositional.randomness import uniform_noise
from compositional.stages.plot import drawn
from compositional.stages.split import audit, make_split
from compositional.tasks import addition
from compositional.tasks.shared import composite_images, designs
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, initial_weights
from compositional.training.state import fresh_state

torch.set_num_threads(1)
CONFIGURATION = Configuration(read("config.yaml", *STUDIES))
CONFIG = CONFIGURATION.config
FIGURES = {name: figure for name, figure in CONFIGURATION.figures.items() if figure["study"] == "kernel_theory"}
PAPER = Configuration(read("config.yaml", *STUDIES, "paper/kernel_theory.yaml"))


def problem(task: str, model: str, task_options: dict | None = None, model_options: dict | None = None, **settings):
    """A problem on a symbolic task, by default with full batches."""
    members, about = import_module(f"compositional.tasks.{task}").build(None, defaults(f"tasks.{task}") | (task_options or {}))
    splits = {
        name: CombinationSplit(
            member["items"][:], member["target"][:], member["set"][:], about["sizes"], about["target"] == "sign", "cpu"
        )
        for name, member in members.items()
    }
    base = {"clip": None, "decay": 1.0, "optimizer": "sgd", "loss": "squared", "batch_size": len(splits["train"])}
    return problem_of(model, about, splits, base | settings, model_options, task=task)


def fitted(task: str, task_options: dict | None = None, **options) -> dict[tuple[str, str], float]:
    """The metrics of a fitted kernel machine, made by the same steps as a run's."""
    case = problem(task, "kernel_machine", task_options, options, steps=1)
    weights = weights_of(case, train_plain(case))
    outputs = {}
    for name, split in case.splits.items():
        parts = [case.model.forward(case.model_parameters, weights, batch, None) for _, batch in split.evaluation_batches(1, 64)]
        outputs[name] = torch.cat(parts, 1)[0]
    return case.model.measure(case.model_parameters, case.about, case.splits, outputs)


# Kernels.

# Normalized saliences of networks of infinite width, computed independently (see docs/kernel_theory.md).
SALIENCES = {
    "step": {1: (0.216, 0.032, 0.255), 5: (0.019, 0.009, 0.917), 20: (0.000, 0.000, 1.00)},
    "relu": {1: (0.271, 0.056, 0.020), 5: (0.166, 0.104, 0.192), 20: (0.073, 0.080, 0.543)},
    "leaky_relu": {1: (0.287, 0.041, 0.015), 5: (0.193, 0.094, 0.141), 20: (0.092, 0.087, 0.465)},
    "rectified_quadratic": {1: (0.217, 0.108, 0.023), 5: (0.049, 0.100, 0.553), 20: (0.000, 0.001, 0.997)},
    "gaussian": {1: (0.075, 0.190, 0.204), 5: (0.034, 0.115, 0.556), 20: (0.025, 0.090, 0.657)},
}


def by_order(patterns: np.ndarray, components: int) -> np.ndarray:
    """Means over the sets of components of each size: (..., 2, ..., 2) -> (..., C + 1)."""
    sizes = np.indices((2,) * components).sum(0)
    return np.stack([patterns[..., sizes == size].mean(-1) for size in range(components + 1)], -1)


@pytest.mark.parametrize("activation", sorted(SALIENCES))
def test_saliences_of_network_layers_equal_the_published_computation(activation):
    layers = kernels.network_kernels([1 / 3] * 3, activation, 20)
    found = by_order(kernels.salience(layers, 3), 3)
    for layer, expected in SALIENCES[activation].items():
        np.testing.assert_allclose(found[layer, 1:], expected, atol=6e-4)


def test_saliences_of_two_and_four_components_are_right():
    two = by_order(kernels.salience(kernels.network_kernels([1 / 2] * 2, "relu", 20), 2), 2)
    np.testing.assert_allclose(two[[1, 5, 20], 1:], [(0.4264, 0.1472), (0.282, 0.436), (0.133, 0.735)], atol=6e-4)
    four = by_order(kernels.salience(kernels.network_kernels([1 / 4] * 4, "relu", 20), 4), 4)
    np.testing.assert_allclose(four[1, 1:], (0.198, 0.030, 0.004, 0.010), atol=6e-4)
    np.testing.assert_allclose(four[20, 1:], (0.050, 0.032, 0.047, 0.417), atol=6e-4)


def test_salience_of_unequal_components_follows_its_formula():
    none, first, second, both = 0.1, 0.3, 0.5, 0.9
    found = kernels.salience(np.array([[none, second], [first, both]]), 2)
    assert found[1, 0] == pytest.approx((first - none) / (both - none))
    assert found[0, 1] == pytest.approx((second - none) / (both - none))
    assert found[1, 1] == pytest.approx((both + none - first - second) / (both - none))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_saliences_sum_to_one_and_rebuild_the_kernel(similarities):
    values = np.concatenate([np.sort(similarities), [1.5]])
    components = len(values) - 1
    orders = by_order(kernels.salience(kernels.equivariant(values), components), components)
    assert sum(comb(components, order) * orders[order] for order in range(1, components + 1)) == pytest.approx(1)
    span = values[-1] - values[0]
    for count in range(components + 1):
        rebuilt = sum(comb(count, order) * orders[order] for order in range(count + 1)) * span
        assert rebuilt == pytest.approx(values[count])


def eigenvalue(saliences: np.ndarray, components: tuple[int, ...], items: int) -> float:
    """The eigenvalue of the Gram matrix of all combinations for functions that vary with exactly these components: the sum of
    S(B) items^(C - |B|) over all sets B that contain them."""
    count = saliences.ndim
    sets = (place for place in product((0, 1), repeat=count) if all(place[index] for index in components))
    return sum(saliences[place] * float(items) ** (count - sum(place)) for place in sets)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_kernel_is_positive_semidefinite_if_and_only_if_all_gram_matrices_are(first, second):
    similarity = kernels.equivariant([0, first, second, 1])
    saliences = kernels.salience(similarity, 3)
    subsets = [(), (0,), (0, 1), (0, 1, 2)]
    combinations_of_three = np.array(list(product(range(3), repeat=3)))
    smallest = np.linalg.eigvalsh(similarity.reshape(-1)[kernels.overlap(combinations_of_three, combinations_of_three)]).min()
    assert min(eigenvalue(saliences, own, 3) for own in subsets) == pytest.approx(smallest, abs=1e-9)
    if np.abs(saliences[saliences != 0]).min(initial=1) > 1e-6:  # not exactly at the boundary
        many = min(eigenvalue(saliences, own, 10**8) for own in subsets)
        assert kernels.is_positive_semidefinite(similarity, 3) == (many > -1e-8)


def test_an_unknown_activation_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'tanh' is not one of relu, .*gaussian"):
        kernels.next_layer(np.zeros(1), "tanh")


# Tasks.


@pytest.mark.parametrize(
    ("task", "options", "train", "test"),
    [
        ("addition", {"trained_items": [4]}, 17, 64),
        ("addition", {"trained_items": [0]}, 17, 64),
        ("addition", {"trained_items": [0, 8]}, 32, 49),
        ("addition", {"trained_items": [2, 6]}, 32, 49),
        ("addition", {"trained_items": []}, 18, 63),
        ("addition", {"trained_items": [], "sets": 3}, 54, 189),
        ("context_dependence", {"level": 1}, 70, 2),
        ("context_dependence", {"level": 2}, 64, 8),
        ("context_dependence", {"level": 3}, 54, 18),
        ("transitive_equivalence", {}, 12, 4),
        ("transitive_equivalence", {"class_size": 5}, 36, 64),
        ("transitive_equivalence", {"class_size": 5, "trained_per_class": 4}, 96, 4),
        ("invariance", {}, 2, 2),
        ("partial_exposure", {}, 3, 1),
    ],
)
def test_symbolic_tasks_have_the_right_combinations(task, options, train, test):
    members, about = import_module(f"compositional.tasks.{task}").build(None, defaults(f"tasks.{task}") | options)
    assert (len(members["train"]), len(members["test"])) == (train, test)
    assert all(count["in_training"] == 0 for count in audit(members, about["disjoint"]))


def test_targets_of_symbolic_tasks_are_right():
    def targets(design):
        return dict(zip(map(tuple, design.combinations.tolist()), design.targets, strict=True))

    addition = targets(designs.addition(defaults("tasks.addition")))
    assert (addition[0, 0], addition[8, 3], addition[4, 4]) == (-8, 3, 0)
    context = targets(designs.context_dependence(defaults("tasks.context_dependence")))
    assert (context[0, 2, 5], context[1, 2, 5], context[0, 3, 0], context[1, 3, 0]) == (-1, 1, 1, -1)
    same = targets(designs.transitive_equivalence(defaults("tasks.transitive_equivalence")))
    assert (same[0, 1], same[1, 1], same[1, 2], same[3, 2]) == (1, 1, -1, 1)


def test_dispersed_sets_contain_every_item_twice_per_component_and_differ():
    matrices = [designs.dispersed(seed) for seed in range(6)]
    assert all((matrix.sum(0) == 2).all() and (matrix.sum(1) == 2).all() for matrix in matrices)
    assert len({matrix.tobytes() for matrix in matrices}) == 6


def test_dispersed_sets_of_images_have_the_originals_seeds():
    seeds = {task["shuffle"] for name, task in PAPER.config["tasks"].items() if name.startswith("mnist_dispersed_")}
    assert seeds == {0, 1, 2}


def test_tasks_refuse_contradictory_options():
    with pytest.raises(ValueError, match="trained_per_class must be less than class_size"):
        designs.transitive_equivalence({"class_size": 3, "trained_per_class": 3})
    with pytest.raises(ValueError, match="sets is for the dispersed training set"):
        addition.build(None, defaults("tasks.addition") | {"sets": 2})


# Kernel machines.

# Mean squared errors of support vector regression on new combinations, computed independently, by single-component salience.
ERRORS = {
    "extrapolation": ([4], {0.1: 11.95, 0.3: 5.15, 0.4: 1.90, 0.45: 0.658, 0.5: 0.020}),
    "asymmetric": ([0], {0.1: 28.35, 0.3: 15.43, 0.4: 6.94, 0.45: 2.68, 0.5: 0.033}),
    "interpolation": ([0, 8], {0.1: 5.18, 0.3: 1.42, 0.4: 0.428, 0.45: 0.150, 0.5: 0.017}),
    "both": ([2, 6], {0.1: 9.64, 0.3: 2.60, 0.4: 0.752, 0.45: 0.245, 0.5: 0.017}),
}
# Slopes of these predictions against the sum, also computed independently.
SLOPES = {
    "extrapolation": {0.1: 0.107, 0.3: 0.414, 0.4: 0.644, 0.45: 0.791, 0.5: 0.967},
    "asymmetric": {0.3: 0.412},
    "interpolation": {0.1: 0.196, 0.3: 0.579},
    "both": {0.1: 0.195, 0.3: 0.582},
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_regression_on_addition_has_the_expected_errors_and_slopes(name):
    items, errors = ERRORS[name]
    found = fitted("addition", {"trained_items": items}, similarities=[[salience] for salience in errors], values=True)
    for salience, expected in errors.items():
        assert found["test", f"squared_error at {salience:g}"] == pytest.approx(expected, rel=2e-3, abs=6e-4)
        assert found["all", f"additivity at {salience:g}"] > 1 - 1e-6
    rows = pd.DataFrame([(*key, value) for key, value in found.items()], columns=["split", "metric", "value"])
    for salience, expected in SLOPES[name].items():
        assert kernel_addition.slope(rows, f"{salience:g}") == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(("items", "count"), [([4], 1), ([2, 6], 2), ([0, 4, 8], 3), ([0, 2, 6, 8], 4), ([0, 2, 4, 6, 8], 5)])
def test_ridge_regression_on_addition_has_the_closed_forms_slope(items, count):
    saliences = [0.1, 0.3, 0.45]
    found = fitted("addition", {"trained_items": items}, similarities=[[s] for s in saliences], machine="ridge", values=True)
    for salience in saliences:
        outputs = {metric: value for (split, metric), value in found.items() if split == "test" and f"at {salience:g}" in metric}
        for metric, value in outputs.items():
            if metric.startswith("output"):
                total = sum(designs.VALUES[int(item)] for item in metric.split()[2:4])
                assert value == pytest.approx(total * kernels.addition_slope(salience, count), abs=1e-4)


def test_regression_on_dispersed_sets_has_the_published_errors():
    expected = {0.0: (13.23, 1.2), 0.1: (9.64, None), 0.2: (7.17, None), 0.3: (5.21, 2.1), 0.4: (3.27, None)}
    expected |= {0.45: (2.02, None), 0.49: (0.54, None), 0.5: (0.12, None)}
    found = fitted("addition", {"trained_items": [], "sets": 50}, similarities=[[salience] for salience in expected])
    for salience, (mean, spread) in expected.items():
        errors = [found["test", f"squared_error at {salience:g} of set {number}"] for number in range(50)]
        assert np.mean(errors) == pytest.approx(mean, abs=6e-3)
        assert spread is None or np.std(errors, ddof=1) == pytest.approx(spread, abs=0.05)


def test_representation_1_generalizes_on_all_levels_but_representation_2_not_on_the_third():
    pair = CONFIG["models"]["classification_pair"]["similarities"]
    for level, expected in ((1, (1, 1)), (2, (1, 1)), (3, (1, 0))):
        found = fitted("context_dependence", {"level": level}, machine="svc", similarities=pair)
        for (single, double), accuracy in zip(pair, expected, strict=True):
            assert found["train", f"accuracy at {single:.8g} {double:.8g}"] == 1
            assert found["test", f"accuracy at {single:.8g} {double:.8g}"] == accuracy


def test_values_of_minimum_norm_and_the_machines_own_agree_on_the_dominant_conjunction():
    """A machine's own value of a conjunction is its salience times the dual coefficients of the examples that have it."""
    case = problem(
        "context_dependence", "kernel_machine", {"level": 3}, CONFIG["models"]["classification_pair"] | {"values": True}
    )
    weights = weights_of(case, train_plain(case))
    split, second = case.splits["train"], 1  # Rep. 2
    similarity = weights["similarity"][0, second].double().numpy().reshape(2, 2, 2)
    dual = weights["dual"][0, 0, second].numpy()[np.ravel_multi_index(split.combinations.T, split.sizes)]
    matrix, names = additivity.features(split.combinations, np.ones(len(dual), dtype=bool), case.about["components"])
    orders = by_order(kernels.salience(similarity, 3), 3)
    canonical = orders[[name.count("=") for name in names]] * (matrix.T @ dual)
    values = pd.DataFrame({"seed": 0, "metric": [f"value of {name}" for name in names], "value": canonical})
    means = kernel_theory.magnitudes(values).loc[0].round(2).to_dict()
    expected = {"right conjunction": 0.29, "wrong conjunction": 0.04, "sensory": 0.21, "context": 0.47, "memorization": 0.07}
    assert means == expected
    kernel = "0.20350064 0.50123953"
    found = fitted("context_dependence", {"level": 3}, machine="svc", similarities=[[0.20350064, 0.50123953]], values=True)
    rows = pd.DataFrame(
        [(0, metric, value) for (split, metric), value in found.items() if split == "all"], columns=["seed", "metric", "value"]
    )
    rows["metric"] = rows.metric.str.removesuffix(f" at {kernel}")
    ridge = kernel_theory.magnitudes(rows).loc[0]
    assert ridge.idxmax() == max(means, key=means.get) == "context"


@pytest.mark.parametrize(
    ("level", "kernel", "published"),
    [
        (3, [0.10100758, 0.34113055], (0.6, 0.33, 0.12, 0.03, 0.07)),  # Rep. 1
        (2, [0.10100758, 0.34113055], (0.6, 0.33, 0.12, 0.03, 0.07)),
        (3, [0.20350064, 0.50123953], (0.08, 0.3, 0.13, 0.5, 0.67)),  # Rep. 2
    ],
)
def test_conjunction_values_of_predicted_classes_are_the_published_ones(level, kernel, published):
    found = fitted("context_dependence", {"level": level}, machine="svc", similarities=[kernel], values=True)
    rows = pd.DataFrame([(*key, value) for key, value in found.items()], columns=["split", "metric", "value"])
    rows["metric"] = rows.metric.str.partition(" at ")[0]
    values = kernel_theory.magnitudes(kernel_theory.values_of_classes(rows)).loc[0]
    assert values[[*kernel_theory.TYPES]].tolist() == pytest.approx(published, abs=0.02)


def test_grids_of_kernels_have_the_originals_points():
    line = kernel_machine.family(defaults("models.kernel_machine") | {"grid": 51}, 2)
    assert [float(name) for name in line] == pytest.approx(np.arange(51) / 100)
    plane = kernel_machine.family(defaults("models.kernel_machine") | {"grid": 50}, 3)
    # With kappa_1 = r kappa_2, the salience of whole inputs is 1 - 3 kappa_2 (1 - r).
    valid = [1 - 2 * second / 49 * (1 - first / 98) > -1e-8 for second, first in product(range(1, 50), range(50))]
    assert len(plane) == 1 + sum(valid) == 1679


def test_the_phase_diagram_has_the_published_counts():
    saliences = [(one, two) for one, two in product(np.linspace(0, 1 / 3, 15), repeat=2) if one + two <= 1 / 3 + 1e-9]
    assert len(saliences) == 120
    points = [[one, min(1.0, two + 2 * one)] for one, two in saliences]
    right = []
    for level in (1, 2, 3):
        found = fitted("context_dependence", {"level": level}, machine="svc", similarities=points)
        # At (1/3, 0) the kernel is singular and no machine fits: it does not generalize, whatever its new predictions are.
        names = [f"accuracy at {one:.8g} {two:.8g}" for one, two in points]
        right.append([found["train", name] == found["test", name] == 1 for name in names])
    counts = np.bincount(kernel_context.region(np.array(right).T), minlength=5)
    assert dict(zip(kernel_context.REGIONS, counts, strict=True)) == {
        "none": 15,
        "CD-1": 0,
        "CD-2 and CD-1": 43,
        "all three": 62,
        "other": 0,
    }


def test_a_small_margin_counts_as_generalizing_and_an_output_that_is_zero_by_symmetry_as_half():
    """Near the boundaries of the phase diagram, outputs on new combinations are small, but not zero."""
    kernel = "0.17493 0.4898"
    found = fitted("context_dependence", {"level": 3}, machine="svc", similarities=[[0.17493, 0.4898]])
    assert found["test", f"largest output at {kernel}"] < 1e-3
    assert found["train", f"accuracy at {kernel}"] == found["test", f"accuracy at {kernel}"] == 1
    zero = fitted("transitive_equivalence", machine="svc", similarities=[[0.25]])
    assert zero["test", "accuracy at 0.25"] == 0.5


def test_margins_of_invariance_and_partial_exposure_have_their_closed_forms():
    saliences = [0.1, 0.25, 0.5]
    for task, form in (("invariance", kernels.invariance_margin), ("partial_exposure", kernels.partial_exposure_margin)):
        found = fitted(task, similarities=[[salience] for salience in saliences], machine="ridge", values=True)
        for salience in saliences:
            assert found["test", f"output of 1 1 at {salience:g}"] == pytest.approx(form(salience), abs=1e-4)


def test_a_singular_kernel_has_the_predictions_of_the_library_although_its_coefficients_are_huge():
    """Without any salience of whole inputs nothing fits the training set, and coefficients are about 1e10."""
    options = {"machine": "ridge", "similarities": [[1 / 3, 2 / 3]]}
    train = problem("context_dependence", "kernel_machine", {"level": 3}, options, steps=1).splits["train"]
    similarity = kernels.equivariant([0, 1 / 3, 2 / 3, 1]).reshape(-1)
    gram, targets = similarity[kernels.overlap(train.combinations, train.combinations)], train.labels.numpy().astype(np.float64)
    predicted = KernelRidge(alpha=1e-10, kernel="precomputed").fit(gram, targets).predict(gram)
    found = fitted("context_dependence", {"level": 3}, **options)["train", "squared_error at 0.33333333 0.66666667"]
    assert found == pytest.approx(np.square(predicted - targets).mean(), abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"class_size": 5}, {"class_size": 5, "trained_per_class": 4}])
def test_no_kernel_machine_infers_equivalence(options):
    found = fitted("transitive_equivalence", options, machine="svc", similarities=[[0.1], [0.3], [0.45]])
    assert all(found["train", f"accuracy at {salience}"] == 1 for salience in (0.1, 0.3, 0.45))
    # By symmetry, outputs on new pairs are zero; the sign of the solver's error is arbitrary.
    assert all(found["test", f"largest output at {salience}"] < 5e-4 for salience in (0.1, 0.3, 0.45))
    assert all(found["test", f"accuracy at {salience}"] == 0.5 for salience in (0.1, 0.3, 0.45))


def test_a_fit_is_kept_in_its_weights_and_recorded_once():
    case = problem(
        "context_dependence", "kernel_machine", {"level": 2}, {"machine": "svc", "similarities": [[0.1, 0.3]]}, steps=7
    )
    seen = []
    (state,) = states = [fresh_state(case, 0, 0.0)]
    train_runs(case, states, learning_curves.measure, seen.append)
    assert (state.step, state.diverged_at, seen) == (7, None, [[state]])
    (values,) = metrics.measure(case, weights_of(case, states))
    assert values["train", "accuracy"] == values["test", "accuracy"] == 1
    assert {(step, *key) for step, *key, _ in state.history} == {(7, *key) for key in values}


def test_a_fit_without_a_finite_solution_is_marked():
    case = problem(
        "context_dependence", "kernel_machine", {"level": 2}, {"machine": "svc", "similarities": [[0.1, 0.3]]}, steps=7
    )
    fit = case.model.fit

    def endless(*arguments):
        weights = fit(*arguments)
        return weights | {"bias": weights["bias"] + math.inf}

    case.model = replace(case.model, fit=endless)
    states = [fresh_state(case, 0, 0.0)]
    train_runs(case, states, learning_curves.measure)
    assert states[0].diverged_at == 7
    assert all(math.isnan(value) for *_, value in states[0].history)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs kernels"),
        ({"similarities": [[0.1, 0.2]]}, "must be 1 numbers for a task of 2 components"),
        ({"similarities": [[0.7]]}, "no valid kernel: a salience is negative"),
        ({"activation": "relu", "shares": [1.0]}, "shares .* must be 2 numbers"),
    ],
)
def test_the_error_for_invalid_kernels_states_what_is_wrong(options, message):
    with pytest.raises(ValueError, match=message):
        kernel_machine.family(defaults("models.kernel_machine") | options, 2)


# Additivity and geometry.

GRID = np.array(list(product(range(3), repeat=2)))
SEEN = (GRID == 0).any(1)


def test_a_sum_of_values_is_additive_and_its_values_are_found():
    outputs = (np.array([-1.0, 0, 1])[GRID[:, 0]] + np.array([-2.0, 0, 2])[GRID[:, 1]])[:, None]
    found = additivity.describe(GRID, outputs, np.ones(9, dtype=bool), ("first", "second"))
    assert found["additivity"] == pytest.approx(1)
    # Of all ways to write the sum, the values have minimum norm, so a part of the sum goes to pairs.
    total = (
        found["value of intercept"] + found["value of first=2"] + found["value of second=2"] + found["value of first=2 second=2"]
    )
    assert total == pytest.approx(3)
    assert found["value of first=0"] == pytest.approx(-found["value of first=2"])


def test_only_conjunctions_seen_in_training_count():
    matrix, names = additivity.features(GRID, SEEN, ("first", "second"))
    assert matrix.shape == (9, 3 + 3 + 5)
    assert "first=0 second=2" in names
    assert "first=1 second=2" not in names
    product_of = ((GRID[:, 0] - 1) * (GRID[:, 1] - 1))[:, None].astype(float)
    assert additivity.describe(GRID, product_of, np.ones(9, dtype=bool), ("first", "second"))["additivity"] == pytest.approx(1)
    # Unseen combinations (1, 1), (1, 2), (2, 1), (2, 2) have outputs 0, 0, 0, 1. The best sum of first=1,2 and second=1,2 leaves
    # a squared error of 4 (1/4)^2.
    found = additivity.describe(GRID, product_of, SEEN, ("first", "second"))["additivity"]
    assert found == pytest.approx(1 - 0.25 / ((product_of - product_of.mean()) ** 2).sum())


def test_salience_of_known_representations():
    one_hot = np.concatenate([np.eye(3)[GRID[:, 0]], np.eye(3)[GRID[:, 1]]], 1)
    apart = additivity.geometry(GRID, one_hot @ one_hot.T, ("first", "second"))
    assert (apart["salience of first"], apart["salience of second"]) == pytest.approx((0.5, 0.5))
    assert apart["salience of first+second"] == pytest.approx(0)
    entangled = additivity.geometry(GRID, np.eye(9), ("first", "second"))
    assert (entangled["salience of first"], entangled["salience of first+second"]) == pytest.approx((0, 1))
    left = np.eye(3)[GRID[:, 0]]
    assert additivity.geometry(GRID, left @ left.T, ("first", "second"))["salience of first"] == pytest.approx(1)
    assert additivity.geometry(GRID, np.ones((9, 9)), ("first", "second")) == {}  # it distinguishes no inputs


def test_similarities_and_their_spread_equal_hand_computed_values():
    items = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    products = np.array([[4.0, 1, 2, 0], [1, 4, 2, 2], [2, 2, 4, 3], [0, 2, 3, 8]])
    found = additivity.geometry(items, products, ("first", "second"))
    # Identical inputs: mean 5, variance 3; nothing shared: 0 and 2; first shared: 1 and 3; second shared: 2 and 2; span 5 - 1.
    expected = {"none": (0, 1 / 4), "first": (1 / 4, 1 / 4), "second": (1 / 4, 0), "first+second": (1, math.sqrt(3) / 4)}
    for name, (similarity, spread) in expected.items():
        assert found[f"similarity of {name}"] == pytest.approx(similarity)
        assert found[f"similarity_spread of {name}"] == pytest.approx(spread)
    assert found["salience of first+second"] == pytest.approx((5 - 2 - 2 + 1) / 4)


def test_products_of_noisy_representations_are_unbiased():
    source = np.random.default_rng(0)
    means = source.standard_normal((4, 5))
    places, found = torch.arange(4).repeat(2), []
    for _ in range(2000):
        kept = conjunctions._Means(4)
        kept.add(places, torch.from_numpy(means[places] + 3 * source.standard_normal((8, 5))).to(torch.float32)[None])
        found.append(kept.products(0, np.full(4, 2)))
    # The standard error is 0.5. Squared means of two examples would be wrong by 9 * 5 / 2 on the diagonal.
    np.testing.assert_allclose(np.mean(found, 0), means @ means.T, atol=2)
    alone = conjunctions._Means(4)
    alone.add(torch.arange(4), torch.from_numpy(means).to(torch.float32)[None])
    np.testing.assert_allclose(alone.products(0, np.ones(4)), means @ means.T, rtol=1e-5)


def test_pairs_of_two_noisy_examples_do_not_inflate_the_similarity_of_identical_inputs():
    source = np.random.default_rng(1)
    places = torch.arange(9).repeat(2)
    values = np.repeat(np.eye(9)[None], 2, 0).reshape(18, 9) + 2 * source.standard_normal((18, 9))
    kept = conjunctions._Means(9)
    kept.add(places, torch.from_numpy(values).to(torch.float32)[None])
    means = values.reshape(2, 9, 9).mean(0)
    biased = np.diag(means @ means.T).mean()
    assert np.diag(kept.products(0, np.full(9, 2))).mean() == pytest.approx((values[:9] * values[9:]).sum() / 9, rel=1e-4)
    assert biased > 10


# Networks.


def test_lazy_training_keeps_similarities_and_rich_training_infers_equivalence():
    reached = {}
    for scale, rate, steps in ((1e-6, 0.1, 1000), (1.0, 0.0005, 300)):
        case = problem(
            "transitive_equivalence",
            "dense_network",
            {},
            {"scale": scale, "width": 10000},
            learning_rate=rate,
            steps=steps,
            record_every=steps,
        )
        states = train_plain(case, (0, 1))
        reached[scale] = metrics.measure(case, weights_of(case, states))
    assert all(run["train", "accuracy"] == 1 for runs in reached.values() for run in runs)
    assert all(run["test", "accuracy"] == 1 for run in reached[1e-6])
    assert all(run["test", "accuracy"] <= 0.5 for run in reached[1.0])


def test_a_lazy_network_on_addition_is_nearly_additive_and_keeps_its_similarities():
    case = problem("addition", "dense_network", {"trained_items": [0]}, {}, learning_rate=0.005, steps=600, record_every=600)
    states = train_plain(case)
    (after,) = conjunctions.measure(case, weights_of(case, states))
    start = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    (before,) = conjunctions.measure(case, start, outputs=False)
    assert after["all", "additivity"] > 0.99
    key = ("all", "similarity of first in penultimate")
    assert after[key] == pytest.approx(before[key], abs=0.01)
    assert before[key] == pytest.approx(0.4264, abs=0.02)  # the value for infinite width
    assert not any(metric.startswith(("value", "additivity")) for _, metric in before)


@pytest.mark.parametrize(
    ("task", "model", "limit"),
    [
        ("addition_extrapolation", "dense_lazy", 0.016),
        ("context_dependence_3", "context_lazy", 0.070),
        ("equivalence", "wide_lazy", 0.0007),
        ("context_dependence_3", "dense_lazy_squared", 0.0088),  # at paper scale, the other loss
        ("equivalence", "wide_lazy_logistic", 0.0056),
    ],
)
def test_learning_rates_of_lazy_networks_are_stable(task, model, limit):
    """They must be below 2 / (largest eigenvalue of the loss's Gauss-Newton matrix at initialization, J J^T / n * curvature)."""
    own, network = PAPER.config["tasks"][task], PAPER.config["models"][model]
    options = {name: value for name, value in own.items() if name not in ("module", "training")}
    case = problem(
        own["module"], "dense_network", options, {name: network[name] for name in ("scale", "width") if name in network}
    )
    weights = {name: tensor.requires_grad_() for name, tensor in initial_weights(case, 0).items()}
    split = case.splits["train"]
    stacked = {name: tensor[None] for name, tensor in weights.items()}
    outputs = case.model.forward(case.model_parameters, stacked, split.batch(torch.arange(len(split))[None]), silent_tap)
    rows = [torch.autograd.grad(output, list(weights.values()), retain_graph=True) for output in outputs.flatten()]
    jacobian = torch.stack([torch.cat([gradient.flatten() for gradient in row]) for row in rows])
    scales = [known.settings(task, model) for known in (CONFIGURATION, PAPER) if model in known.config["models"]]
    curvature = 1 / 4 if scales[0]["loss"] == "logistic" else 2
    found = 2 / (curvature * torch.linalg.eigvalsh(jacobian @ jacobian.T)[-1].item() / len(split))
    assert max(settings["learning_rate"] for settings in scales) < found == pytest.approx(limit, rel=0.04)


@pytest.mark.parametrize(
    ("task", "model", "steps", "stop_loss"),
    [
        ("addition_asymmetric", "dense_rich", 100000, 1e-4),
        ("addition_both", "dense_depth_1", 100000, 1e-4),
        ("context_dependence_3", "context_lazy", 5000, 1e-4),
        ("context_dependence_1", "dense_1em1_squared", 5000, 1e-4),
        ("context_dependence_2", "dense_depth_4", 100000, 1e-4),
        ("equivalence", "wide_rich", 10000, None),
        ("equivalence", "wide_lazy", 10000, None),
        ("equivalence", "wide_lazy_logistic", 10000, None),
    ],
)
def test_dense_networks_at_paper_scale_have_the_originals_steps(task, model, steps, stop_loss):
    settings = PAPER.settings(task, model)
    assert (settings["steps"], settings["stop_loss"]) == (steps, stop_loss)


def test_initial_weights_of_dense_networks_have_the_right_scale():
    case = problem("addition", "dense_network", {}, {"scale": 0.1, "hidden_layers": 2})
    weights = initial_weights(case, 0)
    assert weights["hidden0.weight"].std().item() == pytest.approx(0.1 * np.sqrt(2 / 18), rel=0.05)
    assert weights["hidden1.weight"].std().item() == pytest.approx(0.1 * np.sqrt(2 / 1000), rel=0.01)
    assert weights["hidden1.bias"].abs().max().item() == pytest.approx(0.1 / np.sqrt(1000), rel=0.02)
    with pytest.raises(ValueError, match="sets: 1"):
        initial_weights(problem("addition", "dense_network", {"trained_items": [], "sets": 2}), 0)


def test_full_batches_contain_every_example_once():
    split = problem("addition", "dense_network").splits["train"]
    assert (split.draw(5, range(3), len(split)) == np.arange(17)).all()
    assert split.draw(5, range(3), 8).shape == (3, 8)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_losses_of_numbers_and_signs_equal_their_formulas(loss):
    batch = Batch(torch.zeros(1, 2, 1, dtype=torch.long), torch.tensor([[1.0, -1.0]]), torch.zeros(1, 2), (1,), True)
    outputs = torch.tensor([[[0.5, -2.0], [0.5, -2.0]]])  # two columns
    expected = {
        "squared": [(0.25 + 9) / 2, (2.25 + 1) / 2],
        "logistic": [np.log1p(np.exp([-0.5, 2.0])).mean(), np.log1p(np.exp([0.5, -2.0])).mean()],
    }
    torch.testing.assert_close(batch.losses(outputs, loss), torch.tensor([expected[loss]], dtype=torch.float32))
    assert batch.correct(outputs).tolist() == [[0.5, 0.5]]
    number = Batch(batch.items, torch.tensor([[3.0, -1.0]]), batch.sets, (1,), False)
    assert number.correct(torch.tensor([[[2.6], [-0.4]]])).tolist() == [[1.0, 0.0]]
    with pytest.raises(ValueError, match="'logistic' is for targets that are signs"):
        number.losses(outputs, "logistic")


def test_a_classifier_of_signs_refuses_numbers():
    with pytest.raises(ValueError, match="machine: 'svc' classifies signs"):
        fitted("addition", machine="svc", similarities=[[0.3]])


# Image tasks.

SMALL = {"samples": 900, "pool": 40, "evaluation_samples": 6}
NETWORKS = {
    "batchnorm_cnn": {"channels": [4, 4, 8, 8], "kernel": 3, "padding": 1, "dense_widths": [16, 16]},
    "resnet18": {"widths": [4, 8], "blocks": [1, 1], "stem": "small"},
    "vision_transformer": {"patch": 4, "width": 16, "depth": 2, "heads": 2, "head_width": 8, "hidden_width": 16},
}


@cache
def digits(folder: Path, options: tuple) -> tuple[dict, dict[str, CompositeSplit]]:
    target = folder / hashlib.sha256(repr(options).encode()).hexdigest()[:8]
    make_split(
        "task", "tasks.digits_composite", defaults("tasks.digits_composite") | SMALL | dict(options), folder / "no", target
    )
    return json.loads((target / "task.json").read_text()), load_composites(target, "cpu")


@pytest.fixture(scope="module")
def composite(tmp_path_factory):
    """Factory of problems on pairs of digits: composite(model, distance=4, ...)."""
    folder = tmp_path_factory.mktemp("composites")

    def make(model: str, settings: dict | None = None, **options) -> Problem:
        about, splits = digits(folder, tuple(sorted(options.items())))
        base = {"loss": "squared", "batch_size": 32, "steps": 4, "record_every": 2, "clip": None, "curve_examples": 64}
        return problem_of(model, about, splits, base | (settings or {}), NETWORKS[model], task="task")

    return make


def test_components_are_in_their_own_channels_displaced_and_with_continued_edges(composite):
    case = composite("batchnorm_cnn", distance=3)
    split = case.splits["test"]
    ((_, batch),) = split.evaluation_batches(1, 10**6)
    assert batch.images.shape[2:] == (2, 8, 11) == tuple(case.about["image_shape"])
    assert batch.noise is None
    row = 17
    first, second = ((split.pool[number, 0].float() / 255 - 0.3053) / 0.3760 for number in split.chosen[row])
    torch.testing.assert_close(batch.images[0, row, 0, :, :8], first)
    torch.testing.assert_close(batch.images[0, row, 1, :, 3:], second)
    assert (batch.images[0, row, 0, :, 8:] == first[:, -1:]).all()
    assert (batch.images[0, row, 1, :, :3] == second[:, :1]).all()


def test_items_are_classes_by_permutation_and_evaluation_images_are_new(composite):
    from sklearn.datasets import load_digits

    case = composite("batchnorm_cnn", problem="context_dependence", level=2)
    loaded = load_digits()
    known = {
        np.round(image * 255 / 16).astype(np.uint8).tobytes(): label
        for image, label in zip(loaded.images, loaded.target, strict=True)
    }
    assert [len(permutation) for permutation in case.about["class_of_item"]] == [2, 6, 6]
    for split in case.splits.values():
        labels = np.array([known[image.numpy().tobytes()] for image in split.pool[:, 0]])[split.chosen.numpy()]
        for component, permutation in enumerate(case.about["class_of_item"]):
            assert (labels[:, component] == np.array(permutation)[split.combinations[:, component]]).all()
    images = {name: set(split.chosen.flatten().tolist()) for name, split in case.splits.items()}
    assert not images["train"] & (images["validation"] | images["test"])
    combos = {name: set(map(tuple, split.combinations.tolist())) for name, split in case.splits.items()}
    assert combos["train"] == combos["validation"]
    assert len(combos["test"]) == 8
    assert not combos["train"] & combos["test"]
    assert len(case.splits["train"]) == 64 * (900 // 64)


def test_image_tasks_refuse_numbers_that_do_not_fit():
    blank, labels = np.zeros((40, 4, 4), dtype=np.uint8), np.arange(40) % 10
    options = defaults("tasks.digits_composite")
    with pytest.raises(ValueError, match="pool must be less than 4"):
        composite_images.build(blank, labels, [0.0], [1.0], options | {"pool": 4})
    with pytest.raises(ValueError, match="samples must be at least 17"):
        composite_images.build(blank, labels, [0.0], [1.0], options | {"pool": 2, "samples": 16})


def test_augmentation_shifts_and_mirrors_only_in_training(composite):
    case = composite("batchnorm_cnn", augment=True)
    split = case.splits["train"]
    plain = split._batch(torch.arange(8)[None], None).images
    rows = torch.arange(8)[None] + len(split) * torch.arange(1, 9)
    once, again = split.batch(rows).images, split.batch(rows).images
    assert torch.equal(once, again)
    assert not torch.equal(once, plain)
    black = (0 - 0.3053) / 0.3760
    for image, shifted in zip(plain[0].flatten(0, 1), once[0].flatten(0, 1), strict=True):
        padded = functional.pad(image - black, (4, 4, 4, 4)) + black
        windows = [padded[down : down + 8, across : across + 8] for down, across in product(range(9), repeat=2)]
        assert any(torch.allclose(shifted, side, atol=1e-6) for window in windows for side in (window, window.flip(1)))


def test_noise_is_uniform_and_independent_for_each_example():
    keys = torch.arange(2000)[None] * 7919
    noise = uniform_noise(keys, 3, (50,))
    assert noise.min() >= 0
    assert noise.max() < 1
    assert noise.mean().item() == pytest.approx(0.5, abs=0.005)
    assert noise.var().item() == pytest.approx(1 / 12, abs=0.001)
    counts = torch.histc(noise, 20, 0, 1)
    assert (counts / 5000 - 1).abs().max() < 0.08
    assert np.abs(np.corrcoef(noise[0, ::40].numpy()) - np.eye(50)).max() < 0.6
    assert np.abs(np.corrcoef(noise[0].numpy().T) - np.eye(50)).max() < 0.12
    assert torch.equal(uniform_noise(keys[:, 5:6], 3, (50,))[0, 0], noise[0, 5])
    assert not torch.equal(uniform_noise(keys, 4, (50,)), noise)


@pytest.mark.parametrize("model", sorted(NETWORKS))
def test_a_run_of_an_image_network_does_not_depend_on_its_neighbors(composite, model):
    case = composite(model, augment=True, distance=4)
    together = train_plain(case, range(4))
    (alone,) = train_plain(case, [2])
    assert torch.equal(alone.tensors["weights"], together[2].tensors["weights"])
    assert repr(alone.history) == repr(together[2].history)
    assert not torch.equal(together[1].tensors["weights"], together[2].tensors["weights"])
    analyzed = conjunctions.measure(case, weights_of(case, together))
    (one,) = conjunctions.measure(case, weights_of(case, [alone]))
    assert one == analyzed[2]
    assert 0 < one["all", "additivity"] <= 1
    sums = sum(one["all", f"salience of {name} in penultimate"] for name in ("first", "second", "first+second"))
    assert sums == pytest.approx(1)


def test_batch_normalization_in_evaluation_does_not_depend_on_the_batch(composite):
    case = composite("batchnorm_cnn")
    weights = metrics.calibrated(case, weights_of(case, train_plain(case)))
    ((_, whole),) = case.splits["test"].evaluation_batches(1, 10**6)
    (_, part), *_ = case.splits["test"].evaluation_batches(1, 5)
    outputs = [case.model.forward(case.model_parameters, weights, batch, silent_tap) for batch in (whole, part)]
    torch.testing.assert_close(outputs[0][:, :5], outputs[1], rtol=1e-4, atol=1e-4)


def initial(model: str, shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Weights of a network of the study at paper scale, for images of this shape."""
    options = {name: value for name, value in PAPER.config["models"].get(model, {}).items() if name not in ("module", "training")}
    module = PAPER.config["models"].get(model, {}).get("module", model)
    network = import_module(f"compositional.models.{module}")
    return network.initialize(
        defaults(f"models.{module}") | options, {"image_shape": shape, "classes": 1}, np.random.default_rng(0)
    )


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        ("batchnorm_cnn", (2, 28, 28), 1_887_873),
        ("resnet18_cifar", (6, 32, 32), 700_737),
        ("vision_transformer", (6, 32, 32), 2_208_257),
    ],
)
def test_image_networks_at_paper_scale_have_the_originals_parameters(model, shape, expected):
    assert sum(tensor.numel() for tensor in initial(model, shape).values()) == expected


def test_initial_weights_of_image_networks_have_the_originals_scale():
    weights = initial("batchnorm_cnn", (2, 28, 28))
    for name, fan_in in (("convolution1", 32 * 25), ("dense0", 64 * 6 * 6), ("output", 1024)):
        assert weights[f"{name}.weight"].std().item() == pytest.approx(math.sqrt(2 / fan_in), rel=0.1)  # He, normal
        assert weights[f"{name}.bias"].abs().max().item() <= 1 / math.sqrt(fan_in)
    weights = initial("vision_transformer", (6, 32, 32))
    assert weights["position"].std().item() == pytest.approx(1, rel=0.05)
    assert weights["embedding.weight"].abs().max().item() == pytest.approx(1 / math.sqrt(6 * 8 * 8), rel=0.01)  # uniform


@pytest.mark.parametrize(
    ("task", "model", "samples", "epochs", "optimizer"),
    [
        ("mnist_both_distance5", "batchnorm_cnn", 20_000, 100, ("sgd", 0.0001, 0.9)),
        ("mnist_context_level3_distance20", "batchnorm_cnn", 30_000, 100, ("sgd", 0.0001, 0.9)),
        ("mnist_context_squared_level1_distance0", "batchnorm_cnn", 30_000, 100, ("sgd", 0.0001, 0.9)),
        ("mnist_equivalence_trained_per_class4_distance10", "batchnorm_cnn", 20_000, 150, ("sgd", 0.0001, 0.9)),
        ("mnist_equivalence_squared_trained_per_class1_distance0", "batchnorm_cnn", 20_000, 150, ("sgd", 0.0001, 0.9)),
        ("cifar10_asymmetric", "resnet18_cifar", 40_000, 100, ("adam", 0.001, 0.0)),
        ("cifar10_context_level2", "vision_transformer", 40_000, 200, ("adam", 0.0001, 0.0)),
    ],
)
def test_image_networks_at_paper_scale_have_the_originals_settings(task, model, samples, epochs, optimizer):
    settings, own = PAPER.settings(task, model), PAPER.config["tasks"][task]
    assert (own["samples"], own["pool"]) == (samples, 4000 if task.startswith("cifar10") else 200)
    assert (settings["batch_size"], settings["steps"]) == (128, epochs * samples // 128)
    assert (settings["optimizer"], settings["learning_rate"], settings["momentum"]) == optimizer
    assert (settings["decay"], settings["clip"]) == (1.0, None)
    signs = "addition" not in own["problem"] and "squared" not in task
    assert settings["loss"] == ("logistic" if signs else "squared")


def test_image_networks_at_paper_scale_have_the_originals_number_of_runs():
    grids = [grid for name, figure in PAPER.figures.items() if name.startswith("images_") for grid in figure["grids"]]
    runs: Counter[str] = Counter()
    for grid in grids:
        runs[grid["task"].partition("_")[0]] += len(grid["seeds"])
    assert runs == {"mnist": 850, "cifar10": 140}


def test_networks_of_the_main_study_can_be_analyzed_too(tmp_path):
    options = defaults("tasks.digits_concat") | {"train_pairs": 300, "test_pairs": 600}
    make_split("pairs", "tasks.digits_concat", options, tmp_path / "no", tmp_path / "split")
    about = json.loads((tmp_path / "split" / "task.json").read_text())
    settings = {"loss": "hinge", "batch_size": 32, "steps": 60, "learning_rate": 0.003}
    case = problem_of("cnn", about, load_images(tmp_path / "split", "cpu"), settings, task="pairs")
    split = case.splits["test"]
    assert (split.combinations[:, 0] == split.labels.numpy()).all()
    (before,) = conjunctions.measure(case, {name: tensor[None] for name, tensor in initial_weights(case, 0).items()})
    (after,) = conjunctions.measure(case, weights_of(case, train_plain(case)))
    for found in (before, after):
        names = ("left", "right", "left+right")
        assert sum(found["all", f"salience of {name} in penultimate"] for name in names) == pytest.approx(1)
        assert 0 < found["all", "additivity"] < 1
    # The left digit is the label: training makes it more salient than the right one.
    assert after["all", "salience of left in penultimate"] > after["all", "salience of right in penultimate"] + 0.1


# The configuration and the figures.

METRICS = ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]
HISTORY = [*METRICS[:5], "step", *METRICS[5:]]


def small_table(figure: dict) -> pd.DataFrame:
    """A table for a figure of the study with at most two seeds: kernel machines are fitted, numbers of networks made up."""
    (source,) = figure["sources"]
    numbers, rows = np.random.default_rng(0), []
    for grid in figure["grids"]:
        task, model = CONFIG["tasks"].get(grid["task"], {}), CONFIG["models"].get(grid["model"], {})
        key = (grid["task"], grid["model"], "none", 0.0)
        if model.get("module") == "kernel_machine":
            options = {name: value for name, value in model.items() if name not in ("module", "training")} | {"layers": 20}
            options |= {"grid": 4} if options.get("grid") else {}
            asked = {name: value for name, value in task.items() if name not in ("module", "training")}
            asked |= {"sets": 5} if "sets" in asked else {}
            for (split, metric), value in fitted(task.get("module", grid["task"]), asked, **options).items():
                rows.append((*key, 0, split, metric, value))
            continue
        parameters = {name: value for name, value in task.items() if name not in ("module", "training", "problem")}
        kind = task.get("problem", task.get("module", "pair" if grid["model"] == "cnn" else grid["task"]))
        runs = [(*key, seed) for seed in grid["seeds"][:2]]
        for name, strengths in grid["regularizers"].items():
            runs += [(*key[:2], name, strength, seed) for strength in strengths for seed in grid["seeds"][:2]]
        for run, step in product(runs, [None] if source == "metrics.csv" else [0, 50, 100]):
            found = {
                (split, metric): numbers.random() / 1000
                for split in ("train", "validation", "test")
                for metric in ("accuracy", "loss")
            }
            components = {"pair": ("left", "right"), "scan_jump": ("verb", "template")}.get(kind, ("first", "second"))
            if kind not in ("pair", "scan_jump") and source == "metrics.csv":
                design = getattr(designs, kind)(defaults(f"tasks.{kind}") | {"class_size": 5} | parameters)
                components = design.components
                described = additivity.describe(
                    design.combinations, numbers.normal(size=(len(design.combinations), 1)), design.trained, components
                )
                found |= {("all", metric): value for metric, value in described.items()}
            if kind != "scan_jump":
                found["all", "additivity"] = numbers.random()
            for split, name, where, quantity in product(
                ("all", "initialization"),
                additivity.patterns(components),
                ("penultimate", "convolution", "encoder_states"),
                ("salience", "similarity", "similarity_spread"),
            ):
                found[split, f"{quantity} of {name} in {where}"] = numbers.random()
            rows += [(*run, *([] if step is None else [step]), split, metric, value) for (split, metric), value in found.items()]
    return pd.DataFrame(rows, columns=METRICS if source == "metrics.csv" else HISTORY)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figures_draw_from_a_small_table(name):
    figure = FIGURES[name]
    with drawn(figure["module"], small_table(figure), figure["options"]) as (_, caption):
        assert caption.count("\n* ") >= 1
        assert "nan" not in caption


def test_the_place_of_a_missing_network_stays_empty():
    figure = FIGURES["network_addition_depth"]
    table = small_table(figure)
    failed = (table.task == "addition_asymmetric") & (table.model == "dense_depth_1")
    table.loc[failed & (table.split == "train") & (table.metric == "loss"), "value"] = 1.0
    drawn, caption = network_addition.draw(table, figure["options"])
    index = next(axes for axes in drawn.axes if axes.get_ylabel() == "additivity index")
    places = {line.get_label(): list(line.get_xdata()) for line in index.lines}
    assert [len(dots.get_offsets()) for dots in index.collections] == [2] * 15  # one for every seed
    assert places == {"extrapolation": [0, 1, 2, 3], "asymmetric": [1, 2, 3], "interpolation": [0, 1, 2, 3], "both": [0, 1, 2, 3]}
    assert [label.get_text() for label in index.get_xticklabels()] == ["1", "2", "3", "4"]
    assert "* 2 of 32 runs end" in caption
    table.loc[(table.task == "addition_asymmetric") & (table.split == "train") & (table.metric == "loss"), "value"] = 1.0
    drawn, caption = network_addition.draw(table, figure["options"])
    index = next(axes for axes in drawn.axes if axes.get_ylabel() == "additivity index")
    assert [line.get_label() for line in index.lines] == ["extrapolation", "interpolation", "both"]
    assert "* 8 of 32 runs end" in caption


@pytest.mark.parametrize("name", ["images_addition", "images_context", "images_equivalence"])
def test_a_diverged_run_is_counted_and_leaves_the_others_their_interval(name):
    figure = FIGURES[name]
    table = small_table(figure)
    table = pd.concat([table, table.assign(seed=table.seed + 2)], ignore_index=True)
    first = next(iter(next(iter(figure["options"]["columns"].values())).values()))
    table.loc[(table.task == first) & (table.seed == 0), "value"] = np.nan
    drawn, caption = composites.draw(table, figure["options"])
    bars = [part for part in drawn.axes[0].collections if isinstance(part, LineCollection)]
    assert np.isfinite([segment for part in bars for segment in part.get_segments()]).all()
    assert ", 4 seeds, 1 of 12 runs diverged, distances" in caption
    assert ("Bottom: additivity index" in caption) == (name == "images_equivalence")
    table.loc[table.task == first, "value"] = np.nan
    _, caption = composites.draw(table, figure["options"])
    assert "compositional all diverged, 0.00" in caption
    assert "nan" not in caption


@pytest.mark.parametrize(("name", "highest"), [("images_addition", 2.1009), ("images_context", 1.0)])  # errors have no limit
def test_intervals_of_image_networks_end_at_the_limits_of_possible_values(name, highest):
    figure = FIGURES[name]
    table = small_table(figure)
    one = table[table.seed == 0]
    several = pd.concat([one.assign(seed=seed, value=value) for seed, value in enumerate((0.0, 1.0, 1.0))])
    drawn, caption = composites.draw(several, figure["options"])  # means 0.6667, half widths 1.4342
    bars = [part for part in drawn.axes[0].collections if isinstance(part, LineCollection)]
    ends = np.concatenate([segment[:, 1] for part in bars for segment in part.get_segments()])
    assert (ends.min(), ends.max()) == pytest.approx((0, highest), abs=1e-3)
    assert "cut off at the limits of possible values" in caption


def test_the_caption_of_image_networks_states_means_by_distance():
    rows = []
    for seed, change in enumerate((-0.1, 0.1)):
        key = ("far", "m", "none", 0.0, seed)
        rows += [
            (*key, split, "accuracy", value) for split, value in (("train", 1.0), ("validation", 0.9), ("test", 0.6 + change))
        ]
        rows.append((*key, "all", "additivity", 0.8))
        for name, value in (("none", 0.9), ("first", 0.2), ("second", 0.4), ("first+second", 0.5)):
            rows.append((*key, "initialization", f"salience of {name} in convolution", value))
    options = {"problem": "transitive_equivalence", "columns": {"digits": {"4": "far"}}, "model": "m"}
    _, caption = composites.draw(pd.DataFrame(rows, columns=METRICS), defaults("figures.composites") | options)
    assert "  - training set 1.000\n  - in distribution 0.900\n  - compositional 0.600\n  - additivity 0.800\n" in caption
    assert "salience of a component before training 0.300" in caption


def test_the_caption_of_equivalence_states_if_all_predictions_are_right():
    learning_curves = {"train": ([0.5, 0.75, 0.6], [0.5, 0.95, 0.8]), "test": ([0.5, 1.0, 1.0], [0.5, 0.9, 1.0])}
    rows = [
        ("t", "m", "none", 0.0, seed, step, split, "accuracy", value)
        for split, of in learning_curves.items()
        for seed, own in enumerate(of)
        for step, value in zip((0, 10, 20), own, strict=True)
    ]
    panel = {"title": "two", "task": "t", "models": {"m": "rich"}}
    _, caption = network_equivalence.draw(
        pd.DataFrame(rows, columns=HISTORY),
        defaults("figures.network_equivalence") | {"panels": [panel]},
    )
    # 0.6 and 0.8: standard error 0.1, t(0.975, 1) = 12.706.
    assert (
        "* two, rich (2 seeds): training pairs 0.700 ± 1.271 at step 20 (at most 0.850, at step 10; least 0.500), "
        "new pairs 1.000 ± 0.000 at step 20 (all right first at 20)"
    ) in caption
    for lost, said in (
        (1, "two, rich (1 seed, 1 diverged): training pairs 0.800 (1 seed) at step 20 (at most 0.950"),
        (2, "two, rich (0 seeds, 2 diverged): training pairs unknown (no seed) at step 20, new pairs unknown"),
    ):
        damaged = [(*row[:-1], np.nan) if row[4] < lost else row for row in rows]
        _, caption = network_equivalence.draw(
            pd.DataFrame(damaged, columns=HISTORY),
            defaults("figures.network_equivalence") | {"panels": [panel]},
        )
        assert said in caption


def test_an_items_value_and_the_slope_of_predictions_are_right():
    names = {
        "intercept": 1.0,
        "first=0": 2.0,
        "second=0": 4.0,
        "first=1": 9.0,
        "second=1": 9.0,
        "first=2": -3.0,
        "second=2": -1.0,
    }
    names |= {f"first={one} second={two}": 0.5 for one, two in ((1, 0), (1, 1), (1, 2), (0, 1), (2, 1))}
    rows = [("t", "m", "none", 0.0, 0, "all", f"value of {name} at 0.3", value) for name, value in names.items()]
    rows += [
        ("t", "m", "none", 0.0, 0, "test", f"output of {item} {item} at 0.3", value) for item, value in ((0, -3.0), (8, 5.0))
    ]
    table = pd.DataFrame(rows, columns=METRICS)
    # The mean of both components plus half the intercept; item 1 was seen with all others.
    assert item_values.by_kernel(table)["0.3"].to_dict() == {0: 3.5, 2: -1.5}
    # From -8 to 8 the predictions rise by 8.
    assert kernel_addition.slope(table, "0.3") == pytest.approx(0.5)


def test_the_rank_correlations_of_a_grid_are_not_presented_as_tests():
    figure = FIGURES["regularized_salience"]
    _, caption = regularized_salience.draw(small_table(figure), figure["options"])
    assert "p = " not in caption
    assert "rho describes this grid and is not a test" in caption
    assert "a lambda chosen on these very runs" in caption


def test_correlations_of_one_seed_and_one_lambda_are_undefined():
    figure = FIGURES["regularized_salience"]
    table = small_table(figure)
    one = table[(table.seed == table.seed.min()) & table["lambda"].isin([0.0, table["lambda"].max()])]
    _, caption = regularized_salience.draw(one, figure["options"])
    assert "without the largest lambda undefined" in caption


def test_tasks_with_equal_accuracies_are_all_visible():
    figure = FIGURES["kernel_margins"]
    drawn, caption = kernel_margins.draw(small_table(figure), figure["options"])
    sizes = [line.get_markersize() for line in drawn.axes[1].lines if line.get_label().endswith("new pairs")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
    assert "the minimum over new combinations" in caption


def test_conjunction_values_count_the_seeds_that_did_not_diverge():
    figure = FIGURES["network_context"]
    table = small_table(figure)
    own = (table.task == "context_dependence_3") & (table.model == "dense_rich")
    table.loc[own & (table.seed == 0), "value"] = np.nan
    _, caption = conjunction_values.draw(table, figure["options"])
    assert "* CD-3, scale 1e-6 (rich) (1 seed, 1 diverged): accuracy" in caption
    table.loc[own, "value"] = np.nan
    _, caption = conjunction_values.draw(table, figure["options"])
    assert "* CD-3, scale 1e-6 (rich): all 2 runs diverged" in caption
    assert "nan" not in caption


def test_the_phase_diagrams_caption_states_values_in_outputs_and_in_predicted_classes():
    figure = FIGURES["kernel_context"]
    _, caption = kernel_context.draw(small_table(figure), figure["options"])
    lines = {
        "outputs, Rep. 2, CD-3": (0.38, 0.07, 0.20, 0.41, 0.09),
        "predicted classes, Rep. 1, CD-2": (0.60, 0.31, 0.12, 0.02, 0.08),
        "predicted classes, Rep. 2, CD-3": (0.08, 0.31, 0.13, 0.51, 0.67),
    }
    for what, values in lines.items():
        stated = ", ".join(f"{kind} {value:.2f}" for kind, value in zip(kernel_theory.TYPES, values, strict=True))
        assert f"* values in {what}: {stated}" in caption


def test_conjunctions_of_context_dependence_have_their_types():
    kinds = {
        "context=0": "context",
        "feature1=3": "sensory",
        "feature1=3 feature2=1": "sensory",
        "context=0 feature1=3": "right conjunction",
        "context=0 feature2=3": "wrong conjunction",
        "context=1 feature2=3": "right conjunction",
        "context=1 feature1=3": "wrong conjunction",
        "context=1 feature1=3 feature2=0": "memorization",
    }
    assert {name: kernel_theory.type_of(name) for name in kinds} == kinds


def test_the_caption_states_the_saliences_of_the_table():
    rows = [
        ("factorial", "infinite_relu", "none", 0.0, 0, "kernel", f"salience of {name} at layer {layer}", value)
        for layer, values in enumerate(((0.5, 0.5, 0.0), (0.43, 0.43, 0.14)))
        for name, value in zip(("component1", "component2", "component1+component2"), values, strict=True)
    ]
    table = pd.DataFrame(rows, columns=METRICS)
    options = defaults("figures.salience_layers") | {"models": {"infinite_relu": "ReLU"}, "stated_layers": [1]}
    _, caption = salience_layers.draw(table, options)
    assert "ReLU, layer 1: Sal(1) 0.430, Sal(2) 0.140" in caption
    _, unequal = salience_layers.draw(
        table,
        options | {"columns": {"ReLU": {"infinite_relu": "q = 0.5", "no_such": "q = 1"}, "step": {"nor_such": "q = 1"}}},
    )
    assert "ReLU, q = 0.5, layer 1: component1 0.430, component2 0.430, component1+component2 0.140\n" in unequal
    assert "every network: full conjunction rises" in unequal
    assert "single components fall with every layer: holds" in caption
    assert "in between" not in caption + unequal  # there is nothing between one and two components


@pytest.mark.parametrize(("last", "verdict"), [(0.05, "holds"), (0.15, "DOES NOT HOLD")])
def test_the_caption_judges_whether_saliences_of_pairs_peak(last, verdict):
    names = [*additivity.patterns(("a", "b", "c"))][1:]
    rows = [
        ("factorial", "infinite_relu", "none", 0.0, 0, "kernel", f"salience of {name} at layer {layer}", values[name.count("+")])
        for layer, values in enumerate(((1 / 3, 0.0, 0.0), (0.2, 0.1, 0.1), (0.1, last, 0.4)))
        for name in names
    ]
    options = defaults("figures.salience_layers") | {"models": {"infinite_relu": "ReLU"}, "stated_layers": [1]}
    _, caption = salience_layers.draw(pd.DataFrame(rows, columns=METRICS), options)
    assert f"with every layer: holds; those in between peak before the last layer: {verdict}" in caption


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        (
            "digits_concat",
            "interpolation",
            "model 'interpolation' is for combination tasks, 'digits_concat' is a task of kind 'image'",
        ),
        (
            "addition",
            "dense_lazy",
            "training.loss 'cross_entropy' is not for 'addition', a task of kind 'combination', which takes squared, logistic",
        ),
        (
            "digits_extrapolation_0",
            "cnn",
            "model 'cnn' is for image tasks, 'digits_extrapolation_0' is a task of kind 'composite'",
        ),
    ],
)
def test_combinations_that_cannot_be_trained_are_refused(task, model, message):
    assert CONFIGURATION.impossible(task, model, "none") == [message]


@pytest.mark.workflow
def test_a_fit_is_a_run_of_the_workflow(tmp_path):
    project = Project(tmp_path)
    grids = [{"task": "factorial_two", "model": "infinite_relu_10", "regularizers": {}, "seeds": [0]}]
    change = {
        "models": {"infinite_relu_10": {"layers": 3}},
        "studies": {
            "kernel_theory": {"figures": {"kernel_salience_unequal": {"grids": grids, "options": {"stated_layers": [3]}}}}
        },
    }
    figure, overlay = "results/figures/kernel_salience_unequal.pdf", project.overlay(change)
    project.snakemake(figure, overlay=overlay)
    table = pd.read_csv(tmp_path / "results/tables/kernel_salience_unequal.csv")
    assert list(table) == METRICS
    found = table[table.metric == "salience of component1 at layer 3"].value.item()
    expected = kernels.salience(kernels.network_kernels([0.1, 0.9], "relu", 3), 2)[3, 1, 0]
    assert found == pytest.approx(expected)
    run = json.loads((tmp_path / "results/runs/factorial_two/infinite_relu_10/none/lambda=0/seed=0/run.json").read_text())
    assert (run["status"], run["family"]["model_parameters"]["layers"]) == ("done", 3)
    caption = (tmp_path / "results/figures/kernel_salience_unequal.rst").read_text()
    assert f"ReLU, q = 0.1, layer 3: component1 {found:.3f}" in caption
    assert "Nothing to be done" in project.snakemake(figure, overlay=overlay)
    change["models"]["infinite_relu_10"]["layers"] = 4
    jobs = project.jobs(figure, overlay=project.overlay(change))
    assert jobs["train_factorial_two__infinite_relu_10__none"] == 1
