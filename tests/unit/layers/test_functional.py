"""The packed layers agree with PyTorch's, and a run's numbers do not depend on its neighbors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from compositional.layers import attention, compiled, functional, lstm_compiled, softmax
from compositional.layers import lstm as lstm_module
from compositional.layers.functional import conv2d, embedding, linear, reorder, run_by_run, spaced_linear
from compositional.layers.lstm import lstm
from compositional.layers.pooling import max_pool
from compositional.layers.ragged import Chunks


def _reordered(weight: torch.Tensor) -> torch.Tensor:
    """PyTorch's gates (input, forget, candidate, output) in our order (input, forget, output, candidate), transposed."""
    into, keep, candidate, out = weight.chunk(4)
    return torch.cat([into, keep, out, candidate]).T


def test_lstm_equals_pytorch_on_sequences_of_different_lengths():
    torch.manual_seed(0)
    lengths, width, features = [5, 5, 3, 2], 6, 4
    reference = nn.LSTM(features, width, batch_first=True)
    inputs = torch.randn(4, 5, features)
    packed_inputs = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
    hidden, cell = torch.randn(1, 4, width), torch.randn(1, 4, width)
    expected, _ = reference(packed_inputs, (hidden, cell))
    bias = (reference.bias_ih_l0 + reference.bias_hh_l0).unsqueeze(1)
    weight = torch.cat([_reordered(part) for part in (reference.weight_ih_l0, bias, reference.weight_hh_l0)])
    sizes = [sum(length > step for length in lengths) for step in range(5)]
    ours = lstm(packed_inputs.data.unsqueeze(0), hidden, cell, weight.unsqueeze(0), sizes)
    torch.testing.assert_close(ours[0], expected.data, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("features", [0, 4])
def test_lstm_gradient_equals_finite_differences(features):
    torch.manual_seed(0)
    sizes = (5, 4, 4, 2)
    shapes = [(2, 5, 3), (2, 5, 3), (2, features + 1 + 3, 12)] + ([(2, 15, features)] if features else [])
    hidden, cell, weight, *inputs = (torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes)

    point = [hidden, cell, weight, *inputs]

    def value(hidden, cell, weight, inputs=None):
        return (lstm(inputs, hidden, cell, weight, sizes) * torch.linspace(-1, 1, 15 * 3).view(1, 15, 3)).sum()

    gradients = torch.autograd.grad(value(*point), point)
    for index, gradient in enumerate(gradients):
        for _ in range(5):
            move = torch.randn_like(point[index]) * 1e-6
            ahead, behind = (value(*point[:index], point[index] + sign * move, *point[index + 1 :]) for sign in (1, -1))
            torch.testing.assert_close((ahead - behind) / 2, (gradient * move).sum(), rtol=1e-6, atol=1e-14)


def test_lstm_gradient_cannot_be_taken_twice():
    tensors = [torch.zeros(shape, requires_grad=True) for shape in [(1, 2, 3), (1, 2, 3), (1, 4, 12)]]
    total = lstm(None, *tensors, (2, 1)).sum()
    torch.autograd.grad(total, tensors, retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        torch.autograd.grad(total, tensors)


def _attended(values: torch.Tensor) -> torch.Tensor:
    drawn = attention.initialize_attention(np.random.default_rng(0), 4, 2, "own", relative=True)
    weights = {name: weight.unsqueeze(0) for name, weight in drawn.items()}
    return attention.attend_own(weights, "own", values, Chunks((4,), (4,)), None, 2)


@pytest.mark.parametrize(
    "function",
    [
        _attended,
        lambda values: lstm(values, *torch.zeros(2, 1, 16, 4), torch.ones(1, 9, 16), (16,)),
        lambda values: softmax.cross_entropy(values[0], torch.zeros(16, dtype=torch.int64)),
    ],
)
def test_a_gradient_that_cannot_be_differentiated_is_no_part_of_a_term(function):
    """The gradient of such a term, with respect to weights, would lack a part without notice."""
    torch.manual_seed(0)
    values = torch.randn(1, 16, 4, requires_grad=True)
    total = function(values).square().sum()
    assert torch.autograd.grad(total, values, retain_graph=True)[0].any()
    with pytest.raises(NotImplementedError, match=r"\.backward: its result cannot be differentiated.*class Network"):
        torch.autograd.grad(function(values).square().sum(), values, create_graph=True)


def test_compiled_functions_have_separate_caches_and_only_one_process_fills_them(monkeypatch):
    ends = []
    for width in (3, 5):
        lstm_compiled._compiled.cache_clear()
        ends += [function.__qualname__ for function in lstm_compiled._compiled(width)]
    assert len(set(ends)) == 4
    locked = []
    monkeypatch.setattr(compiled.fcntl, "lockf", lambda file, how: locked.append((file.name, how)))

    def double(values):
        return values * 2

    function = compiled.compiled(double, "_of_a_test")
    assert function(3) == 6
    assert function(4) == 8
    assert function(0.5) == 1
    ((first, how), second) = locked  # one signature each; what is already compiled takes no lock
    assert how == compiled.fcntl.LOCK_EX
    assert second == (first, how)


def test_the_compiled_step_and_its_gradient_equal_those_made_of_pytorchs_operations(monkeypatch):
    """The latter run on CUDA."""
    torch.manual_seed(0)
    sizes = (6, 6, 5, 2)
    tensors = [torch.randn(shape, requires_grad=True) for shape in [(3, 19, 4), (3, 6, 8), (3, 6, 8), (3, 13, 32)]]

    def results():
        outputs = lstm(*tensors, sizes)
        return outputs, *torch.autograd.grad(outputs.square().sum(), tensors)

    compiled = results()
    monkeypatch.setattr(lstm_compiled, "step", lstm_module.step)
    monkeypatch.setattr(lstm_compiled, "step_gradient", lstm_module.step_gradient)
    for ours, expected in zip(compiled, results(), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_the_compiled_logistic_function_has_the_bits_of_pytorchs():
    """For a sample of all numbers, NaN and infinity included."""
    values = torch.arange(-(2**31), 2**31, 4001, dtype=torch.int64).to(torch.int32).view(torch.float32)
    ours = torch.from_numpy(np.array([lstm_compiled.logistic(value) for value in values.numpy()[::97]]))
    exact = values[::97].double().sigmoid()
    assert ours.isnan().equal(exact.isnan())
    torch.testing.assert_close(ours.double(), exact, rtol=2**-22, atol=2**-126, equal_nan=True)
    # Where PyTorch computes many numbers at once; elsewhere it takes the system's exponential function.
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        gates = values[: len(values) // 16 * 16].view(1, -1, 16)
        none = torch.zeros(1, gates.shape[1], 4)
        computed = gates.clone()
        lstm_compiled.step(computed, none, torch.empty_like(none), torch.zeros(1, 1, 4), 0, gates.shape[1], 0)
        assert torch.equal(computed.nan_to_num(2), gates.sigmoid().nan_to_num(2))


def test_linear_embedding_and_convolution_equal_pytorch():
    torch.manual_seed(0)
    layer, table, convolution = nn.Linear(5, 3), nn.Embedding(7, 4), nn.Conv2d(2, 6, 3, stride=2, padding=1)
    rows, tokens, image = torch.randn(8, 5), torch.randint(7, (8, 3)), torch.randn(8, 2, 9, 9)
    torch.testing.assert_close(linear(rows[None], layer.weight.T[None], layer.bias[None])[0], layer(rows))
    torch.testing.assert_close(embedding(tokens[None], table.weight[None])[0], table(tokens))
    ours = conv2d(image[None], convolution.weight[None], convolution.bias[None], stride=2, padding=1)
    torch.testing.assert_close(ours[0], convolution(image))


@pytest.mark.parametrize(("cached", "calls"), [(1000, [3]), (999, [1, 1, 1])])
def test_large_activations_are_computed_run_by_run_with_the_same_bits(cached, calls, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(functional, "_CACHED", cached)
    tensors = [torch.randn(shape, requires_grad=True) for shape in ((3, 8, 2, 9, 11), (3, 5, 2, 3, 3), (3, 5))]
    seen = []

    def block(*own: torch.Tensor) -> torch.Tensor:
        seen.append(len(own[0]))
        return max_pool(conv2d(*own)).relu()

    upstream = torch.randn(3, 8, 5, 3, 4)
    ours = run_by_run(block, 1000, *tensors)
    gradients = torch.autograd.grad(ours, tensors, upstream)
    assert seen == calls
    together = block(*tensors)
    assert torch.equal(ours, together)
    for gradient, expected in zip(gradients, torch.autograd.grad(together, tensors, upstream), strict=True):
        assert torch.equal(gradient, expected)


@pytest.mark.parametrize("rows", [16, 48, 256, 3984])
def test_batched_products_equal_single_ones_bit_for_bit(rows):
    torch.manual_seed(rows)
    left, right = torch.randn(7, rows, 64), torch.randn(7, 64, 256)
    together = torch.bmm(left, right)
    for run in range(7):
        assert torch.equal(together[run], torch.bmm(left[run : run + 1].clone(), right[run : run + 1].clone())[0])


@pytest.mark.parametrize(("rows", "symbols"), [(1, 19), (203, 169), (500, 686), (64, 704)])
def test_a_product_with_spaced_rows_has_the_bits_of_an_ordinary_one(rows, symbols):
    source = torch.Generator().manual_seed(0)
    values, table, bias, grad = (
        torch.randn(3, *shape, generator=source, requires_grad=True)
        for shape in ((rows, 64), (symbols, 64), (symbols,), (rows, symbols))
    )
    results = []
    for function in (linear, spaced_linear):
        outputs = function(values, table.mT, bias)
        results.append([outputs, *torch.autograd.grad(outputs, (values, table, bias), grad, create_graph=True)])
    assert all(map(torch.equal, *results))
    assert results[1][0].stride(1) % 16 == 0
    # Gradients of gradients, which some terms need.
    again = [torch.autograd.grad(own[1].square().sum(), (table, grad)) for own in results]
    assert all(map(torch.equal, *again))


@pytest.mark.parametrize("place", ["gaps", "no room after the last row", "between other columns", "transposed"])
def test_cross_entropy_does_not_depend_on_how_logits_are_in_memory(place):
    source, symbols = torch.Generator().manual_seed(0), 70
    logits, targets = torch.randn(9, symbols, generator=source), torch.randint(symbols, (9,), generator=source)
    wide = torch.full((9, symbols + 10), float("nan"))
    spaced = {
        "gaps": wide[:, :symbols],
        "no room after the last row": wide.flatten()[: 8 * wide.shape[1] + symbols]
        .clone()
        .as_strided(logits.shape, wide.stride()),
        "between other columns": wide[:, 5:-5],
        "transposed": torch.empty(symbols, 9).mT,
    }[place].copy_(logits)
    losses = [softmax.cross_entropy(own.requires_grad_(), targets) for own in (logits, spaced)]
    gradients = [torch.autograd.grad(own.sum(), one)[0] for own, one in zip(losses, (logits, spaced), strict=True)]
    assert torch.equal(*losses)
    assert torch.equal(*gradients)
    assert torch.allclose(losses[0], nn.functional.cross_entropy(logits, targets, reduction="none"), atol=1e-6)


def test_reorder_and_its_gradient_are_inverse_gathers():
    rows = torch.arange(12.0).view(1, 6, 2).requires_grad_()
    order = torch.tensor([3, 1, 5, 0, 4, 2])
    moved = reorder(rows, order, order.argsort())
    assert torch.equal(moved, rows[:, order])
    moved.backward(gradient := torch.randn(1, 6, 2))
    assert torch.equal(rows.grad[:, order], gradient)


@pytest.mark.parametrize("size", [(6, 14), (7, 9)])
def test_max_pool_equals_pytorch(size):
    torch.manual_seed(0)
    values = torch.randint(-3, 4, (2, 3, 2, *size)).float()  # with equal values within a square
    values[1, 2, 1, 3, 4] = float("nan")
    ours, theirs = (values.clone().requires_grad_() for _ in range(2))
    pooled = max_pool(ours)
    expected = nn.functional.max_pool2d(theirs.flatten(0, 1), 2).unflatten(0, (2, 3))
    assert pooled.isnan().sum() == 1
    assert torch.equal(pooled.nan_to_num(99), expected.nan_to_num(99))
    weights = torch.randn(pooled.shape)
    weights.requires_grad_()
    gradients = []
    for found, point in ((pooled, ours), (expected, theirs)):
        (gradient,) = torch.autograd.grad((found * weights).sum(), point, create_graph=True)
        (again,) = torch.autograd.grad((gradient * torch.linspace(0, 1, gradient.numel()).view_as(gradient)).sum(), weights)
        gradients.append((gradient, again))
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)
