"""Matrix, CP and hierarchical tensor factorization: data, models, tracked quantities, and training."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from support.configurations import STUDIES, read
from support.trained import independent, problem_of, train_plain, weights_of

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.datasets import low_rank
from compositional.figures import component_dynamics, growth_law
from compositional.figures.shared import components
from compositional.kinds.tensor import TensorSplit, load
from compositional.layers import factorization
from compositional.models import cp_factorization, hierarchical_tensor_factorization, matrix_factorization
from compositional.plugins import defaults
from compositional.stages.split import make_split
from compositional.tasks.shared import low_rank_recovery
from compositional.training.problem import Problem, initial_weights
from compositional.training.state import State, has_ended

ROOT = Path(__file__).parents[2]
MATRIX = {"side": 12, "rank": 2, "norm": 12, "train_measurements": 100, "test_measurements": 44}
CP = {"order": 3, "dimension": 5, "ranks": [2], "norm": 11, "train_measurements": 80, "test_measurements": 45}
TREE = {"target": "hierarchical", "order": 4, "dimension": 3, "ranks": [2, 2], "norm": 9}
TREE |= {"train_measurements": 50, "test_measurements": 31}


def split_of(members, about, name="train") -> TensorSplit:
    member = members[name].with_format("numpy")
    how = {"entries": member["entry"][:]} if "entry" in member.column_names else {"probes": member["probe"][:]}
    return TensorSplit(about["shape"], member["value"][:], "cpu", **how)


def problem(task: str, model: str, changes: dict, options: dict | None = None, **settings) -> Problem:
    members, about = import_module(f"compositional.tasks.{task}").build(Path(), defaults(f"tasks.{task}") | changes)
    base = {"optimizer": "group_rmsprop", "loss": "squared", "decay": 1.0, "clip": None, "steps": 8, "record_every": 4}
    splits = {name: split_of(members, about, name) for name in members}
    return problem_of(model, about, splits, base | {"batch_size": len(members["train"])} | settings, options)


# --- data


def test_targets_have_their_rank_and_norm():
    source = np.random.default_rng(0)
    matrix = low_rank.matrix(source, 20, 3, 7.0, symmetric=False)
    assert np.linalg.matrix_rank(matrix) == 3
    assert np.linalg.norm(matrix) == pytest.approx(7)
    symmetric = low_rank.matrix(source, 20, 3, 7.0, symmetric=True)
    assert (symmetric == symmetric.T).all()
    cp = low_rank.cp(source, 3, 6, 2, 5.0)
    assert [np.linalg.matrix_rank(np.moveaxis(cp, mode, 0).reshape(6, -1)) for mode in range(3)] == [2, 2, 2]
    assert np.linalg.norm(cp) == pytest.approx(5)


def test_a_hierarchical_target_has_low_rank_along_its_tree_only():
    target = low_rank.hierarchical(np.random.default_rng(0), 4, 6, [3, 2], 5.0)
    assert np.linalg.matrix_rank(target.reshape(36, 36)) == 2
    assert np.linalg.matrix_rank(target.reshape(6, -1)) == 3
    assert np.linalg.matrix_rank(target.transpose(0, 2, 1, 3).reshape(36, 36)) > 4
    assert np.linalg.norm(target) == pytest.approx(5)


def test_the_fifth_component_of_the_hierarchical_target_is_small():
    """The study therefore expects 4 or 5 components; the singular values are those of its page."""
    options = Configuration(read("config.yaml", *STUDIES)).parameters("tasks", "hierarchical_completion")
    target = low_rank_recovery.tensor_target(options)
    found = np.linalg.svd(target.reshape(64, 64), compute_uv=False)
    assert found[:6] == pytest.approx([58.2, 21.0, 15.8, 3.8, 0.38, 0], abs=0.05)


def test_completion_measures_every_entry_once():
    target = low_rank_recovery.matrix_target(defaults("tasks.matrix_completion"))
    members, about = low_rank_recovery.completion(target, defaults("tasks.matrix_completion"))
    seen = members["train"]["entry"][:] + members["test"]["entry"][:]
    assert sorted(seen) == list(range(4096))
    assert about["shape"] == [64, 64]
    assert np.linalg.norm(target) == pytest.approx(64)
    values = np.array(members["train"]["value"][:])
    assert values == pytest.approx(target.reshape(-1)[members["train"]["entry"][:]], rel=1e-6)
    with pytest.raises(ValueError, match="more than the 4096 entries"):
        low_rank_recovery.completion(target, defaults("tasks.matrix_completion") | {"test_measurements": 2049})


def test_ranks_must_fit_the_target():
    with pytest.raises(ValueError, match="order 4 needs 2 ranks"):
        low_rank_recovery.tensor_target(defaults("tasks.tensor_completion") | TREE | {"ranks": [5]})


@pytest.mark.parametrize(("task", "changes"), [("matrix_sensing", MATRIX), ("tensor_sensing", CP), ("tensor_sensing", TREE)])
def test_sensing_equals_materialized_measurement_tensors(task, changes):
    options = defaults(f"tasks.{task}") | changes
    target = (low_rank_recovery.matrix_target if task == "matrix_sensing" else low_rank_recovery.tensor_target)(options)
    members, about = low_rank_recovery.sensing(target, options)
    member = members["train"].with_format("numpy")
    probes = member["probe"][:].astype(np.float64)
    dense = probes
    if task == "tensor_sensing":
        dense = probes[:, 0]
        for mode in range(1, target.ndim):
            dense = dense[..., None] * probes[:, mode].reshape(len(probes), *[1] * mode, -1)
    assert dense.shape[1:] == target.shape
    assert probes.var() == pytest.approx(target.size ** (-1 if target.ndim == 2 else -1 / target.ndim), rel=0.1)
    values = (dense * target).reshape(len(dense), -1).sum(1)
    assert member["value"][:] == pytest.approx(values, abs=1e-5)
    entries = torch.randn(3, target.size, generator=torch.Generator().manual_seed(0))
    batch = split_of(members, about).batch(torch.zeros(3, 1))
    expected = entries.double().numpy() @ dense.reshape(len(dense), -1).T - values
    assert batch.residual(entries).numpy() == pytest.approx(expected, abs=1e-4)


def test_a_completion_batch_counts_only_its_entries():
    split = TensorSplit([2, 3], np.array([5.0, 7.0]), "cpu", entries=np.array([4, 1]))
    batch = split.batch(torch.zeros(1, 2))
    outputs = torch.tensor([[9.0, 8.0, 9.0, 9.0, 3.0, 9.0]])
    losses = batch.losses(outputs, "squared")
    assert losses.sum().item() == 4 + 1
    assert batch.example_losses(losses).tolist() == [[4.0, 1.0]]  # in the order of the measurements
    assert batch.metrics(outputs)["relative_error"].tolist()[0] == pytest.approx([np.sqrt(5 / 74)] * 2)
    assert batch.losses(outputs, "absolute").sum().item() == 3
    assert batch.losses(outputs, "huber").sum().item() == pytest.approx(1.5 + 0.5)
    with pytest.raises(ValueError, match="batch_size must be 2, not 1"):
        split.training_batches(1)


def test_a_split_is_read_back_unchanged(tmp_path):
    options = defaults("tasks.tensor_sensing") | CP
    make_split("sensing", "tasks.tensor_sensing", options, tmp_path / "none", tmp_path / "split")
    splits = load(tmp_path / "split", "cpu")
    about = json.loads((tmp_path / "split" / "task.json").read_text())
    assert about["shape"] == [5, 5, 5]
    assert [audit["in_training"] for audit in about["audit"]] == [0]
    target = low_rank_recovery.tensor_target(options)
    entries = torch.tensor(target.reshape(1, -1), dtype=torch.float32)
    for split in splits.values():
        assert split.batch(torch.zeros(1, 1)).residual(entries).abs().max() < 1e-5


# --- models


def drawn(module, options, shape, seeds=(0, 1)):
    runs = [module.initialize(options, {"shape": shape}, np.random.default_rng(seed)) for seed in seeds]
    return {name: torch.stack([run[name] for run in runs]) for name in runs[0]}


def test_matrix_factorization_is_a_product_of_matrices():
    options = defaults("models.matrix_factorization") | {"depth": 4, "deviation": 1.0}
    weights = drawn(matrix_factorization, options, [5, 3])
    a, b, c, d = (weights[f"factor{index}"][1].double() for index in range(4))
    product = a @ b @ c @ d
    entries = matrix_factorization.forward(options, weights, None, None)[1]
    torch.testing.assert_close(entries.view(5, 3).double(), product, atol=1e-4, rtol=1e-4)
    seen = matrix_factorization.observe(options, weights, {"shape": [5, 3]})
    singular = np.linalg.svd(product.numpy(), compute_uv=False)
    assert [seen[f"singular_value_{rank}"][1].item() for rank in (1, 2, 3)] == pytest.approx(singular, rel=1e-4)
    assert seen["nuclear_norm"][1].item() == pytest.approx(singular.sum(), rel=1e-4)
    share = singular / singular.sum()
    assert seen["effective_rank"][1].item() == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-4)
    assert seen["frobenius_norm"][1].item() == pytest.approx(np.linalg.norm(product.numpy()), rel=1e-4)
    single = weights | {"factor1": weights["factor1"] * torch.tensor([1.0, 0.0, 0.0])}  # only its first column is left
    ranks = [matrix_factorization.observe(options, own, {"shape": [5, 3]})["rank"].tolist() for own in (weights, single)]
    assert ranks == [[3, 3], [1, 1]]
    identity = drawn(matrix_factorization, options | {"initialization": "identity", "deviation": 0.5}, [3, 3])
    assert torch.equal(matrix_factorization.forward(options, identity, None, None)[0].view(3, 3), torch.eye(3) / 16)


@pytest.mark.parametrize("order", [3, 4])
def test_cp_factorization_is_a_sum_of_outer_products(order):
    options = defaults("models.cp_factorization") | {"deviation": 1.0}
    weights = drawn(cp_factorization, options, [4] * order)
    assert weights["mode0"].shape == (2, 4, 4 ** (order - 1))
    letters = "abcd"[:order]
    modes = [weights[f"mode{mode}"][1] for mode in range(order)]
    expected = torch.einsum(",".join(f"{letter}r" for letter in letters) + f"->{letters}", *modes)
    entries = cp_factorization.forward(options, weights, None, None)[1]
    torch.testing.assert_close(entries.view(expected.shape), expected, atol=1e-4, rtol=1e-4)
    seen = cp_factorization.observe(options, weights, {})
    norms = np.prod([mode.norm(dim=0).numpy() for mode in modes], 0)
    assert [seen[f"component_norm_{rank}"][1].item() for rank in (1, 10)] == pytest.approx(np.sort(norms)[::-1][[0, 9]], rel=1e-5)
    assert [seen[f"component_norm_{rank}_index"][1].item() for rank in range(1, 11)] == np.argsort(-norms)[:10].tolist()


def test_hierarchical_factorization_of_order_4_equals_its_definition():
    options = defaults("models.hierarchical_tensor_factorization") | {"widths": [5, 6], "deviation": 1.0}
    weights = drawn(hierarchical_tensor_factorization, options, [3] * 4)
    w = {name: weight[1] for name, weight in weights.items()}
    leaves = [w[f"level0.node{node}"] for node in range(4)]
    expected = torch.einsum(
        "ar,br,rs,ct,dt,ts,s->abcd", leaves[0], leaves[1], w["level1.node0"], leaves[2], leaves[3], w["level1.node1"], w["output"]
    )
    entries = hierarchical_tensor_factorization.forward(options, weights, None, None)[1]
    torch.testing.assert_close(entries.view(3, 3, 3, 3), expected, atol=1e-3, rtol=1e-4)
    seen = hierarchical_tensor_factorization.observe(options, weights, {"shape": [3] * 4})
    inner = leaves[0].norm(dim=0) * leaves[1].norm(dim=0) * w["level1.node0"].norm(dim=1)
    top = w["level1.node0"].norm(dim=0) * w["level1.node1"].norm(dim=0) * w["output"].abs()
    assert seen["node_1_2_component_1"][1].item() == pytest.approx(inner.max().item(), rel=1e-5)
    assert seen["node_1_2_3_4_component_6"][1].item() == pytest.approx(top.min().item(), rel=1e-5)
    assert [seen[f"node_1_2_component_{rank}_index"][1].item() for rank in (1, 5)] == [inner.argmax(), inner.argmin()]
    crossed = expected.permute(0, 2, 1, 3).reshape(9, 9)
    largest = torch.linalg.svdvals(crossed)[0].item()
    assert seen["matricization_1_3_singular_value_1"][1].item() == pytest.approx(largest, rel=1e-4)
    along = torch.linalg.svdvals(expected.reshape(9, 9))
    assert seen["matricization_1_2_singular_value_5"][1].item() == pytest.approx(along[4].item(), rel=1e-3)


def test_hierarchical_factorization_of_odd_order_passes_on_the_unpaired_mode():
    options = defaults("models.hierarchical_tensor_factorization") | {"widths": [4, 5], "deviation": 1.0, "matricizations": []}
    weights = drawn(hierarchical_tensor_factorization, options, [2, 3, 4])
    w = {name: weight[0] for name, weight in weights.items()}
    expected = torch.einsum(
        "ar,br,rs,ct,ts,s->abc",
        *(w[f"level0.node{node}"] for node in (0, 1)),
        w["level1.node0"],
        w["level0.node2"],
        w["level1.node1"],
        w["output"],
    )
    entries = hierarchical_tensor_factorization.forward(options, weights, None, None)[0]
    torch.testing.assert_close(entries.view(2, 3, 4), expected, atol=1e-3, rtol=1e-4)
    with pytest.raises(ValueError, match="order 3 needs 2 widths"):
        drawn(hierarchical_tensor_factorization, options | {"widths": [4]}, [2, 3, 4])


def test_matricizations_put_the_named_modes_into_rows():
    entries = torch.arange(24.0)[None]
    expected = torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1).reshape(4, 6)
    assert torch.equal(factorization.matricization(entries, [2, 3, 4], [2])[0], expected)
    assert factorization.effective_rank(torch.tensor([[2.0, 2.0, 0.0]])).item() == pytest.approx(2)


# --- training


@pytest.mark.parametrize("shape", [(12, 12, 12), (64, 64, 64), (64, 512, 512), (16, 256, 256), (9, 9, 9), (3, 9, 7), (30, 8, 9)])
def test_products_do_not_depend_on_the_number_of_runs(shape):
    rows, inner, columns = shape
    left, right = torch.randn(5, rows, inner), torch.randn(5, inner, columns)
    together = factorization.product(left, right)
    for run in range(5):
        alone = factorization.product(left[run : run + 1].clone(), right[run : run + 1].clone())
        assert torch.equal(alone[0], together[run])


CASES = [
    ("matrix_completion", "matrix_factorization", MATRIX, {}),
    ("matrix_sensing", "matrix_factorization", MATRIX, {}),
    ("tensor_completion", "cp_factorization", CP, {}),
    ("tensor_sensing", "cp_factorization", CP, {}),
    ("tensor_completion", "hierarchical_tensor_factorization", TREE, {"widths": [9, 9]}),
]


@pytest.mark.parametrize(("task", "model", "changes", "options"), CASES)
def test_a_factorization_does_not_depend_on_its_neighbors(task, model, changes, options):
    independent(problem(task, model, changes, options), [(seed, 0.0) for seed in range(5)], alone=(0, 3))


def test_group_rmsprop_equals_a_reference_in_double_precision():
    """The reference computes the optimizer and the complete gradient of a deep matrix factorization with NumPy."""
    case = problem("matrix_completion", "matrix_factorization", MATRIX, {"deviation": 0.05}, steps=150, record_every=150)
    (state,) = train_plain(case, [0])
    factors = [factor.double().numpy() for factor in initial_weights(case, 0).values()]
    split = case.splits["train"]
    mask, target = (tensor.double().numpy().reshape(12, 12) for tensor in (split.mask, split.target))
    squares, elapsed = 0.0, 0.0
    for step in range(1, 151):
        a, b, c = factors
        error = 2 * mask * (a @ b @ c - target) / 100
        gradients = [error @ (b @ c).T, a.T @ error @ c.T, (a @ b).T @ error]
        squares = 0.99 * squares + 0.01 * sum((gradient**2).sum() for gradient in gradients)
        pace = 0.01 / (np.sqrt(squares / (1 - 0.99**step)) + 1e-6)
        factors = [factor - pace * gradient for factor, gradient in zip(factors, gradients, strict=True)]
        elapsed += pace
    ours = weights_of(case, [state])
    for factor, view in zip(factors, ours.values(), strict=True):
        assert view[0].numpy() == pytest.approx(factor, abs=2e-4)
    step_size = next(value for *_, metric, value in state.history if metric == "step_size")
    assert step_size * 150 == pytest.approx(elapsed, rel=1e-3)


def test_components_are_learned_one_after_the_other_and_recover_the_matrix():
    changes = {"side": 24, "rank": 2, "norm": 24, "train_measurements": 400, "test_measurements": 176}
    case = problem(
        "matrix_completion", "matrix_factorization", changes, steps=4000, record_every=50, stop_loss=5e-5, stop_steps=300
    )
    (state,) = train_plain(case, [0])
    table = pd.DataFrame(state.history, columns=["step", "split", "metric", "value"])
    found = components.tracked(table, "singular_value")
    singular = np.linalg.svd(low_rank_recovery.matrix_target(defaults("tasks.matrix_completion") | changes), compute_uv=False)
    assert found.iloc[-1][[1, 2]].tolist() == pytest.approx(singular[:2], rel=0.02)
    assert found.iloc[-1][3] < 0.01
    first, second = component_dynamics.appearances(found).values()
    assert second > first + 100
    error = table[(table.split == "target") & (table.metric == "relative_error")].value.iloc[-1]
    assert error < 0.01
    assert state.step < 4000  # it stopped early


def test_a_run_stops_when_its_loss_stays_low_and_not_before():
    settings = defaults("training.settings") | {"steps": 1000, "stop_loss": 0.1, "stop_steps": 100}

    def state(losses):
        history = [(50 * (index + 1), "train", "loss", loss) for index, loss in enumerate(losses)]
        return State(0, 0.0, step=50 * len(losses), history=history)

    assert not has_ended(state([1.0, 0.01, 0.01]), settings)
    assert has_ended(state([1.0, 0.01, 0.01, 0.01]), settings)
    assert not has_ended(state([0.01, 0.01, 0.01, 0.5]), settings)
    assert not has_ended(state([0.01, 0.5, 0.01, 0.01]), settings)
    assert not has_ended(state([float("nan")] * 4), settings)
    assert has_ended(state([1.0] * 20), settings)
    assert not has_ended(state([1.0, 0.01, 0.01, 0.01]), settings | {"stop_loss": None})
    first = settings | {"stop_steps": 0}  # the run ends at the first recorded point below the threshold
    assert has_ended(state([1.0, 0.01]), first)
    assert not has_ended(state([0.01, 1.0]), first)
    assert not has_ended(state([]), first)


def test_a_stopped_run_does_not_affect_its_neighbors():
    settings = {"steps": 600, "record_every": 20, "stop_loss": 0.05, "stop_steps": 40}
    case = problem("matrix_completion", "matrix_factorization", MATRIX, {"deviation": 0.1}, **settings)
    together = train_plain(case, range(4))
    assert len({state.step for state in together}) > 1
    for state in together:
        (alone,) = train_plain(case, [state.seed])
        assert (alone.step, repr(alone.history)) == (state.step, repr(state.history))


def test_a_diverging_run_does_not_affect_its_neighbors():
    """Products of its last finite weights need not be finite, and such a matrix has no singular values."""
    settings = {"optimizer": "sgd", "learning_rate": 2.0, "steps": 100, "record_every": 50}
    case = problem("matrix_completion", "matrix_factorization", MATRIX, {"depth": 5, "deviation": 0.2}, **settings)
    states = train_plain(case, range(4))
    assert {state.diverged_at is None for state in states} == {True, False}
    for state in [state for state in states if state.diverged_at is None]:
        (alone,) = train_plain(case, [state.seed])
        assert (state.step, repr(state.history)) == (100, repr(alone.history))
    unknown = torch.full((3, 2), torch.inf)
    found = factorization.spectrum(torch.stack([unknown, torch.eye(3, 2), unknown * torch.nan]))
    assert found.isnan().all(1).tolist() == [True, False, True]
    assert found[1].tolist() == [1, 1]


# --- configuration


@pytest.mark.parametrize(
    ("training_settings", "message"),
    [
        ({"batch_size": 64, "loss": "squared"}, "batch_size of tensor tasks must be train_measurements, 2048"),
        ({"batch_size": 2048}, "loss 'cross_entropy' is not for 'matrix_completion', a task of kind 'tensor'"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_any_job(training_settings, message):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    config["tasks"]["matrix_completion"] = {"training": training_settings}
    grid = {"task": "matrix_completion", "model": "matrix_factorization", "regularizers": {}, "seeds": [0]}
    config["studies"] = {"s": {"figures": {"growth_law": {"grids": [grid]}}}}
    with pytest.raises(ConfigurationError, match=message):
        Configuration(config)


def test_the_factorizations_have_the_published_sizes_and_settings():
    configuration = Configuration(read("config.yaml", *STUDIES))
    published = {
        ("matrix_completion", "matrix_factorization"): ({"side": 64, "rank": 5}, {"depth": 3, "deviation": 0.001}),
        ("tensor_completion", "cp_factorization"): (
            {"target": "cp", "order": 3, "dimension": 16, "ranks": [5]},
            {"components": None, "deviation": 0.001},
        ),
        ("hierarchical_completion", "hierarchical_tensor_factorization"): (
            {"target": "hierarchical", "order": 4, "dimension": 8, "ranks": [5, 5]},
            {"widths": [512, 512], "deviation": 0.01},
        ),
    }
    counts = {"norm": 64, "train_measurements": 2048, "test_measurements": 2048}
    training = {"optimizer": "group_rmsprop", "learning_rate": 0.01, "batch_size": 2048, "loss": "squared", "decay": 1.0}
    training |= {"clip": None, "weight_decay": 0, "stop_loss": 5e-5, "stop_steps": 101 * 25}
    for (task, model), (target, network) in published.items():
        data, options, settings = (
            configuration.parameters("tasks", task),
            configuration.parameters("models", model),
            configuration.settings(task, model),
        )
        assert data | target | counts == data
        assert options | network == options
        assert settings | training == settings


def test_a_grid_of_examples_names_only_a_task():
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    grid = {"task": "is_same_digit", "model": "resnet18", "regularizers": {}, "seeds": [0]}
    config["studies"] = {"s": {"figures": {"contact_sheet": {"grids": [grid]}}}}
    with pytest.raises(ConfigurationError, match="has the keys task, this one has task, model"):
        Configuration(config)
    config["studies"] = {"s": {"figures": {"contact_sheet": {"grids": [{"task": "is_same_digit"}]}}}}
    assert Configuration(config).figures["contact_sheet"]["sources"] == ["split"]
    config["studies"] = {"s": {"figures": {"locality": {"grids": [{"task": "is_same_digit"}]}}}}
    with pytest.raises(ConfigurationError, match="has the keys task, model, regularizers, seeds"):
        Configuration(config)


# --- figures


def history_of(exponent: float, seeds=(0,)) -> pd.DataFrame:
    """Two components that grow one after the other, exactly with rate size^exponent in the time of gradient flow."""
    rows = []
    for seed in seeds:
        size, time, pace = np.array([1e-3, 1e-5]), 0.0, 0.01 + 0.01 * seed
        for step in range(10, 4001, 10):
            for _ in range(10):
                size = np.minimum(size + pace * size**exponent, [4.0, 3.0])
                time += pace
            for rank, value in enumerate(size, 1):
                rows.append((seed, step, "model", f"component_norm_{rank}", value))
            rows.append((seed, step, "batches", "step_size", pace))
            rows.append((seed, step, "target", "relative_error", 0.001))
    table = pd.DataFrame(rows, columns=["seed", "step", "split", "metric", "value"])
    return table.assign(task="t", model="m", regularizer="none", **{"lambda": 0.0})


def test_the_growth_law_is_found_where_it_holds():
    table = history_of(1.0, seeds=(0, 1, 2))
    group = {"task": "t", "model": "m", "quantity": "component_norm", "factors": 2, "title": "exact"}
    rates = growth_law.growth(table[table.seed == 0], "component_norm", [0.003, 0.1])
    for size, rate in rates.values():
        assert growth_law.exponent(size, rate) == pytest.approx(1.0, abs=0.02)
    _, caption = growth_law.draw(table, defaults("figures.growth_law") | {"groups": [group]})
    assert "theory 1.000" in caption
    assert caption.endswith("mean over runs of their medians 1.000 ± 0.000, within 0.1 of the theory: holds")
    _, caption = growth_law.draw(table[table.seed < 2], defaults("figures.growth_law") | {"groups": [group]})
    assert caption.endswith("within 0.1 of the theory: open, too few seeds to judge")
    _, caption = growth_law.draw(table, defaults("figures.growth_law") | {"groups": [group | {"factors": 4}]})
    assert caption.endswith("within 0.1 of the theory: DOES NOT HOLD")
    mixed = [history_of(power, seeds=(seed,)) for seed, power in enumerate((0.92, 1.0, 1.1))]
    _, caption = growth_law.draw(pd.concat(mixed), defaults("figures.growth_law") | {"groups": [group]})
    assert caption.endswith("within 0.1 of the theory: open, the interval includes the bound")


def test_the_growth_law_follows_a_component_that_overtakes_another():
    # Component 7 is the largest at first and is overtaken by 3 and 5; in the end 9, which was not tracked before, replaces it.
    steps = [10, 20, 30, 40]
    found = {7: [3.0, 3.0, 2.0, 0.5], 3: [1.0, 2.0, 5.0, 6.0], 5: [0.5, 1.0, 4.0, 8.0], 9: [0.1, 0.2, 0.3, 1.0]}
    rows = []
    for place, step in enumerate(steps):
        largest = sorted(found, key=lambda index: -found[index][place])[:3]
        for rank, index in enumerate(largest, 1):
            rows += [(step, "model", f"norm_{rank}", found[index][place]), (step, "model", f"norm_{rank}_index", float(index))]
    table = pd.DataFrame(rows, columns=["step", "split", "metric", "value"])
    curves_ = growth_law.followed(table, "norm")
    assert curves_[1].tolist() == found[5]
    assert curves_[2].tolist() == found[3]
    assert np.array_equal(curves_[3], [np.nan, np.nan, np.nan, 1.0], equal_nan=True)
    assert components.tracked(table, "norm")[1].tolist() == [3.0, 3.0, 5.0, 8.0]
    sizes = pd.DataFrame([(step, "batches", "step_size", 0.1) for step in steps], columns=table.columns)
    size, rate = growth_law.growth(pd.concat([table, sizes]), "norm", [0.05, 0.5])[1]
    assert size.tolist() == pytest.approx([0.5**0.5, 2.0])
    assert rate.tolist() == pytest.approx([0.5, 3.0])
    by_rank = table[~table.metric.str.endswith("_index")]
    pd.testing.assert_frame_equal(growth_law.followed(by_rank, "norm"), components.tracked(table, "norm"))


def test_the_dynamics_figure_counts_components_and_states_when_they_appear():
    table = history_of(1.0)
    panel = {"model": "m", "quantity": "component_norm", "title": "exact", "axis": "norms"}
    options = defaults("figures.component_dynamics") | {"panels": [panel]}
    _, caption = component_dynamics.draw(table, options)
    assert "2 components above 0.02 of the largest (4, 3)" in caption
    assert "* exact, norms: 5 expected" in caption
    assert caption.endswith(": DOES NOT HOLD")
    _, fewer = component_dynamics.draw(table, options | {"panels": [panel | {"expected": [2, 3]}]})
    assert "* exact, norms: 2 or 3 expected" in fewer
    assert fewer.endswith(": holds")
    _, unjudged = component_dynamics.draw(table, options | {"panels": [panel | {"judged": False}]})
    assert unjudged == caption.removesuffix(": DOES NOT HOLD").replace(": 5 expected", "")
    curves_ = components.tracked(table, "component_norm")
    steps = component_dynamics.appearances(curves_)
    assert steps[1] < steps[2]
